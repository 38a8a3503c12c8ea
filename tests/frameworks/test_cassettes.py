"""Recordings of model providers, each through the framework that it came from: recorded, and replayed from the store and from an export.

The agents in ``cassettes/`` make their tools of what a recording offers and calls, so that they can play any of a framework's recordings.
What came from no framework that is installable here is played by the plain SDKs.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from acceptance.commands import MATERIAL, NO_MATERIAL
from frameworks.running import HERE, Done, Framework, runs_in
from frameworks.test_contract import WANTED
from recordings.servers import Loopback, Reply
from support.cassette_scene import scene
from support.cassette_server import CassetteServer, Listener, exchanges, read_cassette
from support.cassette_tools import handler, read_results, serving
from support.environments import environment
from support.size import FULL

pytestmark = [pytest.mark.timeout(1200), pytest.mark.skipif(not MATERIAL.is_dir(), reason=NO_MATERIAL)]

FRAMEWORKS: Final[Mapping[str, tuple[str, ...]]] = {
    "agent_framework": ("openinference/test_multiple_tools.yaml",),
    "agno": ("openllmetry/test_agent_run_*",),
    "autogen": ("openinference/TestAssistantAgent.*",),
    "crewai": ("crewAI/*",),
    "google_adk": ("openinference/test_google_adk_*", "langsmith-sdk/test_google_adk_*"),
    "llm": ("llm/*",),
    "openai_agents": ("openllmetry/*_workflow*", "logfire/test_responses.yaml", "dd-trace-py/test_agent_*"),
    "pydantic_ai": ("pydantic-ai/*",),
}
"""Which recordings came from which framework, by their files."""

PLAIN: Final = ("agentops/*", "cagent/*", "opentelemetry-python-contrib/*")
"""Recordings without such a framework: an application's own requests, an agent written in Go, boto3."""

_KEYS: Final = ("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY")


def recordings(given: Mapping[str, tuple[str, ...]]) -> list[Any]:
    """Framework and recording; at the small size only of frameworks asked for by name."""
    found = []
    for name, patterns in given.items():
        marks = []
        if WANTED != "all" and name not in WANTED.split(","):
            marks = [pytest.mark.skip(reason="installs the framework: SPANREPLAY_FRAMEWORKS=all runs it")]
        elif not FULL and WANTED == "all":
            marks = [pytest.mark.skip(reason="runs at SPANREPLAY_TEST_SIZE=full")]
        files = sorted({file for pattern in patterns for file in MATERIAL.glob(pattern)})
        found += [pytest.param(name, file, marks=marks, id=f"{name}-{file.stem}") for file in files]
    return found or [pytest.param("none", MATERIAL, id="none")]


@pytest.mark.parametrize(("name", "file"), recordings(FRAMEWORKS))
def test_a_recording_is_recorded_and_replayed(name: str, file: Path, tmp_path: Path) -> None:
    given = read_cassette(file)
    results = read_results(file)
    (tmp_path / "scene.json").write_text(json.dumps(scene(given) | {"server": bool(results)}), encoding="utf-8")
    own, shared = HERE / "cassettes" / f"{name}.txt", HERE / name / "requirements.txt"
    made = environment(f"cassettes-{name}", own) if own.exists() else environment(f"framework-{name}-requirements", shared)
    framework = Framework(name="cassettes", python=made / "bin" / "python", folder=tmp_path, program=f"{name}_agent.py")

    with CassetteServer() as server, serving(handler(results)) as tools:
        server.serve("recording", given)
        addresses = _addresses(server.url("recording")) | {"MCP_URL": f"http://127.0.0.1:{tools}/mcp"}
        recorded = _run(framework, "record", "--", *framework.agent, **addresses)
        left = server.unserved("recording")
    assert recorded.code == 0, recorded.err
    assert recorded.answers, recorded.err
    assert left == 0, f"{left} of {len(given)} responses were not asked for: {recorded.answers}\n{recorded.err}"

    path = framework.exported()
    steps = [step for run in runs_in(path) for step in run.steps]
    assert sum(step.kind == "model_call" for step in steps) == len(given)
    assert sorted(step.name for step in steps if step.kind == "tool_call" and step.name in recorded.bodies) == recorded.bodies
    if results:
        assert [step.name for step in steps if step.kind == "tool_call"], "the calls of the tool server's tools are no steps"
    with Listener(server.port) as nobody, Listener(tools) as none:
        for target in ("last", path):
            replayed = _run(framework, "replay", target, "--json", "--", *framework.agent, **addresses)
            found = json.loads(replayed.out)["replay"]
            assert (replayed.code, found["equal"], found["differences"], found["refusals"]) == (0, True, [], []), replayed.err
            assert replayed.answers == recorded.answers
            assert replayed.bodies == []
        assert nobody.connections() == none.connections() == 0, "a replay has sent requests"


@pytest.mark.parametrize(("name", "file"), recordings({"plain": PLAIN}))
def test_a_recording_of_no_framework_is_recorded_and_replayed(name: str, file: Path, tmp_path: Path) -> None:
    given = exchanges(file)
    models = read_cassette(file)
    asked = [{key: each[key] for key in ("method", "path", "body")} for each in given]
    told = {"requests": asked, "results": scene(models)["results"] if models else []}
    (tmp_path / "scene.json").write_text(json.dumps(told), encoding="utf-8")
    python = environment(f"cassettes-{name}", HERE / "cassettes" / f"{name}.txt") / "bin" / "python"
    framework = Framework(name="cassettes", python=python, folder=tmp_path, program=f"{name}_agent.py")

    left = list(given)

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        found = next(each for each in left if (each["method"], each["path"]) == (method, path))
        left.remove(found)
        reply: Reply = found["reply"]
        return reply

    with Loopback(answer) as server:
        url = server.url
        recorded = _run(framework, "record", "--", *framework.agent, SERVER=url)
    assert (recorded.code, len(recorded.answers), left) == (0, len(given), []), recorded.err

    path = framework.exported()
    steps = [step for run in runs_in(path) for step in run.steps]
    assert sum(step.kind in ("model_call", "io") for step in steps) == len(given)
    assert sorted(step.name for step in steps if step.kind == "tool_call") == recorded.bodies
    with Listener(int(url.rpartition(":")[2])) as nobody:
        for target in ("last", path):
            replayed = _run(framework, "replay", target, "--json", "--", *framework.agent, SERVER=url)
            found = json.loads(replayed.out)["replay"]
            assert (replayed.code, found["equal"], found["differences"], found["refusals"]) == (0, True, [], []), replayed.err
            assert (replayed.answers, replayed.bodies) == (recorded.answers, [])
        assert nobody.connections() == 0, "a replay has sent requests"


def test_every_recording_is_played() -> None:
    found = [file for patterns in (*FRAMEWORKS.values(), PLAIN) for pattern in patterns for file in MATERIAL.glob(pattern)]
    assert sorted(found) == sorted(MATERIAL.glob("*/*.yaml"))


def _run(framework: Framework, *arguments: object, **variables: str) -> Done:
    return framework.run(*framework.spanreplay(*arguments), SCENE=str(framework.folder / "scene.json"), **variables)


def _addresses(url: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_GEMINI_BASE_URL": url,
        **dict.fromkeys(_KEYS, "a-key"),
    }

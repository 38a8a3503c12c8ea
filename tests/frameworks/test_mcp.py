"""MCP over streamable HTTP, and beside the spans that the SDK makes of its own requests."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from frameworks.running import HERE, Framework, runs_in
from frameworks.test_contract import SCRIPT, WANTED
from support.environments import environment

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(WANTED != "all" and "mcp" not in WANTED.split(","), reason="installs mcp: SPANREPLAY_FRAMEWORKS=mcp runs it"),
]
TURNS = [turn for turn in SCRIPT if not turn.get("nested")]
TRACED = """
import runpy, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
sys.argv = sys.argv[1:]
sys.path.insert(0, {folder!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def framework_in(folder: Path) -> Framework:
    python = environment("framework-mcp-requirements", HERE / "mcp" / "requirements.txt") / "bin" / "python"
    return Framework(name="mcp", python=python, folder=folder, program="tools.py")


def test_a_server_behind_a_url_is_recorded_and_no_connection_is_made_in_a_replay(tmp_path: Path) -> None:
    framework = framework_in(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    variables = {"PYTHONPATH": str(HERE), "TOOL_BODIES": str(tmp_path / "bodies"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        [framework.python, HERE / "mcp" / "server.py", str(port)], env=variables, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        while "running on" not in (line := server.stderr.readline()):  # uvicorn says so when it listens
            assert line, "the server did not start"
        recorded = framework.live(
            TURNS, *framework.spanreplay("record", "--", *framework.agent, "http"), STATION=f"http://127.0.0.1:{port}/mcp"
        )
        server.terminate()
    assert recorded.code == 0, recorded.err
    assert recorded.bodies == ["get_alerts", "get_time", "get_weather", "roll", "roll"]

    path = framework.exported()
    steps = [step for run in runs_in(path) for step in run.steps]
    assert {step.kind for step in steps} == {"mcp", "tool_call", "model_call"}, "what HTTP carries belongs to the request"
    assert [step.name for step in steps if step.kind == "mcp"] == [
        "connect", "initialize", "resources/read", "prompts/get", "prompts/get", "tools/list"
    ]  # fmt: skip
    weather = next(step for step in steps if step.name == "get_weather")
    assert (weather.effect, weather.grade) == ("read", "exact")
    assert "schema_digest" in weather.versions["tool"]

    replayed = framework.run(
        *framework.spanreplay("replay", path, "--json", "--", *framework.agent, "http"), STATION=f"http://127.0.0.1:{port + 1}/mcp"
    )
    told = json.loads(replayed.out)["replay"]
    assert (replayed.code, told["equal"], told["refusals"]) == (0, True, []), replayed.err
    assert (replayed.answers, replayed.bodies) == (recorded.answers, [])


def test_a_request_that_the_sdk_traces_too_is_one_step(tmp_path: Path) -> None:
    framework = framework_in(tmp_path)
    traced = tmp_path / "traced.py"
    traced.write_text(TRACED.format(folder=str(HERE / "mcp")), encoding="utf-8")
    program = [framework.python, traced, HERE / "mcp" / "tools.py", "memory"]
    recorded = framework.live(TURNS, *framework.spanreplay("record", "--", *program))
    assert recorded.code == 0, recorded.err
    runs = runs_in(framework.exported())
    steps = [step for run in runs for step in run.steps]
    calls = sorted(step.name for step in steps if step.kind == "tool_call")
    assert calls == ["get_alerts", "get_time", "get_weather", "roll", "roll"]
    assert [step.name for step in steps if step.kind == "mcp"] == [
        "initialize", "resources/read", "prompts/get", "prompts/get", "tools/list"
    ]  # fmt: skip
    assert sum(run.unclassified_spans for run in runs) > 0, "the SDK made no spans: the test shows nothing"
    replayed = framework.run(*framework.spanreplay("replay", "--json", "--", *program))
    told = json.loads(replayed.out)["replay"]
    assert (replayed.code, told["equal"], told["differences"]) == (0, True, []), replayed.err
    assert replayed.bodies == []


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    framework = framework_in(tmp_path)
    agent = [framework.python, HERE.parent.parent / "docs" / "examples" / "mcp" / "agent.py"]
    recorded = framework.run(*framework.spanreplay("record", "--", *agent))
    assert (recorded.code, recorded.out) == (0, "Lost orders are refunded. 4711 refunded.\n"), recorded.err
    steps = [step for run in runs_in(framework.exported()) for step in run.steps]
    assert {step.name: step.effect for step in steps if step.kind == "tool_call"} == {"order_status": "read", "refund": "irreversible"}
    assert {step.versions["tool"]["version"] for step in steps if step.kind == "tool_call"} == {"1.4.0"}
    replayed = framework.run(*framework.spanreplay("replay", "last", "--", *agent))
    assert replayed.code == 0, replayed.out + replayed.err

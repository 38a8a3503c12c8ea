"""Agents of frameworks, seen in a real Jaeger by way of a Collector, and run again from what Jaeger has."""

import json
from pathlib import Path

import pytest

from backends.running import Jaeger, Peers, get, until
from frameworks.running import HERE, Framework
from frameworks.test_contract import SCRIPT, WANTED
from support.environments import environment

TRACED = Path(__file__).parent / "agents" / "traced.py"
NAMES = ("langgraph", "openai_agents")

pytestmark = [pytest.mark.timeout(1200)]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_comes_back_from_both_apis_of_jaeger(name: str, peers: Peers, tmp_path: Path) -> None:
    if WANTED != "all" and name not in WANTED.split(","):
        pytest.skip("installs the framework: SPANREPLAY_FRAMEWORKS=all runs it")
    jaeger = peers.jaeger()
    collector = peers.collector("dev", view=jaeger.http)
    case = json.loads((HERE / name / "case.json").read_text(encoding="utf-8"))
    script = [turn for turn in SCRIPT if case["nested"] or not turn.get("nested")]
    python = environment(f"framework-{name}-requirements", HERE / name / "requirements.txt") / "bin" / "python"
    (folder := tmp_path / "desk").mkdir()
    framework = Framework(name=name, python=python, folder=folder)
    agent = [str(python), str(TRACED), *framework.agent[1:], "async"]
    sending = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http,
        "OTEL_SERVICE_NAME": name,
        "SPANREPLAY_SPAN_CONTENT": "full",
    }
    recorded = framework.live(script, *framework.spanreplay("record", "--", *agent), **sending)
    assert recorded.code == 0, recorded.err

    trace = in_jaeger(jaeger, name, framework)
    saved = folder / "saved-from-the-page.json"
    saved.write_bytes(get(f"{jaeger.query}/api/traces/{trace}?raw=true") or b"")
    for target in (f"jaeger+{jaeger.query}/?service={name}", saved, collector.traces):
        store = folder / f"store-{len(list(folder.iterdir()))}"
        imported = framework.run(*framework.spanreplay("import", target, "--store", store))
        assert imported.code == 0, imported.err
        verified = framework.run(*framework.spanreplay("verify", "--store", store))
        assert verified.code == 0, verified.out + verified.err
        replayed = framework.run(*framework.spanreplay("replay", "last", "--json", "--store", store, "--", *agent))
        told = json.loads(replayed.out)["replay"]
        assert (replayed.code, told["differences"], told["refusals"], replayed.bodies) == (0, [], [], []), replayed.err
        assert replayed.answers == recorded.answers


def in_jaeger(jaeger: Jaeger, service: str, framework: Framework) -> str:
    """The trace of the last run, once Jaeger has as many of its spans as the store."""
    shown = framework.run(*framework.spanreplay("replay", "last", "--json"))
    (run,) = json.loads(shown.out)["runs"]
    (trace,) = run["trace_ids"]
    until("every span in Jaeger", lambda: len(jaeger.spans(trace)) >= len(run["steps"]) + 1 or None)
    assert service in jaeger.services()
    return str(trace)

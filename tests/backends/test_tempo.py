"""Tempo, as its documentation shows it: what it cuts is found and said, and the shipped configuration lets it cut nothing."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from backends.running import CONFIGURATIONS, Peers, until
from backends.test_losses import SDK, SPANS, Loss, check
from fixtures.runs.spans import TRACE, agent, chat, said, tool
from spanreplay.cli.sending import address_of, send
from spanreplay.replay.inputs.remote import Access, open_remote
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine
from support.tempo import Tempo

SHIPPED: dict[str, Any] = yaml.safe_load((CONFIGURATIONS / "tempo.yaml").read_text(encoding="utf-8"))


def run(shift: int = 0) -> list[SpanRecord]:
    """A run with texts far beyond 2048 bytes; ``shift`` moves the characters against the limit."""
    question = said("x" * shift + "Wie hoch steht die Oder? ≈ 𝄞 " * 200)
    return [
        agent(1),
        chat(2, 1, attributes={a.GEN_AI_INPUT_MESSAGES: question}),
        tool(3, 1, result=json.dumps("x" * shift + "Übergröße " * 400, ensure_ascii=False)),
        chat(4, 1, attributes={a.GEN_AI_INPUT_MESSAGES: question}),
    ]


def sent(spanreplay: CommandLine, tempo: Tempo, spans: list[SpanRecord]) -> str:
    """Sends them; returns where they are to be fetched."""
    done = spanreplay("send", spanreplay.file("run.json", *spans), "--endpoint", tempo.url)
    assert done.code == 0, done
    return f"tempo+{tempo.url}/{TRACE}"


@pytest.mark.parametrize("version_1", [False, True], ids=["v2", "v1"])
def test_with_the_shipped_configuration_everything_comes_back(version_1: bool, spanreplay: CommandLine) -> None:
    with Tempo(SHIPPED, version_1=version_1) as tempo:
        where = sent(spanreplay, tempo, run())
        assert spanreplay("verify", where).code == 0
        records = list(open_remote(where, Access()).records)
    assert records == run()
    assert tempo.asked[0][0] == f"/api/v2/traces/{TRACE}"
    assert tempo.asked[0][1]["span_pruning"] == ["false"]


@pytest.mark.parametrize("shift", range(6))
def test_as_it_is_by_default_it_cuts_and_that_is_said(shift: int, spanreplay: CommandLine) -> None:
    with Tempo() as tempo:
        where = sent(spanreplay, tempo, run(shift))
        done = spanreplay("verify", where)
        told = spanreplay("import", where)
    assert done.code == 1
    for span in ("0000000000000002", "0000000000000003", "0000000000000004"):
        assert f"span {span}" in done.out
    assert "in Tempo set distributor.max_attribute_bytes: 0" in done.out
    assert "cut at 2048 bytes" in told.err
    assert "distributor.max_attribute_bytes" in (CONFIGURATIONS / "README.md").read_text("utf-8")


def test_a_trace_that_is_too_large_comes_as_a_part_and_that_is_said(spanreplay: CommandLine) -> None:
    largest = {"overrides": {"defaults": {"global": {"max_bytes_per_trace": 9_000}}}, "distributor": {"max_attribute_bytes": 0}}
    with Tempo(largest) as tempo:
        done = spanreplay("verify", sent(spanreplay, tempo, run()))
    assert done.code == 1
    assert "Tempo gave a part only (trace exceeds max size)" in done.out
    assert "overrides.defaults.global.max_bytes_per_trace" in done.out


def test_runs_are_found_by_traceql_though_ids_lose_their_zeros(spanreplay: CommandLine) -> None:
    with Tempo(SHIPPED) as tempo:
        sent(spanreplay, tempo, run())
        done = spanreplay("show", f'tempo+{tempo.url}/?q={{ span.gen_ai.agent.name = "helper" }}&since=1h')
    assert done.code == 0
    assert tempo.asked[0][1]["q"] == ['{ span.gen_ai.agent.name = "helper" }']
    assert tempo.asked[1][0] == f"/api/v2/traces/{TRACE}"


README = (CONFIGURATIONS / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^ {4}(\{ span\..*\}.*)$", README, re.MULTILINE)
PANELS = json.loads((CONFIGURATIONS / "grafana/dashboards/agents.json").read_text(encoding="utf-8"))["panels"]


@pytest.fixture
def demo(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The demo's run in the store; its run id."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-desk")
    assert spanreplay("demo", "-q").code == 0
    return str(spanreplay("show", "last", "--json").json["runs"][0]["run_id"])


def test_the_examples_of_traceql_find_the_demos_run(demo: str, spanreplay: CommandLine) -> None:
    assert len(EXAMPLES) > 5
    of_the_demo = {"support": "trip-planner", "conv-7": "demo", "7d1f0e2c9b8a…": demo}
    with Tempo(SHIPPED) as tempo:
        assert spanreplay("send", "last", "--endpoint", tempo.url).code == 0
        for example in EXAMPLES:
            query = example
            for there, here in of_the_demo.items():
                query = query.replace(f'"{there}"', f'"{here}"')
            found = spanreplay("show", f"tempo+{tempo.url}/?q={query}", "--json")
            assert [run["run_id"] for run in found.json["runs"]] == [demo], query
        for query in ('{ span.gen_ai.agent.name = "another" }', '{ span.gen_ai.tool.name = "find_flight" && status = error }'):
            assert "none" in spanreplay("show", f"tempo+{tempo.url}/?q={query}").err


@pytest.mark.parametrize(("agent", "named"), [("trip.*", True), (".*", True), ("shop-.*", False), (".*", False)])
def test_the_panels_of_the_dashboard_find_the_demos_run(agent: str, named: bool, demo: str, spanreplay: CommandLine) -> None:
    """Also where no span has the name of an agent, as in the run of a command."""
    assert spanreplay("export", "last", "-o", "run.json").code == 0
    recorded = [record for record in open_source("run.json").records if isinstance(record, SpanRecord)]
    left_off = () if named else (a.GEN_AI_AGENT_NAME,)
    spans = [replace(span, attributes={k: v for k, v in span.attributes.items() if k not in left_off}) for span in recorded]
    with Tempo(SHIPPED) as tempo:
        assert spanreplay("send", spanreplay.file("sent.json", *spans), "--endpoint", tempo.url).code == 0
        for panel in PANELS:
            (target,) = panel["targets"]
            query = target["query"].replace("$agent", agent).replace("> 10s", "> 0s").replace("> 10000", "> 1")
            found = spanreplay("show", f"tempo+{tempo.url}/?q={query}", "--json")
            assert [run["run_id"] for run in found.json["runs"]] == [demo], panel["title"]


def test_a_trace_that_its_parts_cannot_pass_on_is_not_given(spanreplay: CommandLine) -> None:
    with Tempo({**SHIPPED, "server": {"grpc_server_max_send_msg_size": 9_000}}) as tempo:
        done = spanreplay("import", sent(spanreplay, tempo, run()))
    assert done.code == 3
    assert "response larger than the max" in done.err


TEMPO = Loss("flags-lost", frozenset({"flags", "links[].flags", "scope.schema_url", "resource.schema_url"}), of_all=True)


@pytest.mark.parametrize("version_1", [False, True], ids=["v2", "v1"])
def test_what_is_lost_in_a_block_is_what_the_report_says(version_1: bool) -> None:
    with Tempo(SHIPPED, version_1=version_1, in_blocks=True) as tempo:
        send(SPANS, address=address_of(tempo.url), headers={}, timeout_s=30)
        check(open_remote(f"tempo+{tempo.url}/{SPANS[0].trace_id}", Access()), [TEMPO, *SDK])


def test_what_is_not_there_is_said() -> None:
    with Tempo() as tempo, pytest.raises(UnreadableSource, match="none"):
        open_remote(f"tempo+{tempo.url}/{'12' * 16}", Access())


def test_the_gateways_view_is_short_enough_for_a_tempo_that_cuts(peers: Peers, spanreplay: CommandLine) -> None:
    """ASCII by its 2000 characters; messages, arguments and results always."""
    with Tempo() as tempo:
        gateway = peers.collector("gateway", view=tempo.url)
        assert spanreplay("send", spanreplay.file("run.json", *run()), "--endpoint", gateway.http).code == 0

        def whole() -> list[SpanRecord] | None:
            try:
                found = [r for r in open_remote(f"tempo+{tempo.url}/{TRACE}", Access()).records if isinstance(r, SpanRecord)]
            except UnreadableSource:
                return None
            return found if len(found) == len(run()) else None

        for span in until("the view", whole):
            for name, value in span.attributes.items():
                if name in (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_TOOL_CALL_RESULT):
                    json.loads(str(value))

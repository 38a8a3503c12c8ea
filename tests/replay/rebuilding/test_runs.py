import json
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import RUN, TRACE, agent, asking, chat, fixture, log, own, own_root, said, sid, span, tool, wired
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.rebuilding import grouping
from spanreplay.replay.rebuilding.runs import build_runs, index, load_run
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, Record, SpanRecord
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.store import Store

OTHER_TRACE = "1" * 32
OTHER_RUN = "2" * 32


def one(records: Sequence[Record]) -> Run:
    (run,) = build_runs(records)
    return run


def kinds(run: Run) -> str:
    return " ".join({"model_call": "M", "tool_call": "T", "agent": "A"}.get(step.kind, step.kind) for step in run.steps)


def codes(run: Run) -> set[str]:
    return {reason.code for reason in run.grade_reasons}


# ---- which spans are a run -------------------------------------------------------------------------------------------


def test_a_named_run_spans_traces_and_processes() -> None:
    root = own_root(1, seq=1)
    here = own(2, 1, seq=3)
    there = own(3, seq=1, trace=OTHER_TRACE, start=500, attributes={a.PROCESS_ID: "p2", a.STEP_PARENT: sid(2)})
    run = one([there, here, root])
    assert run.run_id == RUN
    assert run.trace_ids == (TRACE, OTHER_TRACE)
    assert [step.span_id for step in run.steps] == [sid(2), sid(3)]
    assert run.steps[1].parent_seq == 1, "spanreplay.parent holds across traces"


def test_a_run_whose_id_no_column_takes_spoils_no_other(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", create=True) as store:
        store.add([own_root(1, seq=1, attributes={a.RUN_ID: "\ud800-1"}), own_root(2, seq=1, trace=OTHER_TRACE)], origin="import")
        assert index(store) == 2
        assert {run.run_id for run in store.find_runs()} == {"?-1", RUN}
        assert load_run(store, "?-1").run_id == "?-1"


def test_a_run_that_is_wanted_alone_is_as_it_is_among_all() -> None:
    command = {a.RUN_COMMAND_ID: "c" * 32}
    records: list[Record] = [own_root(9, attributes={**command, a.RUN_ID: "around"}, trace="9" * 32)]
    for number in range(3):
        trace, run = f"{number + 1:032x}", f"run {number}"
        records += [
            own_root(1, seq=1, trace=trace, attributes={**command, a.RUN_ID: run}),
            own(2, 1, "model_call", seq=3, trace=trace, attributes={**command, a.RUN_ID: run}),
            span(3, 1, trace=trace, start=600),
        ]
    runs = build_runs(records)
    assert len(runs) == 4
    for one_run in runs:
        assert build_runs(records, only=[one_run.run_id]) == [one_run]
    assert build_runs(records, only=["around", "run 1"]) == [found for found in runs if found.run_id in ("around", "run 1")]
    assert build_runs(records, only=[]) == []


def test_a_foreign_span_belongs_to_the_run_around_it() -> None:
    records = [
        span(9, name="POST /chat", start=0, end=10_000),
        own_root(1, 9, seq=1),
        tool(2, 1, start=110),
        own_root(3, 9, seq=11, run=OTHER_RUN),
        tool(4, 3, start=1110),
        span(5, 4, name="GET", start=1111),
    ]
    runs = build_runs(records)
    assert [(run.run_id, [step.span_id for step in run.steps]) for run in runs] == [(RUN, [sid(2)]), (OTHER_RUN, [sid(4)])]
    assert [run.unclassified_spans for run in runs] == [1, 1], "the web server's span is shown with the first run, the GET with the second"


def test_steps_around_several_runs_are_a_run_of_their_own() -> None:
    runs = build_runs([chat(9, start=0, end=9999), own_root(1, 9, seq=1), own_root(3, 9, seq=11, run=OTHER_RUN)])
    assert {run.run_id for run in runs} == {RUN, OTHER_RUN, TRACE}


def test_without_a_named_run_a_trace_is_one() -> None:
    runs = build_runs([tool(1), tool(2, trace=OTHER_TRACE, start=5)])
    assert [run.run_id for run in runs] == [TRACE, OTHER_TRACE]


# ---- root, input, output, outcome ------------------------------------------------------------------------------------


def test_the_topmost_present_agent_is_the_run_even_without_its_parent() -> None:  # B01
    top = agent(1, 77, end=500, attributes={a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: said("answer", "assistant")})
    run = one([top, chat(2, 1, start=5)])
    assert run.input["messages"][0]["parts"][0]["content"] == "q"
    assert run.output["messages"][0]["parts"][0]["content"] == "answer"
    assert run.agent_name == "helper"
    assert kinds(run) == "M"
    assert run.orphan_spans == 1
    assert "missing-parent" in codes(run)
    assert any(sid(77) in reason.detail for reason in run.grade_reasons)
    assert run.grade == "semantic", "a missing ancestor is a reason, no downgrade"


def test_children_of_two_missing_parents_are_all_kept_in_order() -> None:  # B03, B05
    run = one([tool(n, 90 + n % 2, start=100 - n) for n in range(1, 7)])
    assert [step.span_id for step in run.steps] == [sid(n) for n in (6, 5, 4, 3, 2, 1)]
    assert all(step.parent_seq is None for step in run.steps)
    assert run.orphan_spans == 6
    assert {reason.step for reason in run.grade_reasons if reason.code == "missing-parent"} == {1, 2, 3, 4, 5, 6}
    assert run.grade == "semantic"


def test_nested_agents_are_steps_and_the_outermost_is_not() -> None:
    run = one([agent(1, name="top", op="invoke_workflow", end=900), agent(2, 1, name="sub", start=5, end=800), tool(3, 2, start=6)])
    assert kinds(run) == "A T"
    assert run.steps[1].parent_seq == 1
    assert run.steps[1].agent == "sub"


def test_an_agent_that_spans_its_siblings_is_the_run() -> None:
    run = one([agent(1, 99, name="lead", end=900), agent(2, 99, name="a", start=10, end=20), agent(3, 99, name="b", start=30, end=40)])
    assert kinds(run) == "A A"
    assert run.agent_name == "lead"


def test_agents_one_after_another_are_steps_and_the_run_takes_first_input_and_last_output() -> None:
    first = agent(1, name="a", end=20, attributes={a.GEN_AI_INPUT_MESSAGES: said("in 1"), a.GEN_AI_OUTPUT_MESSAGES: said("out 1")})
    last = agent(2, name="b", start=30, attributes={a.GEN_AI_INPUT_MESSAGES: said("in 2"), a.GEN_AI_OUTPUT_MESSAGES: said("out 2")})
    run = one([last, first])
    assert kinds(run) == "A A"
    assert (run.input["messages"][0]["parts"][0]["content"], run.output["messages"][0]["parts"][0]["content"]) == ("in 1", "out 2")
    assert "several-roots" in codes(run)


def test_a_failed_step_does_not_fail_the_run() -> None:
    records = [agent(1, end=900), tool(2, 1, start=5, status=STATUS_ERROR, attributes={a.ERROR_TYPE: "ValueError"}), chat(3, 1, start=50)]
    run = one(records)
    assert (run.outcome, run.error) == ("ok", None)
    assert run.steps[0].outcome == "error"
    failed = one([agent(1, end=900, status=STATUS_ERROR, status_message="no"), chat(3, 1, start=50)])
    assert (failed.outcome, failed.error) == ("error", {"type": None, "message": "no"})


def test_a_batch_with_one_failure_keeps_the_other_results() -> None:  # B33, B31
    asked = asking(("c1", "f", {"n": 1}), ("c2", "f", {"n": 2}), ("c3", "f", {"n": 3}))
    records = [
        chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}),
        tool(2, name="f", call="c1", args='{"n":1}', result="1", start=20, end=90),
        tool(3, name="f", call="c2", args='{"n":2}', result=None, start=21, end=80, status=STATUS_ERROR, status_message="boom"),
        tool(4, name="f", call="c3", args='{"n":3}', result="3", start=22, end=70),
    ]
    run = one(records)
    assert [step.output for step in run.steps[1:]] == [{"result": "1"}, None, {"result": "3"}]
    assert [step.outcome for step in run.steps[1:]] == ["ok", "error", "ok"]
    assert run.steps[2].error == {"type": None, "message": "boom"}
    assert [step.requested_by for step in run.steps] == [None, 1, 1, 1]
    assert [step.overlaps for step in run.steps] == [(), (3, 4), (2, 4), (2, 3)]


# ---- causes ----------------------------------------------------------------------------------------------------------


def test_a_reused_call_id_belongs_to_the_nearest_earlier_answer() -> None:
    def model(number: int, start: int) -> SpanRecord:
        return chat(number, start=start, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("same", "search", {}))})

    run = one(
        [model(1, 0), tool(2, call="same", start=20), model(3, 40), tool(4, call="same", start=60), tool(5, call="never asked", start=80)]
    )
    assert [step.requested_by for step in run.steps] == [None, 1, None, 3, None]


def test_calls_without_id_are_found_by_name_and_arguments_each_request_once() -> None:
    asked = asking((None, "f", '{"n": 1}'), (None, "f", {"n": 2}), (None, "f", {"n": 2}))
    records = [
        chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}),
        *(
            tool(n, name="f", call="unknown", args=args, start=n * 20)
            for n, args in ((2, '{"n":2}'), (3, '{"n":1}'), (4, '{"n":2}'), (5, '{"n":2}'))
        ),
    ]
    run = one(records)
    assert [step.call_id for step in run.steps[1:]] == [None] * 4
    assert [step.requested_by for step in run.steps[1:]] == [1, 1, 1, None]


def test_what_a_step_says_about_its_causes_wins() -> None:
    records = [
        own_root(1, seq=1),
        own(2, 1, "model_call", seq=3, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "tool_call", {}))}),
        own(
            3,
            1,
            "model_call",
            seq=5,
            attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "tool_call", {})), a.STEP_RETRY_OF: sid(2), a.STEP_ATTEMPT: 2},
        ),
        own(4, 1, seq=7, attributes={a.GEN_AI_TOOL_CALL_ID: "c", a.STEP_REQUESTED_BY: sid(2)}),
        own(5, 1, seq=9, attributes={a.GEN_AI_TOOL_CALL_ID: "c"}),
    ]
    run = one(records)
    assert [step.requested_by for step in run.steps] == [None, None, 1, 2]
    assert [(step.attempt, step.retry_of) for step in run.steps[:2]] == [(1, None), (2, 1)]


def test_the_named_parent_wins_over_the_spans_around() -> None:
    records = [
        own_root(1, seq=1, end=9999),
        own(2, 1, seq=2, attributes={a.STEP_SEQ_END: 20}),
        own(3, 1, seq=4, attributes={a.STEP_PARENT: sid(2)}),
    ]
    assert [step.parent_seq for step in one(records).steps] == [None, 1]
    named_root = [own_root(1, seq=1), own(3, 1, seq=4, attributes={a.STEP_PARENT: sid(1)})]
    assert [step.parent_seq for step in one(named_root).steps] == [None]


@pytest.mark.parametrize(("outcome", "expected"), [("allow", "ok"), ("deny", "rejected"), ("require_approval", "deferred")])
def test_a_decision_without_its_call_is_a_step(outcome: str, expected: str) -> None:
    told = log(
        1,
        a.GEN_AI_TOOL_CALL_DECISION_EVENT,
        {a.GEN_AI_TOOL_CALL_DECISION_OUTCOME: outcome, a.GEN_AI_TOOL_NAME: "pay", "why": "too much"},
        time=50,
    )
    run = one([agent(1, end=900), chat(2, 1, start=5), told, tool(3, 1, start=80)])
    step = run.steps[1]
    assert (step.kind, step.name, step.outcome, step.seq) == ("decision", "pay", expected, 2)
    assert step.decision["why"] == "too much"
    assert kinds(run) == "M decision T"


def test_a_decision_goes_to_the_next_call_with_its_id() -> None:
    told = log(
        1,
        "",
        {"event.name": a.GEN_AI_TOOL_CALL_DECISION_EVENT, a.GEN_AI_TOOL_CALL_DECISION_OUTCOME: "allow", a.GEN_AI_TOOL_CALL_ID: "c"},
        time=50,
    )
    run = one([agent(1, end=900), tool(2, 1, call="c", start=20), tool(3, 1, call="c", start=80), told])
    assert [step.decision and step.decision["outcome"] for step in run.steps] == [None, "allow"]


# ---- one call recorded twice -----------------------------------------------------------------------------------------


def test_a_model_span_in_a_model_span_of_the_same_answer_is_one_call() -> None:
    answer = {a.GEN_AI_RESPONSE_ID: "r1"}
    outer = chat(2, 1, start=5, end=100, attributes={**answer, a.GEN_AI_USAGE_INPUT_TOKENS: 3})
    inner = own(3, 2, "model_call", seq=3, run=None, start=10, end=90, attributes=wired(**answer))
    run = one([agent(1, end=900), outer, span(9, 2, start=6, end=95), inner, tool(4, 2, start=92, end=93)])
    assert kinds(run) == "M T"
    step = run.steps[0]
    assert step.span_id == sid(3), "the span nearest to the call"
    assert (step.grade, step.dialect) == ("exact", "spanreplay")
    assert step.output["messages"][0]["parts"][0]["content"] == "hi", "what only the outer one knows is added"
    assert step.usage == {"input_tokens": 3}
    assert run.steps[1].parent_seq == 1, "what was inside the outer span is inside the step"
    assert run.unclassified_spans == 2
    assert "double-instrumentation" in codes(run)


def test_of_two_equal_records_the_one_with_content_is_the_step() -> None:
    run = one([chat(1, end=100), chat(2, 1, content=False, start=5, attributes={a.GEN_AI_RESPONSE_MODEL: "gpt-4o-2024-08-06"})])
    assert [(step.span_id, step.grade) for step in run.steps] == [(sid(1), "semantic")]
    assert run.steps[0].versions["model"] == {"request": "gpt-4o", "response": "gpt-4o-2024-08-06"}


def test_attempts_inside_a_model_span_are_counted_and_the_span_around_is_not() -> None:
    failed = own(
        2,
        1,
        "model_call",
        seq=1,
        run=None,
        start=5,
        attributes={**wired(), a.HTTP_RESPONSE_STATUS_CODE: 429, a.STEP_OUTCOME: "error", a.STEP_ERROR: "{}"},
    )
    good = own(3, 1, "model_call", seq=3, run=None, start=50, attributes={**wired(), a.STEP_ATTEMPT: 2, a.STEP_RETRY_OF: sid(2)})
    run = one([chat(1, end=100), failed, good])
    assert [step.span_id for step in run.steps] == [sid(2), sid(3)]
    assert [step.attempt for step in run.steps] == [1, 2]


def test_different_answers_and_calls_in_tools_stay_apart() -> None:
    nested = [chat(1, end=100, attributes={a.GEN_AI_RESPONSE_ID: "r1"}), chat(2, 1, start=5, attributes={a.GEN_AI_RESPONSE_ID: "r2"})]
    assert kinds(one(nested)) == "M M"
    through_a_tool = [chat(1, end=100), tool(2, 1, start=5, end=50), chat(3, 2, start=6)]
    assert kinds(one(through_a_tool)) == "M T M"
    assert kinds(one([chat(1, end=100, model="big"), chat(2, 1, model="small", start=5)])) == "M M"


def test_a_tool_call_that_mcp_carries_is_one_call() -> None:
    mcp = {"mcp.method.name": "tools/call", a.GEN_AI_TOOL_NAME: "search"}
    run = one([tool(1, call="c", end=100), span(2, 1, start=5, end=90, attributes=mcp), span(3, 2, start=6, end=80, attributes=mcp)])
    assert [(step.span_id, step.call_id, step.output) for step in run.steps] == [(sid(1), "c", {"result": "found"})]
    alone = one([span(2, start=5, attributes=mcp)])
    assert kinds(alone) == "T"


def test_a_tool_that_calls_itself_is_two_calls() -> None:
    assert kinds(one([tool(1, call="c1", end=100), tool(2, 1, call="c2", start=5)])) == "T T"
    assert kinds(one([tool(1, end=100), tool(2, 1, start=5)])) == "T T", "the same instrumentation does not record one call twice"


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_loops_and_unknown_spans_cost_nothing() -> None:
    run = one([tool(1, 2, start=1), tool(2, 1, start=5), span(3, 3)])
    assert kinds(run) == "T T"
    assert run.unclassified_spans == 1
    assert "cycle" in codes(run)


def test_a_dialect_that_fails_costs_one_span_only(monkeypatch: pytest.MonkeyPatch) -> None:  # B25
    class Broken:
        NAME = "broken"
        PRIORITY = 1

        def claims(self, span: SpanRecord) -> bool:
            return "broken" in span.attributes

        def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> None:
            raise KeyError(span.name)

    broken = Broken()
    known = claimants
    monkeypatch.setattr(grouping, "claimants", lambda span: [broken] if broken.claims(span) else known(span))
    run = one([tool(1), span(2, attributes={"broken": 1}, name="odd", start=3)])
    assert kinds(run) == "T"
    assert run.unclassified_spans == 1
    assert run.grade == "incomplete"
    assert any(reason.code == "unreadable" and "odd" in reason.detail for reason in run.grade_reasons)


def test_records_lost_by_a_process_make_its_runs_incomplete() -> None:
    records = [
        own_root(1, seq=1, attributes={a.RUN_DROPPED: 2}),
        own(2, 1, "io", seq=3, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "2"}),
    ]
    assert one(records).grade == "incomplete"
    assert one(records).dropped == 2
    (lost,) = build_runs(records, losses={"p1": 3, "p2": 9})
    assert lost.dropped == 5
    assert sum(reason.code == "records-dropped" for reason in lost.grade_reasons) == 2


def test_a_log_whose_span_is_lost_is_told() -> None:
    assert "log-without-span" in codes(one([tool(1), log(9, a.GEN_AI_INFERENCE_DETAILS_EVENT, {a.GEN_AI_INPUT_MESSAGES: said("x")})]))


# ---- the same run, however it arrives --------------------------------------------------------------------------------


@st.composite
def recorded_runs(draw: st.DrawFn) -> list[Record]:
    """Trees of own and foreign spans with parents lost and clocks equal."""
    records: list[Record] = [own_root(1, seq=1, end=10_000)]
    for number in range(2, draw(st.integers(3, 10))):
        parent = draw(st.integers(1, number - 1) | st.just(99))
        start = draw(st.integers(0, 3))
        made = draw(st.sampled_from(["own", "chat", "tool", "agent", "other"]))
        if made == "own":
            records.append(
                own(number, parent, seq=number * 2, start=start, attributes={a.GEN_AI_TOOL_CALL_ID: draw(st.sampled_from(["x", "y"]))})
            )
        elif made == "chat":
            attributes = {
                a.GEN_AI_OUTPUT_MESSAGES: asking(("x", "search", {}), (None, "search", {})),
                a.GEN_AI_RESPONSE_ID: draw(st.sampled_from(["r", "s"])),
            }
            records.append(chat(number, parent, start=start, attributes=attributes))
        elif made == "tool":
            records.append(tool(number, parent, start=start, call=draw(st.none() | st.just("x"))))
        else:
            records.append(agent(number, parent, start=start) if made == "agent" else span(number, parent, start=start))
    return records


@settings(max_examples=60, deadline=None)
@given(recorded_runs(), st.randoms(use_true_random=False))
def test_shuffled_and_doubled_records_are_the_same_run(records: list[Record], shuffler: random.Random) -> None:
    run = one(records)
    again = [*records, *shuffler.sample(records, k=len(records) // 2)]
    shuffler.shuffle(again)
    assert one(again) == run
    seqs = [step.seq for step in run.steps]
    assert seqs == list(range(1, len(seqs) + 1))
    assert all(step.parent_seq is None or step.parent_seq < step.seq for step in run.steps)
    assert all(step.requested_by is None or step.requested_by < step.seq for step in run.steps)
    assert len(run.steps) + run.unclassified_spans + 1 == len(records), "every span is a step, the root, or counted"


def test_thousands_of_nested_spans_are_a_run() -> None:
    depth = 3000
    run = one([tool(n, n - 1 or None, name=f"t{n}", start=n, end=2 * depth - n) for n in range(1, depth)])
    assert len(run.steps) == depth - 1
    assert run.steps[-1].parent_seq == depth - 2


# ---- a whole trace, written by hand -----------------------------------------------------------------------------------


def test_a_whole_trace_of_another_instrumentation() -> None:
    run = one(fixture("forecast.json"))
    assert kinds(run) == "M T T M"
    assert [step.outcome for step in run.steps] == ["ok", "ok", "timeout", "ok"]
    assert [step.requested_by for step in run.steps] == [None, 1, 1, None]
    assert run.steps[1].input == {"arguments": {"city": "Oslo"}}
    assert (run.agent_name, run.session_id, run.outcome, run.grade) == ("forecaster", "conv-7", "ok", "semantic")
    assert [tool["name"] for tool in run.versions.tools] == ["get_weather"]
    assert run.versions.prompt == ({"name": "forecast", "version": "3"},)


# ---- in a store ------------------------------------------------------------------------------------------------------


class FakeStore:
    """As much of a store as the functions use, in memory."""

    def __init__(self, records: Sequence[Record], stale: Sequence[str]) -> None:
        self.records, self.stale = records, list(stale)
        self.runs: list[RunRow] = []
        self.steps: list[StepRow] = []

    def stale_traces(self) -> list[str]:
        return list(self.stale)

    def _runs(self, trace: str) -> set[Any]:
        return {r.attributes.get(a.RUN_ID) for r in self.records if isinstance(r, SpanRecord) and r.trace_id == trace} - {None}

    def connected(self, trace_ids: Sequence[str]) -> list[tuple[str, ...]]:
        everything = dict.fromkeys(r.trace_id or "" for r in self.records)
        groups = {tuple(t for t in everything if t == trace or self._runs(t) & self._runs(trace)) for trace in trace_ids}
        return sorted(groups)

    def sizes(self, trace_ids: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(trace_ids, 1_000)

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def traces(self, trace_ids: Sequence[str], *, damaged: list[str] | None = None) -> Iterator[SpanRecord]:
        return (r for r in self.records if isinstance(r, SpanRecord) and r.trace_id in trace_ids)

    def logs(self, trace_ids: Sequence[str], *, damaged: list[str] | None = None) -> Iterator[LogRecord]:
        return (r for r in self.records if isinstance(r, LogRecord) and r.trace_id in trace_ids)

    def source_losses(self, trace_ids: Sequence[str]) -> dict[str, list[str]]:
        return {}

    def losses(self, process_ids: Sequence[str]) -> dict[str, int]:
        return {p: 1 for p in process_ids if p == "lossy"}

    def traces_of(self, run_id: str) -> list[str]:
        return [t for t in dict.fromkeys(r.trace_id or "" for r in self.records) if run_id in self._runs(t) or run_id == t]

    def put_runs(self, trace_ids: Sequence[str], runs: Sequence[RunRow], steps: Sequence[StepRow]) -> None:
        self.stale = [t for t in self.stale if t not in trace_ids]
        self.runs += runs
        self.steps += steps


def stored() -> FakeStore:
    command = {a.RUN_COMMAND_ID: "cmd"}
    records = [
        own_root(1, seq=1, attributes=command),
        own(
            2,
            1,
            "model_call",
            seq=3,
            attributes={**wired(), a.GEN_AI_USAGE_INPUT_TOKENS: 4, a.GEN_AI_OUTPUT_MESSAGES: said("\ud800", "assistant")},
        ),
        own(3, seq=5, trace=OTHER_TRACE, attributes={a.STEP_INPUT: "1", a.STEP_RESULT: "NaN", a.PROCESS_ID: "lossy"}),
        own_root(4, seq=1, run=OTHER_RUN, trace="3" * 32, start=900, attributes=command),
        tool(5, trace="4" * 32),
    ]
    return FakeStore(records, [TRACE, "3" * 32, "4" * 32])


def test_indexing_writes_whole_runs_and_leaves_nothing_stale() -> None:
    store: Any = stored()
    assert index(store) == 3
    assert store.stale == []
    row = next(row for row in store.runs if row.run_id == RUN)
    assert set(row.trace_ids) == {TRACE, OTHER_TRACE}, "a trace that was not stale itself is read with its run"
    assert (row.agent, row.n_steps, row.model_calls, row.tool_calls, row.input_tokens, row.grade, row.dropped) == (
        "helper",
        2,
        1,
        1,
        4,
        "incomplete",
        1,
    )
    steps = [step for step in store.steps if step.run_id == RUN]
    assert [step.seq for step in steps] == [1, 2]
    assert json.loads(steps[1].output or "") == {"result": "NaN"}, "strict JSON"
    assert (steps[0].output or "").isascii()
    assert index(store) == 0


def test_large_traces_are_derived_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = stored()
    put: list[Sequence[str]] = []
    monkeypatch.setattr(store, "sizes", lambda traces: dict.fromkeys(traces, 21_000_000))
    monkeypatch.setattr(store, "put_runs", lambda traces, runs, steps: put.append(traces))
    assert index(store) == 3
    assert sorted(map(len, put)) == [1, 1, 2], "traces of one run stay together"


def test_loading_a_run() -> None:
    store: Any = stored()
    assert len(load_run(store, RUN).steps) == 2
    with pytest.raises(LookupError, match="no-such-run"):
        load_run(store, "no-such-run")


def test_a_step_knows_its_run_json() -> None:
    step: Step = one([tool(1)]).steps[0]
    assert json.dumps(step.to_json())


@pytest.mark.parametrize(("whole", "asked", "answered"), [(True, "What?", "That."), (False, "hello", "hi")])
def test_what_a_root_does_not_say_a_second_instrumentation_of_the_whole_run_does(whole: bool, asked: str, answered: str) -> None:
    said_ = {"traceloop.entity.input": '{"messages": [{"role": "user", "content": "What?"}]}', "traceloop.entity.output": '"That."'}
    kind = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "graph"}
    around = span(2, 1, name="graph.workflow", start=10, end=90, attributes={**kind, **said_})
    run = one([agent(1, start=0, end=100), around, chat(3, 2 if whole else 1, start=20, end=30)])
    views: list[Any] = [run.input, run.output]
    assert [view["messages"][-1]["parts"][0]["content"] for view in views] == [asked, answered]

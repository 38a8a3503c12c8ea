"""Runs of several traces, and runs without a root: what they are, what went in and what came out."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import RUN, TRACE, agent, asking, chat, own, own_root, said, sid, span, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.joins import JOINS
from spanreplay.replay.rebuilding.runs import build_runs, sessions
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Record, Scope, SpanRecord
from support.size import FULL

SECOND, THIRD = "1" * 32, "2" * 32
SESSION = {a.GEN_AI_CONVERSATION_ID: "talk-1"}


def codes(run: Run) -> set[str]:
    return {reason.code for reason in run.grade_reasons}


def one(records: Sequence[Record]) -> Run:
    (run,) = build_runs(records)
    return run


# ---- joins -----------------------------------------------------------------------------------------------------------


def broken() -> list[SpanRecord]:
    """An agent whose tools ran in a pool that lost the context: each is a trace of its own."""
    asked = asking(("c1", "f", {"n": 1}), ("c2", "f", {"n": 2}))
    return [
        agent(1, end=900),
        agent(2, 1, name="sub", start=5, end=800),
        chat(3, 2, start=10, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}),
        tool(4, name="f", call="c1", start=100, trace=SECOND),
        span(9, start=99, end=200, trace=THIRD),
        tool(5, 9, name="f", call="c2", start=101, trace=THIRD),
        chat(6, 2, start=300),
    ]


def test_calls_that_ran_in_traces_of_their_own_are_joined_only_when_asked() -> None:  # B27
    assert len(build_runs(broken())) == 3
    (run,) = build_runs(broken(), join="call-id")
    assert run.run_id == TRACE
    assert run.trace_ids == (TRACE, THIRD, SECOND)
    assert [step.span_id for step in run.steps] == [sid(2), sid(3), sid(4), sid(5), sid(6)]
    assert [step.parent_seq for step in run.steps] == [None, 1, 1, 1, 1], "inside the agent that asked"
    assert [step.requested_by for step in run.steps] == [None, None, 2, 2, None]
    assert "joined" in codes(run)
    assert run.unclassified_spans == 1


def test_a_call_that_several_runs_asked_for_is_joined_to_none() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "f", {}))}
    records = [chat(1, attributes=asked), chat(2, trace=SECOND, attributes=asked), tool(3, name="f", call="c1", start=100, trace=THIRD)]
    assert len(build_runs(records, join="call-id")) == 3


def test_a_call_that_was_asked_for_in_its_own_trace_stays_there() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "f", {}))}
    records = [chat(1, attributes=asked), chat(2, trace=SECOND, attributes=asked), tool(3, name="f", call="c1", start=100, trace=SECOND)]
    assert len(build_runs(records, join="call-id")) == 2


def test_traces_of_one_conversation_are_one_run_when_asked() -> None:
    records = [
        agent(
            1, end=90, attributes={**SESSION, a.GEN_AI_INPUT_MESSAGES: said("first"), a.GEN_AI_OUTPUT_MESSAGES: said("one", "assistant")}
        ),
        agent(2, start=100, end=190, trace=SECOND, attributes={**SESSION, a.GEN_AI_OUTPUT_MESSAGES: said("two", "assistant")}),
        span(3, start=200, trace=THIRD, attributes={a.SESSION_ID: "talk-1"}),
        tool(4, start=50, trace="3" * 32),
    ]
    runs = build_runs(records, join="conversation")
    assert [run.trace_ids for run in runs] == [(TRACE, SECOND, THIRD), ("3" * 32,)]
    assert runs[0].session_id == "talk-1"
    assert [step.span_id for step in runs[0].steps] == [sid(1), sid(2)]
    assert runs[0].input["messages"][0]["parts"][0]["content"] == "first"
    assert runs[0].output["messages"][0]["parts"][0]["content"] == "two"
    assert {"joined", "several-roots"} <= codes(runs[0])
    assert len(build_runs(records)) == 4


def test_runs_that_name_themselves_are_never_joined_with_each_other() -> None:
    other = "4" * 32
    records = [
        own_root(1, seq=1, attributes=SESSION),
        own_root(2, seq=1, run=other, trace=SECOND, attributes=SESSION),
        agent(3, start=50, trace=THIRD, attributes=SESSION),
    ]
    assert {run.run_id for run in build_runs(records, join="conversation")} == {RUN, other, THIRD}
    assert {run.run_id for run in build_runs([records[0], records[2]], join="conversation")} == {RUN}


@pytest.mark.parametrize("join", [None, *JOINS])
@pytest.mark.parametrize("seed", range(3))
def test_joins_do_not_depend_on_the_order_of_records(join: str | None, seed: int) -> None:
    records = [*broken(), chat(20, start=1, trace="5" * 32, attributes=SESSION), chat(21, start=2, trace="6" * 32, attributes=SESSION)]
    expected = build_runs(records, join=join)  # type: ignore[arg-type]
    random.Random(seed).shuffle(records)
    assert build_runs(records, join=join) == expected  # type: ignore[arg-type]


def test_the_runs_of_a_session_are_in_order() -> None:
    def turn(number: int, start: int, session: str | None, trace: str) -> list[SpanRecord]:
        attributes = {} if session is None else {a.SESSION_ID: session}
        return [
            agent(number, start=start, end=start + 50, trace=trace),
            chat(number + 1, number, start=start + 1, trace=trace, attributes=attributes),
        ]

    runs = build_runs([*turn(1, 500, "x", TRACE), *turn(3, 100, "x", SECOND), *turn(5, 300, None, THIRD), *turn(7, 200, "y", "3" * 32)])
    assert {session: [run.trace_ids[0] for run in found] for session, found in sessions(runs).items()} == {
        "x": [SECOND, TRACE],
        "y": ["3" * 32],
    }


def test_a_session_that_only_a_span_around_names_is_the_runs() -> None:
    assert one([span(1, attributes={a.SESSION_ID: "s"}, end=900), agent(2, 1, start=5), chat(3, 2, start=6)]).session_id == "s"
    first = one(
        [
            agent(1, end=900),
            chat(2, 1, start=50, attributes={a.SESSION_ID: "late"}),
            chat(3, 1, start=5, attributes={a.SESSION_ID: "early"}),
        ]
    )
    assert first.session_id == "early"


# ---- runs without a root ---------------------------------------------------------------------------------------------


def text(view: object) -> str | None:
    return None if not isinstance(view, dict) else view["messages"][-1]["parts"][0].get("content")


def speaking(number: int, parent: int | None, asked: str, answered: str, **more: int) -> SpanRecord:
    content = {a.GEN_AI_INPUT_MESSAGES: said(asked), a.GEN_AI_OUTPUT_MESSAGES: said(answered, "assistant")}
    return chat(number, parent, attributes=content, start=more.get("start", number * 100), end=more.get("end", number * 100 + 50))


def test_the_first_request_and_the_last_answer_are_the_runs_and_it_says_so() -> None:
    run = one([speaking(2, None, "q", "thinking"), tool(3, start=300), speaking(4, None, "q2", "done")])
    assert (text(run.input), text(run.output)) == ("q", "done")
    (reason,) = [reason.detail for reason in run.grade_reasons if reason.code == "from-model-calls"]
    assert "input is that of step 1" in reason
    assert "output is that of step 3" in reason
    under = one([agent(1, end=900), speaking(2, 1, "q", "done")])
    assert (text(under.input), text(under.output)) == ("q", "done")
    assert "from-model-calls" in codes(under)


def test_what_the_root_says_is_the_runs() -> None:
    content = {a.GEN_AI_INPUT_MESSAGES: said("root q"), a.GEN_AI_OUTPUT_MESSAGES: said("root a", "assistant")}
    run = one([agent(1, end=900, attributes=content), speaking(2, 1, "q", "done")])
    assert (text(run.input), text(run.output)) == ("root q", "root a")
    assert "from-model-calls" not in codes(run)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([tool(2, start=10), speaking(3, None, "q", "done")], (None, "done")),
        ([speaking(2, None, "q", "done"), tool(3, start=900, end=990)], ("q", None)),
        ([speaking(2, None, "q", "x", end=900), speaking(3, None, "q2", "y", end=890)], (None, None)),
        ([speaking(2, None, "q", "x"), chat(3, start=300, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "f", {}))})], ("q", None)),
        ([speaking(2, None, "q", "x"), chat(3, start=300, status=STATUS_ERROR)], ("q", None)),
        ([chat(2, start=10, content=False)], (None, None)),
    ],
    ids=["a tool first", "a tool last", "two at once", "asks for a call", "failed", "nothing captured"],
)
def test_what_is_not_certain_is_not_said(records: Sequence[SpanRecord], expected: tuple[str | None, str | None]) -> None:
    run = one(records)
    assert (text(run.input), text(run.output)) == expected


def test_a_run_inside_a_plain_span_is_what_its_agent_is() -> None:
    content = {a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: said("done", "assistant")}
    run = one(
        [span(1, name="POST /chat", end=900, status=STATUS_ERROR), agent(2, 1, start=5, end=800, attributes=content), chat(3, 2, start=6)]
    )
    assert (run.outcome, run.agent_name, text(run.input), text(run.output)) == ("ok", "helper", "q", "done")
    assert run.unclassified_spans == 1


def test_an_inner_failure_is_not_the_runs() -> None:  # a request that got 404, deep inside
    records = [agent(1, end=900), tool(2, 1, start=5, end=100), span(3, 2, name="GET", start=6, status=STATUS_ERROR), chat(4, 1, start=200)]
    assert one(records).outcome == "ok"
    orphaned = [tool(2, 77, start=5, end=100), span(3, 78, name="GET", start=6, status=STATUS_ERROR), chat(4, 77, start=200)]
    assert one(orphaned).outcome == "ok"


def test_without_an_agent_the_span_around_all_says_how_it_ended_and_else_the_last_step() -> None:
    around = span(1, name="job", end=900, status=STATUS_ERROR, status_message="no")
    run = one([around, chat(2, 1, start=5)])
    assert (run.outcome, run.error) == ("error", {"type": None, "message": "no"})
    assert one([tool(2, start=5, status=STATUS_ERROR), chat(3, start=50)]).outcome == "ok"
    assert one([chat(2, start=5), tool(3, start=50, status=STATUS_ERROR)]).outcome == "unknown"
    assert one([chat(2, start=5, end=None), chat(3, start=50)]).outcome == "unknown"


def test_of_agents_that_start_together_the_one_that_lasts_is_the_run() -> None:
    run = one([agent(9, 77, name="lead", start=5, end=900), agent(2, 77, name="sub", start=5, end=100)])
    assert run.agent_name == "lead"
    assert [step.agent for step in run.steps] == ["sub"]


def test_the_steps_of_a_run_keep_their_own_prompt_versions() -> None:  # B61
    def turn(number: int, version: str, trace: str) -> list[SpanRecord]:
        prompt = {a.GEN_AI_PROMPT_NAME: "greet", a.GEN_AI_PROMPT_VERSION: version}
        return [agent(number, start=number, trace=trace), chat(number + 1, number, start=number + 1, trace=trace, attributes=prompt)]

    settings = span(50, name="settings", attributes={a.GEN_AI_PROMPT_NAME: "greet", a.GEN_AI_PROMPT_VERSION: "1"}, trace="9" * 32)
    runs = build_runs([settings, *turn(1, "1", TRACE), *turn(3, "1", SECOND), *turn(5, "2", THIRD)])
    prompts = {run.trace_ids[0]: run.versions.prompt for run in runs if run.steps}
    assert prompts == {
        TRACE: ({"name": "greet", "version": "1"},),
        SECOND: ({"name": "greet", "version": "1"},),
        THIRD: ({"name": "greet", "version": "2"},),
    }


def test_our_own_steps_are_joined_to_the_run_that_asked_for_them() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c9", "tool_call", {}))}
    records = [own_root(1, seq=1), own(2, 1, "model_call", seq=3, attributes=asked), tool(3, call="c9", start=900, trace=SECOND)]
    (run,) = build_runs(records, join="call-id")
    assert run.run_id == RUN
    assert [step.span_id for step in run.steps] == [sid(2), sid(3)]


# ---- whatever the records are like -------------------------------------------------------------------------------------

_TOOLS = ("search", "mcp__search", "ask_sub")
_ARGUMENTS = (None, '{"n":0}', '{"n":1}', '"sub"')


@st.composite
def any_records(draw: st.DrawFn) -> list[Record]:
    """Spans of several instrumentations in two traces: parents lost or in loops, ids used again, starts equal, ends missing."""
    records: list[Record] = []
    count = draw(st.integers(1, 10))
    for number in range(1, count + 1):
        start = draw(st.integers(0, 8))
        where: dict[str, Any] = {
            "parent": draw(st.sampled_from([None, 99]) | st.integers(1, count)),
            "start": start,
            "end": draw(st.none() | st.integers(start, start + 9)),
            "scope": Scope(name=draw(st.sampled_from("ab"))),
            "trace": draw(st.sampled_from([TRACE, TRACE, SECOND])),
            "status": draw(st.sampled_from([0, 0, STATUS_ERROR])),
        }
        made = draw(st.sampled_from(["chat", "chat", "tool", "tool", "agent", "mcp", "handoff", "own", "plain"]))
        call = draw(st.sampled_from(["x", "y", None]))
        if made == "chat":
            content = {
                a.GEN_AI_OUTPUT_MESSAGES: asking((call, "search", {"n": draw(st.integers(0, 1))}), ("x", "ask_sub", {})),
                a.GEN_AI_RESPONSE_ID: draw(st.sampled_from(["r", "s", None])),
                a.GEN_AI_CONVERSATION_ID: draw(st.sampled_from(["u", "v", None, None])),
            }
            records.append(chat(number, model=draw(st.sampled_from(["gpt-4o", "gpt-4o-2024-01-01", "other"])), attributes=content, **where))
        elif made == "tool":
            name, given_ = draw(st.sampled_from(_TOOLS)), draw(st.sampled_from(_ARGUMENTS))
            records.append(tool(number, name=name, call=call, args=given_, **where))
        elif made == "agent":
            records.append(agent(number, name=draw(st.sampled_from(["sub", "helper"])), **where))
        elif made == "own":
            del where["scope"], where["status"]
            named = {a.STEP_PARENT: draw(st.sampled_from([None, sid(1), sid(count)]))}
            kind = draw(st.sampled_from(["tool_call", "model_call", "agent"]))
            records.append(
                own(number, kind=kind, seq=draw(st.integers(0, 20)), run=draw(st.sampled_from([None, RUN])), attributes=named, **where)
            )
        else:
            told: dict[str, Any] = {
                "mcp": {"mcp.method.name": "tools/call", a.GEN_AI_TOOL_NAME: "search"},
                "handoff": {a.GEN_AI_OPERATION_NAME: "handoff", "gen_ai.handoff.to_agent": "sub"},
                "plain": {},
            }[made]
            records.append(span(number, attributes=told, **where))
    return records


@settings(max_examples=1000 if FULL else 80, deadline=None)
@given(any_records(), st.randoms(use_true_random=False), st.sampled_from([None, *JOINS]))
def test_whatever_the_records_are_like_every_span_is_somewhere_once(records: list[Record], shuffler: random.Random, join: Any) -> None:
    runs = build_runs(records, join=join)
    again = [*records, *shuffler.sample(records, k=len(records) // 2)]
    shuffler.shuffle(again)
    assert build_runs(again, join=join) == runs
    for run in runs:
        assert [step.seq for step in run.steps] == list(range(1, len(run.steps) + 1))
        earlier = [(step.parent_seq, step.requested_by, step.retry_of) for step in run.steps]
        assert all(other is None or other < seq for seq, others in enumerate(earlier, 1) for other in others)
    counted = sum(len(run.steps) + run.unclassified_spans for run in runs)
    spans = {(record.trace_id, record.span_id) for record in records}
    assert len(spans) - len(runs) <= counted <= len(spans), "every span is a step, the root of a run, or counted"

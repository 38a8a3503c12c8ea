"""One call that several instrumentations recorded, in every way in which they hang their spans."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import TRACE, agent, asking, chat, own, own_root, said, sid, span, tool, wired
from spanreplay.replay.model import Run
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.rebuilding.assembly import notes
from spanreplay.replay.rebuilding.grouping import read_spans
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.same_call import arguments_conflict, mentions
from spanreplay.replay.rebuilding.tree import SpanKey, build
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_CLIENT, KIND_SERVER, STATUS_ERROR, Record, Scope, SpanRecord

FRAMEWORK = Scope(name="framework")
CLIENT = Scope(name="client")
MCP = {"mcp.method.name": "tools/call", a.GEN_AI_TOOL_NAME: "search"}


def one(records: Sequence[Record]) -> Run:
    (run,) = build_runs(records)
    return run


def letters(run: Run) -> str:
    return "".join({"model_call": "M", "tool_call": "T", "agent": "A"}.get(step.kind, "?") for step in run.steps)


def doubled(run: Run) -> list[str]:
    return [reason.detail for reason in run.grade_reasons if reason.code == "double-instrumentation"]


def answer(identity: str) -> dict[str, str]:
    return {a.GEN_AI_RESPONSE_ID: identity}


def failed(number: int, parent: int, **more: Any) -> SpanRecord:
    return chat(number, parent, status=STATUS_ERROR, attributes={a.ERROR_TYPE: "RateLimitError", a.GEN_AI_OUTPUT_MESSAGES: None}, **more)


# ---- models, nested --------------------------------------------------------------------------------------------------


def test_a_call_in_three_spans_and_a_request_is_one_step() -> None:
    records = [
        agent(1, end=900),
        chat(2, 1, start=5, end=100, model="openai/gpt-4o", scope=FRAMEWORK),
        chat(3, 2, start=6, end=99, content=False, scope=CLIENT, attributes={a.GEN_AI_RESPONSE_MODEL: "gpt-4o-2024-08-06"}),
        chat(4, 3, start=7, end=98, content=False, scope=Scope(name="http"), attributes={a.GEN_AI_USAGE_INPUT_TOKENS: 9}),
        span(5, 4, name="POST", start=8, end=97),
    ]
    run = one(records)
    assert letters(run) == "M"
    step = run.steps[0]
    assert step.input is not None
    assert step.output is not None
    assert step.usage == {"input_tokens": 9}
    assert step.versions["model"]["response"] == "gpt-4o-2024-08-06"
    assert len(doubled(run)) == 2
    assert all("counted once" in detail for detail in doubled(run))
    assert run.unclassified_spans == 3


def test_the_tree_says_what_became_of_each_span() -> None:
    records = [agent(1, end=900), chat(2, 1, start=5, end=100, scope=FRAMEWORK), chat(3, 2, start=6, content=False, scope=CLIENT)]
    forest = build(records)
    told = notes(forest, read_spans(forest))
    assert told == {SpanKey(TRACE, sid(1)): "the run", SpanKey(TRACE, sid(3)): f"the same call as {sid(2)}"}


@pytest.mark.parametrize(
    ("outer", "inner", "count"),
    [
        ("gpt-4o", "openai/gpt-4o", 1),
        ("gpt-4o", "gpt-4o-2024-08-06", 1),
        ("publishers/google/models/gemini-2.0-flash", "gemini-2.0-flash-001", 1),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4", 1),
        ("llama3", "llama3:8b", 1),
        ("gpt-4o", "gpt-4o-mini", 2),
        ("gpt-4", "gpt-4.1", 2),
        ("o1", "foo1", 2),
    ],
)
def test_names_of_one_model_are_known_and_of_two_kept_apart(outer: str, inner: str, count: int) -> None:
    assert len(one([chat(1, end=100, model=outer), chat(2, 1, start=5, model=inner)]).steps) == count


def test_of_attempts_the_span_around_is_no_call_whatever_model_answered() -> None:
    records = [
        chat(1, end=200, model="router", scope=FRAMEWORK),
        failed(2, 1, start=5, end=20, model="gpt-4o"),
        failed(3, 1, start=25, end=40, model="gpt-4o"),
        chat(4, 1, start=50, end=190, model="claude-x", attributes={a.GEN_AI_OUTPUT_MESSAGES: said("other words", "assistant")}),
    ]
    run = one(records)
    assert [step.span_id for step in run.steps] == [sid(2), sid(3), sid(4)]
    assert [(step.attempt, step.retry_of) for step in run.steps] == [(1, None), (2, 1), (1, None)]
    assert any("is around 3 calls and is none of its own" in detail for detail in doubled(run))


def test_a_span_around_several_calls_gives_none_of_them_its_content() -> None:
    records = [chat(1, end=200, scope=FRAMEWORK), *(chat(n, 1, content=False, start=n * 10, scope=CLIENT) for n in (2, 3))]
    run = one(records)
    assert letters(run) == "MM"
    assert [step.output for step in run.steps] == [None, None]
    assert run.grade == "structure"


def test_an_answer_after_failures_that_alone_were_recorded_is_a_call_too() -> None:
    run = one([chat(1, end=100), failed(2, 1, start=5)])
    assert [step.outcome for step in run.steps] == ["ok", "error"]


def test_a_failure_above_an_answer_does_not_undo_it() -> None:
    outer = chat(1, end=100, status=STATUS_ERROR, status_message="cannot parse", attributes={a.GEN_AI_OUTPUT_MESSAGES: None})
    (step,) = one([outer, chat(2, 1, start=5)]).steps
    assert (step.outcome, step.span_id) == ("ok", sid(2))
    (cut,) = one([outer, chat(2, 1, start=5, content=False)]).steps
    assert cut.outcome == "error"
    assert cut.error["message"] == "cannot parse"


def test_equal_long_answers_prove_what_names_hide() -> None:
    text = {a.GEN_AI_OUTPUT_MESSAGES: said("a sentence that nobody says twice by chance", "assistant")}
    run = one([chat(1, end=100, model="my-deployment", attributes=text), chat(2, 1, start=5, model="gpt-4o", attributes=text)])
    assert letters(run) == "M"


def test_the_members_that_only_one_record_has_are_added() -> None:
    tools = json.dumps([{"type": "function", "name": "search"}])
    outer = chat(1, end=100, scope=FRAMEWORK, attributes={a.GEN_AI_TOOL_DEFINITIONS: tools, "gen_ai.request.seed": 7})
    inner = chat(2, 1, start=5, scope=CLIENT, attributes={"gen_ai.request.temperature": 0.5, a.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"]})
    (step,) = one([outer, inner]).steps
    assert step.span_id == sid(2)
    assert step.input["tools"][0]["name"] == "search"
    assert step.input["params"]["seed"] == 7
    assert step.input["params"]["temperature"] == 0.5


def test_a_conversation_made_one_text_does_not_hide_its_messages() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))}
    flat = {a.GEN_AI_INPUT_MESSAGES: said("system: be brief\nuser: hello"), a.GEN_AI_OUTPUT_MESSAGES: said("None", "assistant")}
    records = [chat(2, 1, start=5, end=100, scope=FRAMEWORK, attributes=asked), chat(3, 2, start=6, scope=CLIENT, attributes=flat)]
    run = one([agent(1, end=900), *records, tool(4, 1, start=200)])
    assert run.steps[0].span_id == sid(2)
    assert run.steps[1].call_id == "c1"


# ---- models and tools, side by side ----------------------------------------------------------------------------------


def test_two_instrumentations_under_one_parent_record_one_call() -> None:
    records = [
        agent(1, end=900),
        chat(2, 1, start=5, end=100, scope=FRAMEWORK, attributes=answer("r1")),
        chat(3, 1, start=6, end=99, scope=CLIENT, content=False, attributes=answer("r1")),
        tool(4, 1, start=110, end=200, call="c", scope=FRAMEWORK),
        tool(5, 1, start=112, end=190, call="c", scope=CLIENT, result=None),
    ]
    run = one(records)
    assert [step.span_id for step in run.steps] == [sid(2), sid(4)]
    assert len(doubled(run)) == 2
    assert run.unclassified_spans == 2


@pytest.mark.parametrize(
    "other",
    [
        chat(3, 1, start=6, end=99, scope=FRAMEWORK, attributes=answer("r1")),
        chat(3, 1, start=101, end=150, scope=CLIENT, attributes=answer("r1")),
        chat(3, 1, start=6, end=99, scope=CLIENT, attributes=answer("r2")),
        chat(3, 1, start=6, end=99, scope=CLIENT),
        chat(3, 1, start=6, end=99, scope=CLIENT, model="another", attributes=answer("r1")),
    ],
    ids=["same instrumentation", "later", "other answer", "no id", "other model"],
)
def test_without_proof_two_calls_stay_two(other: SpanRecord) -> None:
    assert letters(one([agent(1, end=900), chat(2, 1, start=5, end=100, scope=FRAMEWORK, attributes=answer("r1")), other])) == "MM"


def test_two_parallel_calls_with_one_id_recorded_twice_are_two() -> None:
    spans = [
        chat(number, 1, start=start, end=100, scope=scope, attributes=answer("mock"))
        for number, (start, scope) in enumerate(((5, FRAMEWORK), (6, CLIENT), (7, FRAMEWORK), (8, CLIENT)), 2)
    ]
    assert letters(one([agent(1, end=900), *spans])) == "MM"
    nested = [
        chat(2, 1, start=5, end=100, scope=FRAMEWORK, attributes=answer("mock")),
        chat(3, 2, start=6, end=90, scope=CLIENT, attributes=answer("mock")),
        chat(4, 1, start=5, end=100, scope=FRAMEWORK, attributes=answer("mock")),
        chat(5, 4, start=6, end=90, scope=CLIENT, attributes=answer("mock")),
    ]
    assert letters(one([agent(1, end=900), *nested])) == "MM"


def test_the_calls_that_an_answer_asks_for_are_proof_too() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))}
    records = [chat(2, 1, start=5, end=90, scope=FRAMEWORK, attributes=asked), chat(3, 1, start=6, end=80, scope=CLIENT, attributes=asked)]
    assert letters(one([agent(1, end=900), *records])) == "M"


def by_callbacks(number: int, start: int, named: dict[str, str], words: dict[str, str]) -> list[SpanRecord]:
    """A model call as two instrumentations are told of it, one after the other; the second knows no id of the answer."""
    first = chat(number, 1, start=start, end=start + 80, scope=FRAMEWORK, attributes={**named, **words})
    return [first, chat(number + 1, 1, start=start + 1, end=start + 90, scope=CLIENT, attributes=words)]


def test_an_answer_without_an_id_beside_one_with_it_is_the_same_by_the_calls_it_asks_for_and_then_by_its_words() -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))}
    calls, words = by_callbacks(2, 5, answer("r1"), asked), by_callbacks(4, 200, answer("r2"), {})
    assert letters(one([agent(1, end=900), *calls, *words])) == "MM"
    assert letters(one([agent(1, end=900), *words])) == "MM"  # nothing shows that both recorded the same calls
    twice = [*words, *by_callbacks(6, 202, answer("r3"), {})]
    assert letters(one([agent(1, end=900), *calls, *twice])) == "MMM"
    others = by_callbacks(6, 400, answer("r3"), {a.GEN_AI_OUTPUT_MESSAGES: said("no", "assistant")})
    others[1] = replace(others[1], attributes={**others[1].attributes, a.GEN_AI_OUTPUT_MESSAGES: said("yes", "assistant")})
    assert letters(one([agent(1, end=900), *calls, *others])) == "MMM"


@pytest.mark.parametrize(("args", "count"), [('"x"', 1), ('{"args": ["x"], "kwargs": {}}', 1), ('"y"', 2), ('{"p": "x"}', 2)])
def test_a_call_told_without_its_id_and_the_names_of_its_arguments_is_the_one_with_them(args: str, count: int) -> None:
    asked = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))}
    records = [
        *by_callbacks(2, 5, answer("r1"), asked),
        tool(4, 1, start=200, end=280, call="c2", args='{"q": "x"}', result=None, scope=FRAMEWORK, status=STATUS_ERROR),
        tool(5, 1, start=201, end=290, args=args, result=None, scope=CLIENT, status=STATUS_ERROR),
    ]
    assert letters(one([agent(1, end=900), *records])) == "M" + count * "T"


def test_a_reused_id_at_one_time_is_told_apart_by_the_arguments() -> None:
    records = [
        tool(2, 1, start=5, end=90, call="c", args='{"n":1}', scope=FRAMEWORK),
        tool(3, 1, start=6, end=80, call="c", args='{"n":2}', scope=CLIENT),
    ]
    assert letters(one([agent(1, end=900), *records])) == "TT"


def test_calls_of_a_tool_without_ids_are_found_by_what_they_were_asked_and_when() -> None:
    records = [
        tool(2, 1, start=5, end=90, call=None, args='{"n":1}', scope=FRAMEWORK, result="7"),
        tool(3, 1, start=5, end=95, call=None, args='{"n":1}', scope=FRAMEWORK, result="8"),
        tool(4, 1, start=7, end=80, call="c1", args='{"n":1}', scope=CLIENT, result="8"),
        tool(5, 1, start=8, end=80, call="c2", args='{"n":1}', scope=CLIENT, result="7"),
    ]
    run = one([agent(1, end=900), *records])
    assert {step.call_id: step.output for step in run.steps} == {"c1": {"result": "8"}, "c2": {"result": "7"}}
    assert letters(one([agent(1, end=900), *records[:1], *records[2:3]])) == "TT", "of one that gave something else nothing is known"
    later = tool(4, 1, start=80, end=120, call="c1", args='{"n":1}', scope=CLIENT, result="7")
    assert letters(one([agent(1, end=900), records[0], later])) == "TT", "neither is around the other"


def test_a_run_recorded_twice_side_by_side_is_one() -> None:
    def tree(first: int, scope: Scope) -> list[SpanRecord]:
        return [
            agent(first, 1, name="helper", start=first, end=900, scope=scope),
            chat(first + 1, first, start=20, end=100, scope=scope, attributes=answer("r1")),
            agent(first + 2, first, name="sub", start=110, end=600, scope=scope),
            tool(first + 3, first + 2, start=120, end=200, call="c", scope=scope),
            chat(first + 4, first, start=700, end=800, scope=scope, attributes=answer("r2")),
        ]

    run = one([span(1, end=1000), *tree(2, FRAMEWORK), *tree(10, CLIENT)])
    assert letters(run) == "MATM"
    assert run.agent_name == "helper"
    assert run.steps[2].parent_seq == 2
    assert "several-roots" not in {reason.code for reason in run.grade_reasons}


def test_the_record_that_knows_what_is_around_it_says_where_the_step_is() -> None:
    records = [
        agent(1, end=900),
        agent(2, 1, name="sub", start=5, end=500),
        chat(3, 1, start=10, end=100, scope=CLIENT, attributes=answer("r1")),
        chat(4, 2, start=11, end=99, content=False, scope=FRAMEWORK, attributes=answer("r1")),
    ]
    run = one(records)
    assert [(step.span_id, step.parent_seq, step.agent) for step in run.steps] == [(sid(2), None, "sub"), (sid(3), 1, "sub")]


# ---- tools and agents, nested ----------------------------------------------------------------------------------------


def test_framework_protocol_and_body_of_one_tool_call_are_one_step() -> None:
    records = [
        tool(1, name="mcp__web__search", call="c", end=100, scope=FRAMEWORK),
        span(2, 1, start=5, end=90, kind=KIND_CLIENT, attributes=MCP),
        span(3, 2, start=6, end=80, kind=KIND_SERVER, attributes=MCP),
        tool(4, 3, start=7, end=70, scope=Scope(name="native"), args="{}"),
    ]
    run = one(records)
    assert [(step.name, step.call_id, step.span_id) for step in run.steps] == [("mcp__web__search", "c", sid(1))]
    assert len(doubled(run)) == 3


def test_a_tool_call_that_the_protocol_sent_twice_is_one_call() -> None:
    sent = [
        span(2, 1, start=5, end=20, attributes=MCP, status=STATUS_ERROR),
        span(3, 1, start=30, end=90, attributes=MCP),
    ]
    (step,) = one([tool(1, call="c", end=100), *sent]).steps
    assert (step.outcome, step.output) == ("ok", {"result": "found"})


def test_tools_that_a_tool_calls_are_calls_of_their_own() -> None:
    other = {**MCP, a.GEN_AI_TOOL_NAME: "fetch"}
    assert letters(one([tool(1, call="c", end=100), span(2, 1, start=5, attributes=other)])) == "TT"
    inside = [tool(2, 1, start=5, scope=CLIENT, args='{"n":2}'), tool(3, 1, start=30, scope=CLIENT, args='{"n":3}')]
    assert letters(one([tool(1, end=100, scope=FRAMEWORK, args='{"n":1}'), *inside])) == "TTT"
    assert letters(one([tool(1, end=100, scope=FRAMEWORK, args='{"n":1}'), inside[0]])) == "TT"


def test_a_failure_that_the_framework_told_as_a_result_was_told_by_the_tool() -> None:
    outer = tool(1, call="c", end=100, result='"An error occurred"', scope=FRAMEWORK)
    inner = tool(2, 1, start=5, scope=CLIENT, result=None, status=STATUS_ERROR, status_message="boom")
    (step,) = one([outer, inner]).steps
    assert (step.outcome, step.output, step.error["message"]) == ("tool_error", {"result": "An error occurred"}, "boom")
    raised = tool(1, call="c", end=100, result=None, status=STATUS_ERROR, status_message="invalid", scope=FRAMEWORK)
    (step,) = one([raised, tool(2, 1, start=5, scope=CLIENT)]).steps
    assert (step.outcome, step.error["message"]) == ("error", "invalid")


def test_an_agent_recorded_twice_is_one_and_the_run_knows_what_either_says() -> None:
    asked = {a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: said("done", "assistant")}
    records = [
        agent(1, end=900, scope=FRAMEWORK),
        agent(2, 1, start=1, end=899, scope=CLIENT, attributes=asked),
        chat(3, 2, start=5),
    ]
    run = one(records)
    assert letters(run) == "M"
    assert run.input["messages"][0]["parts"][0]["content"] == "q"
    assert run.steps[0].parent_seq is None
    assert len(doubled(run)) == 1
    assert letters(one([agent(1, end=900), agent(2, 1, name="other", start=1, end=899, scope=CLIENT)])) == "A"
    assert letters(one([agent(1, end=900), agent(2, 1, start=1, end=899)])) == "A", "one instrumentation records an agent once"


def test_an_agent_that_one_instrumentation_tells_of_twice_is_one_where_another_recorded_it_too() -> None:
    twice = [
        agent(2, 1, op="invoke_workflow", start=1, end=899, scope=FRAMEWORK),
        agent(3, 2, start=2, end=898, scope=FRAMEWORK),
        chat(4, 3, start=5),
    ]
    assert letters(one([agent(1, end=900, scope=CLIENT), *twice])) == "M"
    assert letters(one([agent(1, name="other", end=900, scope=CLIENT), *twice])) == "AM", "a workflow that is only around its agent"
    work = chat(6, 2, start=500)
    assert letters(one([agent(1, name="other", end=900, scope=CLIENT), *twice, work])) == "AAMM", "one that asks a model itself"
    beside = agent(5, 1, start=500, end=899, scope=FRAMEWORK)
    assert letters(one([agent(1, end=900, scope=CLIENT), *twice[1:2], twice[0], twice[2], beside])) == "AMA"


def test_our_own_record_of_a_call_is_the_step() -> None:
    records = [
        chat(2, 1, start=5, end=100, attributes=answer("r1")),
        own(3, 2, "model_call", seq=3, run=None, start=10, end=90, attributes=wired(**answer("r1"))),
    ]
    (step,) = one([agent(1, end=900), *records]).steps
    assert (step.span_id, step.grade) == (sid(3), "exact")


def test_many_doubles_are_counted_and_only_some_are_named() -> None:
    run = one([chat(n, n - 1 or None, start=n, end=1000 - n) for n in range(1, 40)])
    assert letters(run) == "M"
    assert len(doubled(run)) == 9
    assert "30 more spans" in doubled(run)[-1]


# ---- the evidence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one_", "other", "same"),
    [
        ("search", "search", True),
        ("github.search", "search", True),
        ("search", "mcp__github__search", True),
        ("plugin-search", "search", True),
        ("research", "search", False),
        ("search", "fetch", False),
    ],
)
def test_names_of_one_tool(one_: str, other: str, same: bool) -> None:
    assert same_tool(one_, other) is same


@pytest.mark.parametrize(
    ("one_", "other", "conflict"),
    [
        ({"n": 1}, {"n": 1}, False),
        ({"n": 1}, {"n": 2}, True),
        ({"n": 1}, {"n": 1, "top": 3}, False),
        ({"n": 1}, {"n": 2, "top": 3}, True),
        ({"n": 1}, {"top": 3}, False),
        ('{"n": 1}', {"n": 1}, False),
        ("Paris", {"city": "Paris"}, False),
        (None, {"n": 1}, False),
        ("Paris", "Oslo", True),
    ],
)
def test_arguments_conflict_where_they_say_the_same_kind_of_thing(one_: Any, other: Any, conflict: bool) -> None:
    def view(value: Any) -> Mapping[str, Any] | None:
        return None if value is None else {"arguments": value}

    assert arguments_conflict(view(one_), view(other)) is conflict
    assert arguments_conflict(view(other), view(one_)) is conflict


def test_a_name_is_found_in_another_without_case_and_punctuation() -> None:
    assert mentions("transfer_to_Booking-Agent", "booking agent")
    assert not mentions("transfer_to_booking", "it"), "too short to mean anything"
    assert mentions("ask_研究员_now", "研究员")
    assert not mentions("anything", None)


# ---- ours, and theirs told by callbacks --------------------------------------------------------------------------------

CALLBACKS = Scope(name="callbacks")


def our_run() -> SpanRecord:
    return own_root(1, start=0, end=900, attributes={a.RUN_PATH: "agent:helper#0"})


def our_step(number: int, kind: str, name: str, *, start: int, end: int, **more: Any) -> SpanRecord:
    attributes = {a.STEP_NAME: name, a.STEP_PATH: f"{kind}:{name}#{number}", **more}
    return own(number, 1, kind, seq=number, start=start, end=end, attributes=attributes)


def our_call(number: int, *, start: int, end: int, gave: str, asked: str = "hello") -> SpanRecord:
    content = {a.GEN_AI_INPUT_MESSAGES: said(asked), a.GEN_AI_OUTPUT_MESSAGES: gave, a.GEN_AI_RESPONSE_ID: f"r{number}"}
    return our_step(number, "model_call", "m", start=start, end=end, **{**wired(), a.GEN_AI_REQUEST_MODEL: "gpt-4o", **content})


def told_call(number: int, parent: int, *, start: int, end: int, gave: str, asked: str = "hello") -> SpanRecord:
    content = {a.GEN_AI_INPUT_MESSAGES: said(asked), a.GEN_AI_OUTPUT_MESSAGES: gave}
    return chat(number, parent, start=start, end=end, scope=CALLBACKS, attributes=content)


def test_a_call_that_callbacks_told_of_beside_ours_is_one_step() -> None:
    asks, yes = asking(("c1", "search", {})), said("yes", "assistant")
    records = [
        our_run(),
        span(2, 1, name="chain", start=1, end=890),
        told_call(3, 2, start=10, end=100, gave=asks),
        our_call(4, start=20, end=90, gave=asks),
        told_call(5, 2, start=200, end=300, gave=yes, asked="go on"),
        our_call(6, start=210, end=290, gave=yes, asked="go on"),
    ]
    run = one(records)
    assert [step.span_id for step in run.steps] == [sid(4), sid(6)]
    assert run.grade == "exact"
    assert len(doubled(run)) == 2


def test_calls_beside_each_other_that_gave_other_answers_or_ended_otherwise_are_apart() -> None:
    theirs = told_call(3, 1, start=10, end=100, gave=said("yes", "assistant"))
    assert letters(one([our_run(), theirs, our_call(4, start=20, end=90, gave=said("no", "assistant"))])) == "MM"
    refused = our_call(4, start=20, end=40, gave="[]")
    refused = replace(refused, attributes={**refused.attributes, a.STEP_OUTCOME: "error"})
    run = one([our_run(), theirs, refused, our_call(5, start=50, end=90, gave=said("yes", "assistant"))])
    assert [(step.span_id, step.outcome) for step in run.steps] == [(sid(4), "error"), (sid(5), "ok")]


def test_two_calls_of_ours_are_never_one_whatever_callbacks_told() -> None:
    same = said("yes", "assistant")
    theirs = [told_call(10 + n, 1, start=10 + n, end=100 - n, gave=same) for n in range(3)]
    ours = [our_call(20 + n, start=20 + n, end=90 - n, gave=same) for n in range(3)]
    assert [step.span_id for step in one([our_run(), *theirs, *ours]).steps] == [sid(20), sid(21), sid(22)]


def test_our_agent_and_the_workflow_and_the_agents_that_others_tell_in_it_are_one() -> None:
    flow = agent(2, 1, name="Agent workflow", start=1, end=890, scope=CALLBACKS, kind=KIND_SERVER)
    named = agent(3, 2, name="helper", start=2, end=400, scope=CALLBACKS)
    given = agent(4, 2, name="billing", start=410, end=880, scope=CALLBACKS)
    assert [step.name for step in one([our_run(), flow, named]).steps] == []
    assert [step.name for step in one([our_run(), flow, named, given]).steps] == ["billing"]
    direct = [replace(told, parent_span_id=sid(1)) for told in (named, given)]
    assert [step.name for step in one([our_run(), *direct]).steps] == ["billing"]


def test_a_sub_agent_and_a_hand_off_that_others_tell_beside_ours_are_one_step() -> None:
    expert = our_step(5, "agent", "expert", start=10, end=200, **{a.GEN_AI_AGENT_NAME: "expert"})
    run = one([our_run(), expert, agent(6, 1, name="expert", start=11, end=199, scope=CALLBACKS)])
    assert [step.span_id for step in run.steps] == [sid(5)]
    openinference = Scope(name="openinference.instrumentation.openai_agents")
    told = {"openinference.span.kind": "TOOL"}
    theirs = span(3, 1, name="handoff to billing", start=11, end=29, scope=openinference, attributes=told)
    assert [step.span_id for step in one([our_run(), our_step(2, "handoff", "billing", start=10, end=30), theirs]).steps] == [sid(2)]


def test_a_failed_call_that_two_instrumentations_wrote_side_by_side_is_one() -> None:
    root = agent(1, end=900)
    outer = failed(2, 1, start=10, end=60, scope=FRAMEWORK)
    inner = failed(3, 1, start=20, end=50, scope=CLIENT, content=False)
    assert letters(one([root, outer, inner])) == "M"
    assert letters(one([root, outer, replace(inner, scope=FRAMEWORK)])) == "MM", "one instrumentation writes a call once"
    assert letters(one([root, outer, replace(inner, end_ns=70)])) == "MM", "neither lasted over the other"
    again = (failed(4, 1, start=100, end=160, scope=FRAMEWORK), failed(5, 1, start=120, end=150, scope=CLIENT, content=False))
    assert letters(one([root, outer, inner, *again])) == "MM"

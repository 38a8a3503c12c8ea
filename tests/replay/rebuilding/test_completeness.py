"""What is missing or cut of a run, by span and field."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, own, own_root, span, tool, wired
from spanreplay.replay.outgoing import with_digests
from spanreplay.replay.rebuilding.completeness import Gap, gaps, losses
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, Record, Scope, SpanRecord


def found(*records: Record) -> list[Gap]:
    runs = build_runs(records)
    listed = gaps(runs, records)
    assert list(listed) == [run.run_id for run in runs]
    return [gap for one in listed.values() for gap in one]


def test_a_whole_run_has_none() -> None:
    assert found(agent(1), chat(2, 1), tool(3, 1)) == []
    assert found(own_root(1), own(2, 1, kind="model_call", attributes=wired())) == []


def test_a_cut_value_names_span_field_and_limit_once() -> None:
    whole = chat(2, 1)
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 300}]}])
    cut = replace(whole, attributes={**whole.attributes, a.GEN_AI_INPUT_MESSAGES: messages[:200]})
    (gap,) = found(agent(1), cut)
    assert (gap.code, gap.span_id, gap.field, gap.limit, gap.step) == ("cut", whole.span_id, a.GEN_AI_INPUT_MESSAGES, 200, 1)
    assert "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in gap.advice


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ('[{"role":"user","parts":[{"type":"text","content":"to ****"}]}]', {"redaction.masked.count": "1"}),
        ('[{"role":"cut","parts":[{"type":"text","content":"to ana… 9000 bytes in the replay copy"}]}]', {}),
        ('{"cut":"over 2000 characters; the replay copy has them"}', {}),
    ],
)
def test_what_a_gateway_has_masked_or_trimmed_is_in_its_replay_copy(value: str, more: dict[str, str]) -> None:
    whole = chat(2, 1, attributes={a.STEP_KIND: "model_call", a.GEN_AI_INPUT_MESSAGES: '[{"role":"user","parts":[]}]'})
    view = with_digests(whole)
    (gap,) = found(own_root(1), replace(view, attributes={**view.attributes, a.GEN_AI_INPUT_MESSAGES: value, **more}))
    assert (gap.code, gap.field) == ("cut", a.GEN_AI_INPUT_MESSAGES)
    assert "import its replay copy" in gap.advice
    (other,) = found(own_root(1), replace(view, attributes={**view.attributes, a.GEN_AI_INPUT_MESSAGES: "[] ****"}))
    assert "import its replay copy" not in other.advice


def test_what_no_dialect_reads_is_looked_at_too() -> None:
    odd = replace(agent(1), attributes={**agent(1).attributes, "app.state": '{"rows": [' + "1, " * 60})
    assert [(gap.code, gap.field, gap.step) for gap in found(odd, chat(2, 1))] == [("cut", "app.state", None)]


def test_absent_content_is_a_gap_of_what_a_replay_has_to_answer_only() -> None:
    listed = found(agent(1), chat(2, 1, content=False))
    assert {(gap.code, gap.step) for gap in listed} == {("input-absent", 1), ("output-absent", 1)}
    assert all("CAPTURE" in gap.advice and "import the log records too" in gap.advice for gap in listed)


def test_dropped_ends_parents_and_logs() -> None:
    lost = LogRecord(time_ns=5, trace_id=chat(2).trace_id, span_id="00000000000000ee", event_name="x")
    listed = found(replace(agent(1, "00000000000000ff"), dropped_attributes=2, dropped_links=1), chat(2, 1, end=None), lost)
    codes = {(gap.code, gap.step) for gap in listed}
    assert codes == {
        ("dropped-attributes", None), ("dropped-links", None), ("missing-parent", None), ("never-ended", 1), ("log-without-span", None),
    }  # fmt: skip


def test_a_parent_in_another_process_is_not_missing() -> None:
    assert found(replace(agent(1, "00000000000000ff"), flags=0x300), chat(2, 1)) == []


def test_losses_of_a_source_are_told_from_what_it_only_rewrote() -> None:
    entries = [{"code": "rejected", "spans": 1}, {"code": "time-us", "spans": 9}, {"code": "document-cut", "spans": 2}]
    assert [entry["code"] for entry in losses(entries)] == ["rejected", "document-cut"]


def asks(number: int, start: int, *told: str) -> Record:
    """A model call that asks for a search, and is told the results of some calls."""
    call = {"type": "tool_call", "id": f"c{number}", "name": "search", "arguments": {}}
    answers = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": name, "response": "r"}]} for name in told]
    attributes = {
        a.GEN_AI_INPUT_MESSAGES: json.dumps([{"role": "user", "parts": [{"type": "text", "content": "q"}]}, *answers]),
        a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [call]}]),
    }
    return chat(number, 1, start=start, attributes=attributes)


def test_a_call_that_was_answered_and_is_in_no_span_is_a_gap() -> None:
    listed = found(agent(1, start=0, end=100), asks(2, 10), chat(3, 1, start=30), tool(4, 1, start=40))
    assert listed == [], "a later model call was made without it: nobody ran it"
    listed = found(agent(1, start=0, end=100), asks(2, 10), asks(3, 30, "c2"), tool(4, 1, start=50, call="c3"))
    assert [(gap.code, gap.step) for gap in listed] == [("call-without-span", None)]


def test_a_call_that_the_record_stops_before_is_a_gap() -> None:
    listed = found(agent(1, start=0, end=100), chat(3, 1, start=10), asks(2, 30))
    assert [(gap.code, gap.step) for gap in listed] == [("call-not-run", 2)]
    assert "record stops" in listed[0].detail


def test_what_another_instrumentation_tells_of_our_own_run_makes_it_no_worse() -> None:
    def placed(number: int, kind: str, **more: Any) -> Record:
        return own(number, 1, kind=kind, seq=number, attributes={a.STEP_PATH: f"{kind}:x#{number}", **more})

    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 300}]}])[:200]
    told = chat(9, 1, start=100, end=600, model="other", scope=Scope(name="callbacks"), attributes={a.GEN_AI_INPUT_MESSAGES: messages})
    records = [own_root(1, attributes={a.RUN_PATH: "agent:x#0"}), placed(2, "model_call", **wired()), told]
    (run,) = build_runs(records)
    assert [step.dialect for step in run.steps] == ["gen_ai", "spanreplay"]
    assert run.grade == "exact"
    assert found(*records) == []


def told(number: int, start: int, *messages: Any, answer: Any) -> SpanRecord:
    """A model call with these messages and this answer."""
    attributes = {
        a.GEN_AI_INPUT_MESSAGES: json.dumps(messages),
        a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [answer]}]),
    }
    return chat(number, 1, start=start, attributes=attributes)


def said(role: str, text: str) -> Any:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def searched(call_id: str) -> list[Any]:
    call = {"type": "tool_call", "id": call_id, "name": "search", "arguments": {}}
    response = {"type": "tool_call_response", "id": call_id, "response": f"result of {call_id}"}
    return [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [response]}]


def test_an_answer_between_two_requests_that_no_span_gave_is_a_gap() -> None:
    first, second = searched("c1"), searched("c2")
    asked, done = said("user", "q"), {"type": "text", "content": "done"}
    begins = told(2, 10, asked, answer=first[0]["parts"][0])
    middle = told(4, 40, asked, *first, answer=second[0]["parts"][0])
    ends = told(6, 70, asked, *first, *second, answer=done)
    tools = [tool(3, 1, start=20, call="c1"), tool(5, 1, start=50, call="c2")]
    assert found(agent(1, end=100), begins, middle, ends, *tools) == []
    listed = found(agent(1, end=100), begins, ends, *tools)
    assert [(gap.code, gap.step) for gap in listed] == [("answer-without-span", 4)]
    listed = found(agent(1, end=100), middle, ends, *tools)
    assert [(gap.code, gap.step) for gap in listed] == [("answer-without-span", 2)], "a tool ran that nothing asked for"


def test_what_a_conversation_begins_with_is_no_lost_answer() -> None:
    example = [said("user", "1+1"), said("assistant", "the example says two"), *searched("c0"), said("user", "q")]
    first = searched("c1")
    done = {"type": "text", "content": "done"}
    calls = [told(2, 10, *example, answer=first[0]["parts"][0]), told(4, 40, *example, *first, answer=done)]
    assert found(agent(1, end=100), *calls, tool(3, 1, start=20, call="c1")) == []
    assert found(agent(1, end=100), told(2, 10, *example, answer=done)) == []


def test_a_turn_of_a_talk_without_its_span_is_a_gap_and_a_word_put_into_its_mouth_is_none() -> None:
    talk = [said("user", "one"), said("assistant", "first"), said("user", "two"), said("assistant", "second"), said("user", "three")]
    one, last = (
        told(n, n * 10, *talk[:size], answer={"type": "text", "content": text}) for n, size, text in ((2, 1, "first"), (4, 5, "third"))
    )
    assert [gap.code for gap in found(agent(1, end=100), one, last)] == ["answer-without-span"]
    prefilled = told(4, 40, *talk[:4], answer={"type": "text", "content": "third"})
    assert found(agent(1, end=100), one, prefilled) == []


def test_a_result_that_was_told_under_an_id_without_a_call_is_that_of_a_tool_that_ran() -> None:
    first = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a result of some length"}]}]
    ran = tool(3, 1, start=20, result='"a result of some length"')
    last = told(4, 40, said("user", "q"), *first, answer={"type": "text", "content": "done"})
    asked = told(2, 10, said("user", "q"), answer=searched("c1")[0]["parts"][0])
    assert found(agent(1, end=100), asked, ran, last) == []
    listed = found(agent(1, end=100), ran, last)
    assert [(gap.code, gap.step) for gap in listed] == [("answer-without-span", 2)]
    other = tool(3, 1, start=20, result='"another result"')
    assert found(agent(1, end=100), other, last) == []


def test_an_answer_in_words_that_names_a_tool_before_what_it_gave_is_one() -> None:
    words = "Calling tools: [{'id': 'c1', 'function': {'name': 'search'}}]"
    history = [said("user", "q"), said("assistant", words), said("user", "Observation: found it all")]
    ran = tool(3, 1, start=20, result='"found it all"')
    last = told(4, 40, *history, answer={"type": "text", "content": "done"})
    asked = told(2, 10, said("user", "q"), answer={"type": "text", "content": words})
    assert found(agent(1, end=100), asked, ran, last) == []
    assert [(gap.code, gap.step) for gap in found(agent(1, end=100), ran, last)] == [("answer-without-span", 2)]
    assert found(agent(1, end=100), tool(3, 1, start=20, result='"nothing at all"'), last) == []
    assert found(agent(1, end=100), tool(3, 1, start=20, name="sort", result='"found it all"'), last) == []


def test_a_call_that_was_told_what_came_of_calls_inside_it_is_several() -> None:
    inner = tool(3, 2, start=20, call="c1")
    whole = told(2, 10, said("user", "q"), *searched("c1"), answer={"type": "text", "content": "done"})
    assert [(gap.code, gap.step) for gap in found(agent(1, end=100), replace(whole, end_ns=90), inner)] == [("answer-without-span", 1)]
    begun = told(2, 10, said("user", "q"), answer=searched("c1")[0]["parts"][0])
    assert [gap.code for gap in found(agent(1, end=100), replace(begun, end_ns=90), inner)] == []


def test_traces_of_a_session_are_looked_at_together() -> None:
    def traced(number: int, of: SpanRecord) -> Record:
        attributes = {**of.attributes, a.GEN_AI_CONVERSATION_ID: "s"}
        return replace(of, trace_id=f"{number:032x}", parent_span_id=None, attributes=attributes)

    asked, first = said("user", "q"), searched("c1")
    begins = traced(1, told(2, 10, asked, answer=first[0]["parts"][0]))
    ran = traced(2, tool(3, start=20, call="c1"))
    ends = traced(3, told(4, 40, asked, *first, answer={"type": "text", "content": "done"}))
    assert [gap.code for gap in found(begins, ran, ends)] == ["call-not-run"]
    assert [gap.code for gap in found(ran, ends)] == ["answer-without-span"]
    assert found(ends) == [], "the other traces may never have been imported"


def test_a_command_of_which_no_process_reported_in_is_not_whole() -> None:
    command: dict[str, Any] = {a.RUN_ID: "c" * 32, a.RUN_ROOT: True, a.RUN_COMMAND: True, a.RUN_COMMAND_ID: "d" * 32}
    (gap,) = found(span(1, attributes=command))
    assert (gap.code, gap.step) == ("nothing-recorded", None)
    assert found(span(1, attributes={**command, a.PROCESS_ID: "p1"})) == []


def test_of_a_call_that_lacks_what_others_of_its_instrumentation_have_it_is_not_said_to_switch_content_on() -> None:
    scope = Scope(name="framework")
    bare = chat(3, 1, start=20, content=False, scope=scope)
    alone = found(agent(1, scope=scope), bare)
    assert [(gap.code, "CAPTURE" in gap.advice) for gap in alone] == [("input-absent", True), ("output-absent", True)]
    beside = found(agent(1, scope=scope), chat(2, 1, scope=scope), bare)
    assert [(gap.code, gap.step) for gap in beside] == [("input-absent", 2), ("output-absent", 2)]
    assert all("CAPTURE" not in gap.advice and "left out" in gap.advice for gap in beside)
    others = found(agent(1, scope=scope), chat(2, 1, scope=Scope(name="client")), tool(4, 1, scope=scope), bare)
    assert [(gap.code, "CAPTURE" in gap.advice) for gap in others] == [("input-absent", True), ("output-absent", True)]

import json
from typing import Any

import pytest

from fixtures.runs.spans import event, log, span
from spanreplay.replay.dialects.claude_code import DIALECT, SCOPE
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import STATUS_ERROR, LogRecord, Record, Resource, Scope, SpanRecord, Value
from support.handmade import given

MS = 1_000_000
OURS = Scope(name=SCOPE)
CUT = "\n\n[TRUNCATED - Content exceeds 60KB limit]"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "q"}], "system": [{"type": "text", "text": "s"}], "max_tokens": 9}
CALL = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}
ANSWERED = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": [CALL], "stop_reason": "tool_use"}


def typed(
    kind: str, number: int, parent: int | None, told: dict[str, Value] | None = None, *, start: int = 0, end: int = 1000, **more: Any
) -> SpanRecord:
    attributes: dict[str, Value] = {"span.type": kind, "session.id": "s1", **(told or {})}
    return span(number, parent, name=f"claude_code.{kind}", scope=OURS, start=start * MS, end=end * MS, attributes=attributes, **more)


def prompt(**told: Value) -> SpanRecord:
    return typed("interaction", 1, None, told, resource=Resource(attributes={"service.version": "2.1.197"}))


def request(number: int = 2, *, start: int = 10, end: int = 50, parent: int = 1, **told: Any) -> SpanRecord:
    status = told.pop("status", 0)
    return typed("llm_request", number, parent, {"gen_ai.request.model": "m", **told}, start=start, end=end, status=status)


def called(
    number: int = 3, *, start: int = 60, end: int = 90, call: str = "c", name: str = "Bash", events: Any = (), **told: Value
) -> SpanRecord:
    own: dict[str, Value] = {"tool_name": name, "tool_use_id": call, "gen_ai.tool.call.id": call, **told}
    return typed("tool", number, 1, own, start=start, end=end, events=tuple(events))


def wrote(name: str, time: int, told: dict[str, Value], *, where: int = 1) -> LogRecord:
    return log(where, "", {"event.name": name, **told}, time=time * MS, body=f"claude_code.{name}")


def one(*records: Record) -> Run:
    (run,) = build_runs([prompt(user_prompt="What?"), *records])
    return run


def only(*records: Record) -> Step:
    (step,) = one(*records).steps
    return step


def test_a_prompt_is_the_run() -> None:
    run = one(request())
    assert (run.agent_name, run.agent_version, run.session_id) == ("claude-code", "2.1.197", "s1")
    assert run.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "What?"}]}]
    (hidden,) = build_runs([prompt(user_prompt="<REDACTED>"), request()])
    assert (hidden.input, hidden.steps[0].grade) == (None, "structure")


def test_bodies_written_around_the_requests_are_each_put_to_its_own() -> None:
    before: Any = ASKED["messages"]
    second = {**ASKED, "messages": [*before, {"role": "user", "content": "again"}]}
    run = one(
        request(2, start=10, end=50),
        request(3, start=20, end=60),
        wrote("api_request_body", 11, {"body": json.dumps(ASKED)}),
        wrote("api_request_body", 21, {"body": json.dumps(second)}),
        wrote("api_response_body", 49, {"body": json.dumps(ANSWERED)}),
        wrote(
            "api_response_body",
            60,
            {"body": json.dumps({**ANSWERED, "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"})},
        ),
    )
    first, other = run.steps
    assert first.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert (first.input["system"], first.input["params"]) == ([{"type": "text", "content": "s"}], {"max_tokens": 9})
    assert first.output["messages"][0]["parts"] == [{"type": "tool_call", "id": "c", "name": "Bash", "arguments": {"command": "ls"}}]
    assert len(other.input["messages"]) == 2
    assert other.output["messages"][0]["parts"] == [{"type": "text", "content": "a"}]
    assert [step.grade for step in run.steps] == ["semantic", "semantic"]


def test_an_answer_with_the_id_of_a_request_belongs_to_it_whenever_it_was_written() -> None:
    run = one(
        request(2, start=10, end=50, request_id="r1"),
        request(3, start=20, end=49, request_id="r2"),
        wrote("api_response_body", 49, {"body": json.dumps(ANSWERED), "request_id": "r1"}),
    )
    assert [step.output is None for step in run.steps] == [False, True]


def test_of_a_body_that_was_cut_the_whole_members_are_read() -> None:
    text = json.dumps({**ASKED, "tools": [{"name": "Bash", "description": "x" * 50}]})[:-30]
    step = only(
        request(),
        wrote("api_request_body", 10, {"body": text + CUT, "body_length": "99999", "body_truncated": "true"}),
        wrote("api_response_body", 50, {"body": json.dumps(ANSWERED)}),
    )
    assert step.input["messages"][0]["parts"][0]["content"] == "q"
    assert (step.input["tools"], step.grade) == ([], "incomplete")
    assert any(reason.code == "cut" and "99999" in reason.detail for reason in step.reasons)


def test_bodies_in_files_are_pointed_to() -> None:
    step = only(request(), wrote("api_request_body", 10, {"body_ref": "/bodies/1.request.json"}))
    assert any(reason.code == "content-elsewhere" and "/bodies/1.request.json" in reason.detail for reason in step.reasons)


def test_the_detailed_traces_have_the_text_only() -> None:
    news = "[USER]\nWhat?\n\n---\n\n[TOOL RESULT: c]\nfiles"
    whole = only(
        request(new_context=news, stop_reason="end_turn", **given({"response.model_output": "Done.", "response.has_tool_call": False}))
    )
    assert [part["type"] for message in whole.input["messages"] for part in message["parts"]] == ["text", "tool_call_response"]
    assert whole.output == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}], "finish": "end_turn"}
    assert whole.grade == "structure", "the conversation before is not there"
    calling = only(request(**given({"response.model_output": "I look.", "response.has_tool_call": True})))
    assert any("not the calls of tools" in reason.detail for reason in calling.reasons)


def test_tokens_and_failures() -> None:
    step = only(request(input_tokens=3, output_tokens=2, cache_read_tokens=1, cache_creation_tokens=4))
    assert step.usage == {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1, "cache_write_input_tokens": 4}
    failed = only(request(success=False, error="overloaded", status_code=529, status=STATUS_ERROR))
    assert (failed.outcome, failed.error) == ("error", {"type": "529", "message": "overloaded"})


# ---- tools -----------------------------------------------------------------------------------------------------------


def parts(**told: Value) -> list[SpanRecord]:
    failed = STATUS_ERROR if told.get("success") is False else 0
    return [
        typed("tool.blocked_on_user", 8, 3, {"decision": "unknown", "source": "unknown"}, start=61, end=62),
        typed("tool.execution", 9, 3, told, start=63, end=89, status=failed, status_message="it failed" if failed else ""),
    ]


def test_a_tool_has_its_arguments_in_a_record_and_what_it_printed_in_an_event() -> None:
    run = one(
        called(events=[event("tool.output", {"bash_command": "ls", "output": "files"})]),
        *parts(success=True),
        wrote("tool_decision", 61, {"decision": "accept", "source": "config", "tool_use_id": "c"}, where=8),
        wrote("tool_result", 91, {"tool_use_id": "c", "success": "true", "tool_input": '{"command":"ls"}'}),
    )
    (step,) = run.steps
    assert (step.name, step.call_id, step.input, step.output) == ("Bash", "c", {"arguments": {"command": "ls"}}, {"result": "files"})
    assert (step.outcome, step.grade, step.decision) == ("ok", "semantic", {"outcome": "allow", "source": "config"})
    assert [reason.code for reason in step.reasons] == ["lossy"]
    assert run.unclassified_spans == 2


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        ('{"content":"' + "x" * 512 + '"}', False),
        ('{"content":"xxx…[900 chars]"}', True),
        ('{"list":[1,"…[40 items]"]}', True),
        ('{"a":{"b":{"c":"<nested>"}}}', True),
        ('{"…":"25 keys"}', True),
        ('{"a":"x…[truncated]', True),
        ('{"says":"<nested> … [1]"}', False),
    ],
)
def test_abbreviated_arguments_are_not_taken_for_whole(given: str, cut: bool) -> None:
    step = only(called(new_context="[TOOL RESULT: Bash]\nx"), wrote("tool_result", 91, {"tool_use_id": "c", "tool_input": given}))
    assert (step.grade == "incomplete") is cut


def test_the_detailed_traces_have_arguments_and_result() -> None:
    step = only(called(tool_input='[TOOL INPUT: Bash]\n{"command":"ls"}', new_context='[TOOL RESULT: Bash]\n{"stdout":"files"}'))
    assert (step.input, step.output, step.grade) == ({"arguments": {"command": "ls"}}, {"result": {"stdout": "files"}}, "semantic")
    cut = only(called(tool_input="[TOOL INPUT: Bash]\n" + '{"command":"l' + CUT, new_context="[TOOL RESULT: Bash]\nx"))
    assert cut.grade == "incomplete"


def test_a_part_of_the_arguments_is_shown_and_said_to_be_one() -> None:
    step = only(called(full_command="ls", new_context="[TOOL RESULT: Bash]\nx"))
    assert (step.input, step.grade) == ({"arguments": {"command": "ls"}}, "structure")
    assert [reason.detail for reason in step.reasons] == ["of the arguments only command is recorded"]


def test_what_a_write_was_given_is_no_result() -> None:
    given = [event("tool.output", {"file_path": "/a", "content": "text"})]
    assert only(called(name="Write", events=given)).output is None
    assert only(called(name="Read", events=given)).output == {"result": "text"}


@pytest.mark.parametrize(
    ("told", "outcome", "error"),
    [
        ({"success": "false", "error_type": "ShellError", "error": "exit 3"}, "error", {"type": "ShellError", "message": "exit 3"}),
        (
            {"success": "false", "error_type": "McpToolCallError", "error": "no"},
            "tool_error",
            {"type": "McpToolCallError", "message": "no"},
        ),
    ],
)
def test_failures_of_tools_are_told_in_records(told: dict[str, Value], outcome: str, error: Any) -> None:
    step = only(called(), *parts(success=False), wrote("tool_result", 91, {"tool_use_id": "c", **told}))
    assert (step.outcome, step.error) == (outcome, error)


def test_without_records_a_failure_is_told_by_the_part_that_failed() -> None:
    step = only(called(), *parts(success=False))
    assert (step.outcome, step.error) == ("error", {"type": None, "message": "it failed"})


def test_a_call_that_was_refused_did_not_run() -> None:
    waited = typed("tool.blocked_on_user", 8, 3, {"decision": "reject", "source": "user"}, start=61, end=62)
    step = only(called(), waited)
    assert (step.outcome, step.decision) == ("rejected", {"outcome": "deny", "source": "user"})


def test_a_subagent_is_inside_the_tool_that_ran_it() -> None:
    execution = typed("tool.execution", 9, 3, {"success": True}, start=63, end=89)
    inner = request(4, start=65, end=80, parent=9)
    run = one(called(name="Agent"), execution, inner, wrote("api_response_body", 80, {"body": json.dumps(ANSWERED)}, where=9))
    assert [(step.kind, step.parent_seq) for step in run.steps] == [("tool_call", None), ("model_call", 1)]
    assert run.steps[1].output is not None


def test_spans_of_others_are_left_to_others() -> None:
    assert not DIALECT.claims(span(1, name="tool", attributes={"span.type": "tool"}))
    assert DIALECT.claims(span(1, name="claude_code.tool", attributes={"span.type": "tool"})), "a back end may lose the scope"
    assert not DIALECT.claims(typed("hook", 1, None))

from typing import Any

import pytest

from fixtures.runs.spans import event, log, span
from spanreplay.replay.dialects.codex import DIALECT
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord, Value

CODEX = Scope(name="codex_cli_rs")
SESSION: dict[str, Value] = {"conversation.id": "s1"}


def work(
    number: int, parent: int | None, name: str, told: dict[str, Value] | None = None, *, start: int = 0, end: int = 1000, **more: Any
) -> SpanRecord:
    resource = Resource(attributes={"service.version": "0.171.0"})
    return span(number, parent, name=name, scope=CODEX, start=start, end=end, attributes=told or {}, resource=resource, **more)


def turn() -> list[SpanRecord]:
    """A turn as deep as it is: what the user said is logged in its fourth span."""
    usage: dict[str, Value] = {"codex.turn.token_usage.input_tokens": 9, "codex.turn.token_usage.cached_input_tokens": 4, "model": "m"}
    names = ("session_task.turn", "session_task.run", "run_turn", "run_hooks_and_record_inputs")
    return [work(n, n - 1 if n > 1 else None, name, usage if n == 1 else None) for n, name in enumerate(names, 1)]


def request(number: int = 10, *, start: int = 10, end: int = 500, **told: Value) -> list[SpanRecord]:
    """A request: the HTTP exchange and the answer are received in spans of their own."""
    return [
        work(number, 3, "try_run_sampling_request", {"model": "m"}, start=start, end=end),
        work(number + 1, number, "stream_request", start=start, end=start + 5),
        work(number + 2, number + 1, "model_client.stream_responses_api", start=start, end=start + 5),
        work(number + 3, number + 2, "endpoint_session.stream_encoded_json_with", start=start, end=start + 5),
        work(number + 4, number, "receiving_stream", start=start + 5, end=end),
        work(number + 5, number + 4, "handle_responses", told, start=start + 6, end=end),
    ]


def tool(number: int = 30, parent: int = 15, *, name: str = "shell", call: str = "c", events: Any = (), **told: Value) -> list[SpanRecord]:
    own: dict[str, Value] = {"tool_name": name, "call_id": call, "tool_source": "direct", **SESSION, **told}
    return [
        work(number, parent, name, own, start=100, end=200),
        work(number + 1, number, "dispatch_tool_call_with_state", start=110, end=190, events=events),
    ]


def wrote(where: int, name: str, told: dict[str, Value]) -> LogRecord:
    return log(where, "event otel/src/x.rs:1", {"event.name": name, **SESSION, **told}, observed_ns=150)


def one(*records: Record) -> Run:
    (run,) = build_runs([*turn(), *records])
    return run


def call(*records: Record) -> Step:
    return next(step for step in one(*request(), *records).steps if step.kind == "tool_call")


def test_a_turn_is_the_run_and_what_was_asked_is_logged_deep_inside() -> None:
    run = one(*request(), wrote(4, "codex.user_prompt", {"prompt": "What?"}))
    assert (run.agent_name, run.agent_version, run.session_id) == ("codex", "0.171.0", "s1")
    assert run.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "What?"}]}]
    assert one(*request(), wrote(4, "codex.user_prompt", {"prompt": "[REDACTED]"})).input is None
    (alone,) = build_runs([work(1, None, "session_task.turn", {"thread.id": "s2"})])
    assert (alone.agent_name, alone.session_id) == ("codex", "s2"), "a back end may keep no more of it"


def test_a_request_has_its_tokens_and_nothing_of_what_was_said() -> None:
    (step,) = one(*request(**{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.cache_read.input_tokens": 2})).steps
    assert (step.kind, step.name, step.grade) == ("model_call", "m", "structure")
    assert step.usage == {"input_tokens": 10, "cache_read_input_tokens": 2}


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"http.response.status_code": 200}, None),
        ({"http.response.status_code": 429, "error.message": "slow down"}, {"type": "429", "message": "slow down"}),
        ({"error.message": "no route"}, {"type": None, "message": "no route"}),
    ],
)
def test_how_a_request_failed_is_logged_where_it_was_sent(told: dict[str, Value], error: Any) -> None:
    (step,) = one(*request(), wrote(13, "codex.api_request", told)).steps
    assert (step.error, step.outcome) == (error, "ok" if error is None else "error")


def test_a_tool_is_read_from_what_is_logged_inside_it() -> None:
    step = call(*tool(), wrote(31, "codex.tool_result", {"success": "true", "arguments": '{"cmd":"ls"}', "output": "files"}))
    assert (step.name, step.call_id, step.input, step.output) == ("shell", "c", {"arguments": {"cmd": "ls"}}, {"result": "files"})
    assert (step.outcome, step.grade, step.parent_seq) == ("ok", "semantic", 1)


def test_without_log_events_the_span_event_tells_how_it_ended() -> None:
    failed = event("event otel/src/tool_result.rs:54", {"event.name": "codex.tool_result", "success": "false", "output_length": 3})
    step = call(*tool(events=(failed,)))
    assert (step.outcome, step.input, step.grade) == ("error", None, "structure")


def test_a_tool_that_failed_says_why() -> None:
    step = call(*tool(name="none"), wrote(31, "codex.tool_result", {"success": "false", "arguments": "{}", "output": "unsupported call"}))
    assert (step.outcome, step.error, step.output) == ("error", {"type": None, "message": "unsupported call"}, None)
    assert call(*tool(aborted=True)).outcome == "cancelled"


def test_output_that_was_cut_where_it_was_logged() -> None:
    step = call(*tool(), wrote(31, "codex.tool_result", {"success": "true", "arguments": "{}", "output": "fi", "output_truncated": True}))
    assert step.grade == "incomplete"


def test_the_rest_of_the_inner_workings_is_no_step() -> None:
    run = one(*request(), work(50, 1, "fs.read_file"), work(51, 15, "handle_output_item_done"))
    assert len(run.steps) == 1
    assert not DIALECT.claims(work(1, None, "fs.read_file"))
    assert not DIALECT.claims(span(1, name="session_task.turn"))

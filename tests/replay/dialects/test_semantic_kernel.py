import json
from typing import Any

import pytest

from fixtures.runs.spans import log, span
from spanreplay.replay.dialects.semantic_kernel import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, LogRecord, Scope, SpanRecord, Value

SCOPE = Scope(name="semantic_kernel.utils.telemetry.model_diagnostics.decorators")


def model(operation: str = "chat", attributes: dict[str, Value] | None = None, **more: Any) -> SpanRecord:
    own = {a.GEN_AI_OPERATION_NAME: operation, a.GEN_AI_REQUEST_MODEL: "m", "gen_ai.system": "openai", **(attributes or {})}
    return span(1, name=f"{operation} m", attributes=own, **{"scope": SCOPE, **more})


def said(event: str, body: Any, index: int | None = None) -> LogRecord:
    numbered: dict[str, Value] = {} if index is None else {"CHAT_MESSAGE_INDEX": index}
    return log(
        1, "", {"event.name": event, "gen_ai.system": "openai", **numbered}, body=body if isinstance(body, str) else json.dumps(body)
    )


def read(record: SpanRecord, *logs: LogRecord) -> StepDraft:
    full = with_content(record, logs).span
    assert DIALECT.claims(full)
    draft = DIALECT.read(full, logs)
    assert draft is not None
    return draft


def test_messages_in_log_records_are_in_the_order_of_the_history() -> None:
    draft = read(
        model(),
        said("gen_ai.tool.message", {"role": "tool", "content": "21", "tool_call_id": "c"}, 2),
        said("gen_ai.user.message", {"role": "user", "content": "q"}, 0),
        said("gen_ai.assistant.message", {"role": "assistant", "tool_calls": [_asking()]}, 1),
        said("gen_ai.choice", {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}),
    )
    assert draft.input["messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "q"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "Weather-get", "arguments": {"city": "Oslo"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "21"}]},
    ]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "a"}]
    assert (draft.output["finish"], draft.grade) == ("stop", "semantic")


def _asking() -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "Weather-get", "arguments": '{"city": "Oslo"}'}}


def test_without_the_log_records_only_the_structure_is_left() -> None:
    draft = read(model())
    assert (draft.kind, draft.name, draft.grade) == ("model_call", "m", "structure")


@pytest.mark.parametrize("operation", ["text_completions", "text.completions", "chat.completions"])
def test_operations_by_every_name(operation: str) -> None:
    first = claimants(model(operation))[0]
    assert first.NAME == "semantic_kernel"
    draft = read(model(operation), said("gen_ai.prompt", "Tell me."), said("gen_ai.choice", {"message": {"content": "No."}}))
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "Tell me."}]}]


def test_the_class_of_an_exception_is_named_as_everywhere() -> None:
    failed = read(model(attributes={a.ERROR_TYPE: "<class 'openai.APITimeoutError'>"}, status=STATUS_ERROR, status_message="late"))
    assert (failed.outcome, failed.error) == ("timeout", {"type": "openai.APITimeoutError", "message": "late"})
    plain = read(model(attributes={a.ERROR_TYPE: "RuntimeError"}, status=STATUS_ERROR))
    assert plain.error == {"type": "RuntimeError", "message": None}


def test_the_loop_around_functions_is_no_step() -> None:
    (run,) = build_runs([span(9, name="AutoFunctionInvocationLoop", scope=SCOPE, attributes={"sk.available_functions": "f"}), model()])
    assert (len(run.steps), run.unclassified_spans) == (1, 1)


def test_without_its_scope_a_model_call_is_known_by_the_operation_that_nobody_else_has() -> None:
    assert claimants(model("chat.completions", scope=Scope()))[0].NAME == "semantic_kernel"
    assert claimants(model("chat", scope=Scope()))[0].NAME == "gen_ai"
    assert claimants(model("chat.completions", scope=Scope(name="other")))[0].NAME == "gen_ai"

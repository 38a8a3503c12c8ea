"""Instrumentations, as far as a test needs them: the span that each writes of one call, with what it leaves out."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_UNSET, Scope, SpanRecord, Value
from support.happened import Call

TRACE = "5d2c8e1f9a3b4c6d7e8f901234567890"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """One instrumentation."""

    scope: str
    attributes: Callable[[Call], Mapping[str, Value]]
    content: bool = True
    """What was asked and answered."""
    call_ids: bool = True
    """On the spans of tools."""
    steps: bool = True
    """An agent of its own is a step."""

    def span(self, call: Call, tick_ns: int, *, number: int | None = None, parent: int | None = None) -> SpanRecord:
        """The span of a call, under that of its parent unless another is given."""
        above = parent if parent is not None else None if call.parent is None else call.parent.number
        return SpanRecord(
            trace_id=TRACE,
            span_id=span_id(call.number if number is None else number),
            parent_span_id=None if above is None else span_id(above),
            name=f"{call.kind} {call.name}",
            kind=1,
            start_ns=EPOCH + call.start * tick_ns,
            end_ns=EPOCH + call.end * tick_ns,
            status=STATUS_UNSET if call.error is None else STATUS_ERROR,
            status_message="" if call.error is None else "it failed",
            attributes={name: value for name, value in self.attributes(call).items() if value is not None},
            scope=Scope(name=self.scope, version="1"),
        )


EPOCH = 1_764_000_000_000_000_000


def span_id(number: int) -> str:
    """Ids that are in no order, as real ones."""
    return f"{(number * 0x9E3779B97F4A7C15) & (2**64 - 1):016x}"


def _gen_ai(call: Call) -> dict[str, Value]:
    found: dict[str, Value] = {a.GEN_AI_AGENT_NAME: call.agent, a.ERROR_TYPE: call.error}
    if call.kind == "tool":
        return found | {
            a.GEN_AI_OPERATION_NAME: "execute_tool",
            a.GEN_AI_TOOL_NAME: call.name,
            a.GEN_AI_TOOL_CALL_ID: call.call_id,
            a.GEN_AI_TOOL_CALL_ARGUMENTS: json.dumps(call.arguments),
            a.GEN_AI_TOOL_CALL_RESULT: None if call.error is not None else json.dumps(call.result),
        }
    answer = [call.answer] if call.answer is not None else None
    if call.kind == "agent":
        answer = [{"role": "assistant", "parts": [{"type": "text", "content": call.result}]}]
    return found | {
        a.GEN_AI_OPERATION_NAME: "chat" if call.kind == "model" else "invoke_agent",
        a.GEN_AI_REQUEST_MODEL: call.name if call.kind == "model" else None,
        a.GEN_AI_INPUT_MESSAGES: json.dumps(call.messages),
        a.GEN_AI_OUTPUT_MESSAGES: None if answer is None else json.dumps(answer),
    }


_CONTENT = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT)


def _without_content(call: Call) -> dict[str, Value]:
    return {name: value for name, value in _gen_ai(call).items() if name not in _CONTENT}


def _openinference(call: Call) -> dict[str, Value]:
    found: dict[str, Value] = {"openinference.span.kind": {"model": "LLM", "tool": "TOOL", "agent": "AGENT"}[call.kind]}
    if call.kind == "tool":
        return found | {
            "tool.name": call.name,
            "input.value": json.dumps(call.arguments),
            "input.mime_type": "application/json",
            "output.value": None if call.error is not None else json.dumps(call.result),
            "output.mime_type": "application/json",
        }
    if call.kind == "agent":
        return found | {"agent.name": call.name, "input.value": call.messages[0]["parts"][0]["content"], "output.value": call.result}
    found["llm.model_name"] = call.name
    for place, message in enumerate(call.messages):
        found |= _flat(f"llm.input_messages.{place}.message", message)
    return found | (_flat("llm.output_messages.0.message", call.answer) if call.answer is not None else {})


def _flat(prefix: str, message: Mapping[str, Any]) -> dict[str, Value]:
    found: dict[str, Value] = {f"{prefix}.role": message["role"]}
    calls = 0
    for part in message["parts"]:
        if part["type"] == "text":
            found[f"{prefix}.content"] = part["content"]
        elif part["type"] == "tool_call":
            called = f"{prefix}.tool_calls.{calls}.tool_call"
            calls += 1
            found[f"{called}.id"] = part["id"]
            found[f"{called}.function.name"] = part["name"]
            found[f"{called}.function.arguments"] = json.dumps(part["arguments"])
        else:
            found[f"{prefix}.tool_call_id"] = part["id"]
            found[f"{prefix}.content"] = json.dumps(part["response"])
    return found


def _openllmetry(call: Call) -> dict[str, Value]:
    if call.kind != "model":
        given = call.arguments if call.kind == "tool" else call.messages[0]["parts"][0]["content"]
        return {
            "traceloop.span.kind": call.kind,
            "traceloop.entity.name": call.name,
            "traceloop.entity.input": json.dumps({"args": [], "kwargs": given} if call.kind == "tool" else given),
            "traceloop.entity.output": None if call.error is not None else json.dumps(call.result),
        }
    found: dict[str, Value] = {"llm.request.type": "chat", "gen_ai.system": "openai", "gen_ai.request.model": call.name}
    for side, messages in (("prompt", call.messages), ("completion", [call.answer] if call.answer is not None else [])):
        for place, message in enumerate(messages):
            flat = _flat(f"gen_ai.{side}.{place}", message)
            found |= {name.replace(".tool_call.", ".").replace(".function.", "."): value for name, value in flat.items()}
    return found


RECORDERS: Mapping[str, Recorder] = {
    "gen_ai": Recorder(scope="opentelemetry.instrumentation.genai.sdk", attributes=_gen_ai),
    "gen_ai without content": Recorder(scope="opentelemetry.instrumentation.genai.sdk", attributes=_without_content, content=False),
    "openinference": Recorder(scope="openinference.instrumentation.sdk", attributes=_openinference, call_ids=False),
    "openllmetry": Recorder(scope="opentelemetry.instrumentation.sdk", attributes=_openllmetry, call_ids=False),
}

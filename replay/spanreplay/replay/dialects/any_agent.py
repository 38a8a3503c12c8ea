"""Spans of Mozilla's any-agent, whichever framework it drives.

``invoke_agent`` > ``call_llm``, ``execute_tool``. Only the first model call of a trace has its input. Source:
``any_agent/callbacks/span_generation/base.py`` of 1.18.
"""

import json
from collections.abc import Sequence
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import finish_reason, model_input, output_view
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "any_agent"
VERSION: Final = "any_agent.version"
ARGUMENTS: Final = "gen_ai.tool.args"
OUTPUT: Final = "gen_ai.output"
CALL_NAME: Final = "tool.name"
CALL_ARGUMENTS: Final = "tool.args"

_KINDS: Final[dict[str, Kind]] = {"call_llm": "model_call", "execute_tool": "tool_call", "invoke_agent": "agent"}
_SCALARS: Final = ("null", "true", "false")


class AnyAgentDialect:
    """Reads agents, model calls and tools of any-agent."""

    NAME = "any_agent"
    PRIORITY = 140

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, or by names that only any-agent has."""
        names = span.attributes
        operation = names.get(a.GEN_AI_OPERATION_NAME)
        return (
            span.scope.name == SCOPE or VERSION in names or OUTPUT in names or (operation == "call_llm" and a.GEN_AI_REQUEST_MODEL in names)
        )

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` for anything else in the scope."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or span.name.partition(" ")[0]
        kind = _KINDS.get(operation)
        if kind is None:
            return None
        asked: Json
        answered: Json
        if kind == "tool_call":
            asked = {"arguments": fields.json(ARGUMENTS)} if ARGUMENTS in fields else None
            answered = {"result": _value(fields)} if OUTPUT in fields else None
        else:
            asked, answered = model_input(fields), _answer(fields) if OUTPUT in fields else None
        names = {"model_call": a.GEN_AI_REQUEST_MODEL, "tool_call": a.GEN_AI_TOOL_NAME, "agent": a.GEN_AI_AGENT_NAME}
        found = Found(
            kind=kind,
            name=fields.text(names[kind]) or span.name.removeprefix(f"{operation} "),
            asked=asked,
            answered=answered,
            runs=kind == "agent",
        )
        return drafted(span, fields, found)


DIALECT: Final = AnyAgentDialect()


def _answer(fields: Fields) -> Json:
    """What the model said: a text, or a list of the tool calls that it asked for."""
    value = fields.json(OUTPUT)
    if isinstance(value, list) and value and all(isinstance(call, dict) and CALL_NAME in call for call in value):
        parts = [{"type": "tool_call", "id": None, "name": call[CALL_NAME], "arguments": call.get(CALL_ARGUMENTS)} for call in value]
        return output_view([{"role": "assistant", "parts": parts}])
    text = fields.attributes[OUTPUT]
    said = text if isinstance(text, str) else json.dumps(value, ensure_ascii=False)
    return {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": said}]}], "finish": finish_reason(fields)}


def _value(fields: Fields) -> Json:
    """A tool's result; where the type says that a text is JSON, one word is a value too."""
    value = fields.json(OUTPUT)
    if value in _SCALARS and fields.text(a.GEN_AI_OUTPUT_TYPE) == "json":
        return json.loads(value)
    return value

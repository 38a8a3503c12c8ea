"""Spans of Strands Agents 0.1, before it took the names of the GenAI conventions.

The agent's name > ``Cycle ID`` > ``Model invoke``, ``Tool: NAME``; messages are JSON text of Bedrock's blocks in ``gen_ai.prompt`` and
``gen_ai.completion``. Source: ``strands/telemetry/tracer.py`` of 0.1.9.
"""

from collections.abc import Sequence
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import OLD_SYSTEM, input_view, output_view, params
from spanreplay.replay.reading.outcomes import TOOL_ERROR
from spanreplay.replay.reading.parts import parts
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

PROVIDER: Final = "strands-agents"
"""The scope and the provider."""
PROMPT: Final = "gen_ai.prompt"
COMPLETION: Final = "gen_ai.completion"
SYSTEM_PROMPT: Final = "system_prompt"
TOOL_NAME: Final = "tool.name"
TOOL_ID: Final = "tool.id"
TOOL_ARGUMENTS: Final = "tool.parameters"
TOOL_RESULT: Final = "tool.result"
TOOL_STATUS: Final = "tool.status"
CYCLE: Final = "event_loop.cycle_id"

_MODEL: Final = "Model invoke"
_TOOL: Final = "Tool: "


class StrandsEarlyDialect:
    """Reads agents, model calls and tools of Strands 0.1."""

    NAME = "strands_early"
    PRIORITY = 81

    def claims(self, span: SpanRecord) -> bool:
        """By the scope or the provider, where no operation is named."""
        names = span.attributes
        ours = span.scope.name == PROVIDER or names.get(OLD_SYSTEM) == PROVIDER or (span.name.startswith(_TOOL) and TOOL_ARGUMENTS in names)
        return ours and a.GEN_AI_OPERATION_NAME not in names

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, or ``None`` for a cycle, which only frames calls."""
        del logs
        fields = Fields(span.attributes)
        if CYCLE in fields:
            return None
        if span.name.startswith(_TOOL) or TOOL_ARGUMENTS in fields:
            return drafted(span, fields, _tool(span, fields))
        if span.name == _MODEL:
            return drafted(span, fields, _talk(span, fields, model=True))
        return drafted(span, fields, _talk(span, fields, model=False)) if a.GEN_AI_AGENT_NAME in fields else None


DIALECT: Final = StrandsEarlyDialect()


def _talk(span: SpanRecord, fields: Fields, *, model: bool) -> Found:
    """A model call or an agent: what was said to it and by it."""
    asked, told = input_view(fields.json(PROMPT)), fields.json(COMPLETION)
    if asked is not None:
        asked = {**asked, "params": params(fields)}
        if not model and SYSTEM_PROMPT in fields:
            asked["system"] = parts(fields.json(SYSTEM_PROMPT))
    name = fields.text(a.GEN_AI_REQUEST_MODEL) if model else fields.text(a.GEN_AI_AGENT_NAME)
    return Found(
        kind="model_call" if model else "agent",
        name=name or span.name,
        asked=asked,
        answered=output_view([{"role": "assistant", "content": told}] if isinstance(told, list) else told),
        runs=not model,
    )


def _tool(span: SpanRecord, fields: Fields) -> Found:
    result = fields.json(TOOL_RESULT, strict=True)
    failed = fields.text(TOOL_STATUS) == "error"
    return Found(
        kind="tool_call",
        name=fields.text(TOOL_NAME) or span.name.removeprefix(_TOOL),
        call_id=fields.identifier(TOOL_ID),
        asked={"arguments": fields.json(TOOL_ARGUMENTS, strict=True)} if TOOL_ARGUMENTS in fields else None,
        answered=None if result is None else {"result": result},
        error={"type": TOOL_ERROR, "message": _text(result)} if failed else None,
    )


def _text(result: Json) -> str | None:
    blocks = result if isinstance(result, list) else []
    return next((text for block in blocks if isinstance(block, dict) and isinstance(text := block.get("text"), str)), None)

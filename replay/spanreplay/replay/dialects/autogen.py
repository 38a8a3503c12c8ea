"""AutoGen (``autogen-core`` 0.7): agents and tools by the names of the GenAI conventions, without any content.

It opens no spans for models, and none of its spans has what a tool was called with or gave. An instrumentation of the model's client beside
it tells both: the answers of the model ask for the calls, the requests after them tell the results. Seen in what ``autogen-core`` and
``autogen-agentchat`` 0.7.5 export; the spans of its runtime (``autogen create …``, ``autogen process …``) are no steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import OLD_SYSTEM
from spanreplay.replay.reasons import INPUT_ABSENT, OUTPUT_ABSENT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SYSTEM: Final = "autogen"

_KINDS: Final[Mapping[str, Kind]] = {"create_agent": "agent", "invoke_agent": "agent", "execute_tool": "tool_call"}
_WHY: Final[Mapping[str, str]] = {
    INPUT_ABSENT: "AutoGen records no input; instrument the client of the model too, whose answers tell it",
    OUTPUT_ABSENT: "AutoGen records no output; instrument the client of the model too, whose requests tell it",
}


class AutogenDialect:
    """Reads agents and tools."""

    NAME = "autogen"
    PRIORITY = 92

    def claims(self, span: SpanRecord) -> bool:
        """By ``gen_ai.system``, which is there on no span of others."""
        operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
        return span.attributes.get(OLD_SYSTEM) == SYSTEM and isinstance(operation, str) and operation in _KINDS

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step, without content."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or ""
        kind = _KINDS[operation]
        named = fields.text(a.GEN_AI_TOOL_NAME if kind == "tool_call" else a.GEN_AI_AGENT_NAME)
        found = Found(kind=kind, name=named or span.name.removeprefix(f"{operation} "), runs=operation == "invoke_agent")
        draft = drafted(span, fields, found)
        reasons = (replace(reason, detail=_WHY.get(reason.code, reason.detail)) for reason in draft.reasons)
        return replace(draft, reasons=tuple(reasons))


DIALECT: Final = AutogenDialect()

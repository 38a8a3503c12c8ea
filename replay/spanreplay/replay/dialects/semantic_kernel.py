"""Microsoft Semantic Kernel for Python: spans of the GenAI conventions with names of their own, messages in Python's log records.

What a model was asked and answered stands in log records inside its span (``event.name`` ``gen_ai.user.message``, ``gen_ai.choice``, …, the
message as JSON text in the body), which the application has to export as well; they are read for all dialects. A function is named
``plugin-function``. Seen in what ``semantic-kernel`` 1.45.0 exports; older versions call the operations ``chat.completions`` and
``text.completions``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import model_input, model_output
from spanreplay.replay.reading.outcomes import failure
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPES: Final = "semantic_kernel."
INDEX: Final = "CHAT_MESSAGE_INDEX"
"""Place of a message in the history, since the records of one call have nearly equal times."""

_KINDS: Final[Mapping[str, Kind]] = {
    "chat": "model_call",
    "chat.completions": "model_call",
    "text_completions": "model_call",
    "text.completions": "model_call",
    "execute_tool": "tool_call",
    "invoke_agent": "agent",
}
_OWN: Final = frozenset({"chat.completions", "text_completions", "text.completions"})
_CLASS: Final = re.compile(r"<class '([\w.]+)'>")
"""``error.type`` of a model call is the text of the exception's class."""


class SemanticKernelDialect:
    """Reads agents, model calls and functions."""

    NAME = "semantic_kernel"
    PRIORITY = 91

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, the name of the module that opened the span; where scopes are lost, by the operations that it alone names so."""
        operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
        if not isinstance(operation, str) or operation not in _KINDS:
            return False
        return span.scope.name.startswith(SCOPES) or (not span.scope.name and operation in _OWN)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or ""
        kind = _KINDS[operation]
        name = {"model_call": a.GEN_AI_REQUEST_MODEL, "tool_call": a.GEN_AI_TOOL_NAME, "agent": a.GEN_AI_AGENT_NAME}[kind]
        if kind == "tool_call":
            asked, answered = (
                {key: fields.json(attribute)} if attribute in fields else None
                for key, attribute in (("arguments", a.GEN_AI_TOOL_CALL_ARGUMENTS), ("result", a.GEN_AI_TOOL_CALL_RESULT))
            )
        else:
            asked, answered = _in_order(model_input(fields)), model_output(fields)
        found = Found(
            kind=kind,
            name=fields.text(name) or span.name.removeprefix(f"{operation} "),
            asked=asked,
            answered=answered,
            error=_error(span, fields),
            runs=kind == "agent",
        )
        return drafted(span, fields, found)


DIALECT: Final = SemanticKernelDialect()


def _in_order(view: Json) -> Json:
    """The messages in the order of the history, without its numbers."""
    said: list[dict[str, Any]] | None = view["messages"] if isinstance(view, dict) else None
    if not said or not all(isinstance(message.get(INDEX), int) for message in said):
        return view
    ordered = sorted(said, key=lambda message: message[INDEX])
    return {**view, "messages": [{key: value for key, value in message.items() if key != INDEX} for message in ordered]}


def _error(span: SpanRecord, fields: Fields) -> Json:
    error = failure(span, fields)
    named = _CLASS.fullmatch((error or {}).get("type") or "")
    return error if error is None or named is None else {**error, "type": named[1]}

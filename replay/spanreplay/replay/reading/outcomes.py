"""How a span ended, from its status, its error and its events; shared by all dialects."""

import re
from typing import Final

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import Fields
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, SpanRecord

TOOL_ERROR: Final = "tool_error"
"""``error.type`` of a failure that the tool reported in its answer."""

_REPORTED: Final = frozenset({"toolretryerror"})
"""Exceptions that carry a tool's own answer that it failed; pydantic-ai's, whose spans may have lost their scope."""
_FRAME: Final = "\n    at "
"""How begins each line of the ``stack`` of an error of JavaScript, as V8 writes it."""
_NAMED: Final = re.compile(r"(?:^|\n\n)([A-Za-z_$][\w$.]{0,99}): ")


def failure(span: SpanRecord, fields: Fields) -> dict[str, str | None] | None:
    """``{"type", "message"}`` of what went wrong, ``None`` where nothing did.

    A status of ERROR, or an ``error.type``, says that something did; an exception event alone does not (it may have been handled).
    """
    kind = fields.text(a.ERROR_TYPE)
    if span.status != STATUS_ERROR and kind is None:
        return None
    message = span.status_message or None
    for event in reversed(span.events):
        if event.name == a.EXCEPTION_EVENT:
            raised = Fields(event.attributes)
            kind = kind or raised.text(a.EXCEPTION_TYPE)
            said = raised.text(a.EXCEPTION_MESSAGE)
            if message is None or (said and message == f"{(raised.text(a.EXCEPTION_TYPE) or '').rpartition('.')[2]}: {said}"):
                message = said  # OpenTelemetry's SDK writes "TYPE: message" as the text of the status
            break
    if message is not None and _FRAME in message:
        kind, message = _without_stack(kind, message)
    return {"type": kind, "message": message}


def _without_stack(kind: str | None, message: str) -> tuple[str | None, str]:
    """Type and message of an error whose ``stack`` was written; LangChain has its message once more before it."""
    told = message.partition(_FRAME)[0]
    for named in _NAMED.finditer(told):
        said = told[named.end() :]
        if named.start() in (0, len(said)) and told[: named.start()] in ("", said):
            return kind or named[1], said
    return kind, message


def outcome(span: SpanRecord, error: Json, result: Json = None) -> OutcomeName:
    """How the step ended.

    Args:
        span: the span.
        error: what :func:`failure` gave.
        result: a tool's result: one that says ``isError`` is a failure reported by the tool.
    """
    if error is not None:
        kind = error.get("type") if isinstance(error, dict) else None
        return named_outcome(kind) if isinstance(kind, str) else "error"
    if span.end_ns is None:
        return "unknown"
    if isinstance(result, dict) and (result.get("isError") is True or result.get("is_error") is True):
        return "tool_error"
    return "ok"


def named_outcome(error_type: str) -> OutcomeName:
    """The outcome that the name of an error tells."""
    if error_type == TOOL_ERROR:
        return "tool_error"
    last = error_type.rpartition(".")[2].lower()
    if last in _REPORTED:
        return "tool_error"
    if "timeout" in last or "timedout" in last or last == "deadline_exceeded":
        return "timeout"
    if last in ("cancellederror", "cancelled", "canceled"):
        return "cancelled"
    return "error"

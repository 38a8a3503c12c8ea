"""What a call gets back whose record has no typed values and no exchange: as near to what it was as the record can tell.

A result is taken out of the text and the envelope that it was written in and made what the tool declares to return. An exception is made by
its name, of a class that is there already. A model's failure is made a response of its status.
"""

import builtins
import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, get_origin

from spanreplay.boundary.call import Answer, Turn
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Step, Wire
from spanreplay.replay.reading.asking import decoded, plain_value
from spanreplay.replay.reading.embedded import vectors_meaning
from spanreplay.replay.reading.meaning import answer_meaning
from spanreplay.replay.reading.python_text import python_value

_STATUS_OF: Final[Mapping[str, int]] = {
    "badrequesterror": 400,
    "authenticationerror": 401,
    "permissiondeniederror": 403,
    "notfounderror": 404,
    "conflicterror": 409,
    "unprocessableentityerror": 422,
    "ratelimiterror": 429,
    "internalservererror": 500,
    "overloadederror": 529,
    "resource_exhausted": 429,
    "unavailable": 503,
}
"""The names that SDKs and APIs give to the statuses of failures."""
_STATUS: Final = re.compile(r"\b([45]\d\d)\b")
_SDK_PREFIX: Final = re.compile(r"\A(?:[\w.]+: )?Error code: \d{3}(?: - |\Z)")
_TOOL_FAILED: Final = "Error running tool (non-fatal): "
_WRAPPED_BY: Final = frozenset({"adk"})
"""Dialects whose framework puts every result that is no object under ``result``."""


def model_answer(step: Step, *, duration_ns: int, turn: Turn) -> Answer | None:
    """What a model call gets; ``None`` where the record does not say what that was."""
    if step.outcome in ("ok", "abandoned"):
        told = answer_meaning(step)
        return None if told is None else Answer(outcome="ok", result=told, duration_ns=duration_ns, turn=turn)
    if step.outcome == "cancelled":
        return Answer(outcome="cancelled", duration_ns=duration_ns, turn=turn)
    status = _status(step.error)
    if status is None:
        return None
    return Answer(outcome="error", exchange=_failure(status, step.error), duration_ns=duration_ns, turn=turn)


def embedding_answer(step: Step, *, duration_ns: int, turn: Turn) -> Answer | None:
    """What a call for embeddings gets; ``None`` where the record does not say what that was."""
    told = vectors_meaning(step) if step.outcome == "ok" else None
    return None if told is None else Answer(outcome="ok", result=told, duration_ns=duration_ns, turn=turn)


def tool_answer(step: Step, annotation: object, *, streams: bool, duration_ns: int, turn: Turn) -> Answer | None:
    """What a tool call gets; ``None`` where the record does not say what that was.

    Args:
        step: the recorded step.
        annotation: the declared type of the result.
        streams: the tool is a generator.
        duration_ns: how long it took.
        turn: when to give it.
    """
    if step.outcome == "cancelled":
        return Answer(outcome="cancelled", duration_ns=duration_ns, turn=turn)
    has_result = isinstance(step.output, dict) and "result" in step.output
    if step.outcome in ("ok", "tool_error") and has_result:
        value = _result(step)
        items = (value if isinstance(value, list) else [value]) if streams else None
        return Answer(
            outcome="ok",
            result=None if streams else codec.encode(as_declared(value, annotation)).text,
            items=None if items is None else codec.encode(items).text,
            duration_ns=duration_ns,
            turn=turn,
        )
    if step.outcome == "ok" or step.outcome == "unknown":
        return None
    return Answer(outcome=step.outcome, error=exception_text(step.error), duration_ns=duration_ns, turn=turn)


def as_declared(value: Json, annotation: object) -> object:
    """A value as a call site declares it, where that can be told: a text of JSON for ``str``, an object for a class, or out of such a text.

    Args:
        value: plain JSON.
        annotation: a type, or ``None``.
    """
    if annotation is None:
        return value
    if annotation is str and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    for known in (value, decoded(value)):
        with suppress(Exception):  # not what it declares, or no type that can be checked
            return _validated(known, annotation)
    return value


def _validated(value: Json, annotation: object) -> object:
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is not None:
        return pydantic.TypeAdapter(annotation).validate_python(value)
    plain = get_origin(annotation) or annotation
    if isinstance(value, str) and plain in (dict, list):
        raise TypeError("a text where an object is declared")
    return value


def exception_text(error: Json) -> str:
    """Typed text of the exception that a span tells of.

    Args:
        error: ``{"type", "message"}``.
    """
    told = error if isinstance(error, dict) else {}
    kind, message = told.get("type"), told.get("message")
    name = _class_name(kind) if isinstance(kind, str) and kind else "builtins:Exception"
    said = _own_words(message if isinstance(message, str) else "", name.rpartition(":")[2])
    if name == "builtins:KeyError" and len(said) > 1 and said[0] == said[-1] and said[0] in "'\"":  # its text is the key's display
        said = said[1:-1]
    return json.dumps({"$t": name, "k": "exception", "v": {"message": said, "args": [said] if said else []}})


def _own_words(message: str, kind: str) -> str:
    """What an exception said, out of what a recorder said of it: OpenTelemetry's SDK in a status, the OpenAI Agents SDK in its own way."""
    told = python_value(message.removeprefix(_TOOL_FAILED)) if message.startswith(_TOOL_FAILED) else None
    if isinstance(told, dict) and isinstance(told.get("error"), str):
        return str(told["error"])
    return message.removeprefix(f"{kind}: ")


def _server_said(message: str, kind: str) -> str:
    """What a server said, out of the text that the SDKs of OpenAI and Anthropic make of it: its message, or the display of its body."""
    return _SDK_PREFIX.sub("", message.removeprefix(f"{kind}: ").removeprefix(f"{kind.rpartition('.')[2]}: "))


def _class_name(kind: str) -> str:
    module, _, name = kind.rpartition(".")
    if module:
        return f"{module}:{name}"
    return f"builtins:{name}" if hasattr(builtins, name) else f"__main__:{name}"


def _result(step: Step) -> Json:
    value = step.output["result"]
    if step.dialect in _WRAPPED_BY and isinstance(value, dict) and value.keys() == {"result"}:
        return value["result"]
    if _is_envelope(value):
        inner = plain_value(value)
        return decoded(inner)
    return value


def _is_envelope(value: Json) -> bool:
    """A result in a message or in the content blocks of a protocol, not the value that the function returned."""
    if isinstance(value, dict):
        if value.keys() == {"output"}:
            return _is_envelope(value["output"])
        return value.get("lc") == 1 or ("content" in value and ("toolUseId" in value or "tool_call_id" in value))
    blocks: Sequence[Json] = value if isinstance(value, list) else ()
    return bool(blocks) and all(isinstance(block, dict) and block.keys() in ({"text"}, {"type", "text"}) for block in blocks)


def _status(error: Json) -> int | None:
    told = error if isinstance(error, dict) else {}
    kind, message = str(told.get("type") or ""), str(told.get("message") or "")
    if kind.isdigit():
        return int(kind)
    named = _STATUS_OF.get(kind.rpartition(".")[2].lower())
    found = _STATUS.search(message)
    return named if named is not None else int(found[1]) if found is not None else None


def _failure(status: int, error: Json) -> Wire:
    """A response that says so in the words of every API at once, and that no SDK tries again: the record has one step for all attempts."""
    told = error if isinstance(error, dict) else {}
    kind, message = told.get("type"), told.get("message")
    said = _server_said(str(message or ""), str(kind or ""))
    body_said = python_value(said)
    if not isinstance(body_said, dict):
        words = said or f"the recorded call failed with status {status}"
        body_said = {"type": "error", "error": {"type": kind, "code": status, "status": str(kind or ""), "message": words}}
    body = canonical_json(body_said).encode("utf-8", "surrogatepass")
    return Wire(
        provider=None,
        method="POST",
        url="",
        request_headers=(),
        request_body=b"",
        status=status,
        response_headers=(("content-type", "application/json"), ("x-should-retry", "false")),
        response_body=body,
        chunks=((len(body), 0),),
        complete=True,
    )

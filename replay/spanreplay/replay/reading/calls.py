"""What a function was called with and what it gave, from what instrumentations of functions and of LangChain's tools write."""

import ast
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import Fields, jsonable, too_deep
from spanreplay.replay.reading.python_text import python_members

_CALLED: Final = frozenset({"args", "kwargs"})
_SWITCHES: Final = frozenset({"sanitize_inputs_outputs"})
"""What a framework hands to every tool beside its arguments."""
_LONGEST: Final = 200_000
"""Characters of a Python literal that is read; a longer one stays text."""
_TOOL_OUTPUT: Final = frozenset({"tool_name", "raw_input", "raw_output"})
"""What LlamaIndex puts around what a tool gave."""
_TOOL_MESSAGE: Final = re.compile(r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*") (?:.* )?tool_call_id='([^']*)'(.*)""", re.DOTALL)
"""What ``str()`` makes of a tool message of LangChain."""
_EXECUTED: Final = ("status='success' result=", "status='failure' result=")
"""How begins what ``str()`` makes of Agno's ``FunctionExecutionResult``."""
_WRAPPED: Final = "tool_output"
"""Where LlamaIndex's event of a call's result has the output."""


def called_with(value: Json, names: Sequence[str] = ()) -> Json:
    """The arguments of a call that was written as ``{"args": […], "kwargs": {…}}``, or the latter alone; any other value is itself.

    Args:
        value: what was written, decoded.
        names: of the function's parameters, in order, where they are known: positional arguments get theirs. Without them, or with fewer,
            a call that has positional arguments stays as it was written.
    """
    if not isinstance(value, dict) or "kwargs" not in value or not value.keys() <= _CALLED | _SWITCHES:
        return value
    given, named = value.get("args", []), value["kwargs"]
    if not isinstance(given, list) or not isinstance(named, dict):
        return value
    if len(given) > len(names):
        return value if given else named
    return {**dict(zip(names, given, strict=False)), **named}


def question(value: Json) -> Json:
    """What somebody was asked by a call: its only argument, if that is a text; else its arguments, as :func:`called_with` gives them.

    Args:
        value: what was written of the arguments, decoded.
    """
    called = called_with(value)
    if not isinstance(called, dict):
        return called
    args, named = called.get("args"), called.get("kwargs")
    given = list(called.values())
    if called is value and called.keys() == _CALLED and isinstance(args, list) and isinstance(named, dict):
        given = [*args, *named.values()]
    return given[0] if len(given) == 1 and isinstance(given[0], str) else called


def parameter_names(schema: Json) -> list[str]:
    """The parameters of a tool, from the JSON schema of its arguments or from an object of their descriptions."""
    if not is_schema(schema):
        return []
    properties = schema.get("properties", {} if "type" in schema and isinstance(schema["type"], str) else schema)
    return list(properties) if isinstance(properties, dict) else []


def is_schema(value: Json) -> bool:
    """Whether a value describes arguments, and is not arguments itself."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("properties"), dict) or "$schema" in value or value.get("type") == "object":
        return True
    return bool(value) and all(isinstance(member, dict) and isinstance(member.get("type"), str) for member in value.values())


class Returned(NamedTuple):
    """What a tool gave."""

    value: Json
    call_id: str | None = None
    failed: bool = False
    """The tool says itself that it failed."""


def returned(value: Json) -> Returned:
    """What a tool gave: out of a tool message of LangChain in any of its forms, LlamaIndex's output or Agno's; any other value is itself.

    Args:
        value: what was written, decoded.
    """
    if isinstance(value, str) and value.startswith(_EXECUTED):
        return _executed(value)
    if isinstance(value, str):
        shown = _TOOL_MESSAGE.fullmatch(value) if value.startswith("content=") and len(value) < _LONGEST else None
        return Returned(value) if shown is None else Returned(literal(shown[1]), shown[2] or None, "status='error'" in shown[3])
    if isinstance(value, dict) and value.keys() == {"output"} and isinstance(value["output"], str):
        shown_in = returned(value["output"])
        return shown_in if shown_in.call_id is not None else Returned(value)
    if isinstance(value, dict) and value.keys() >= _TOOL_OUTPUT:
        return Returned(value["raw_output"], failed=value.get("is_error") is True)
    if isinstance(value, dict) and isinstance(held := value.get(_WRAPPED), dict) and held.keys() >= _TOOL_OUTPUT:
        return returned(held)._replace(call_id=Fields(value).identifier("tool_id"))
    message = value
    for name in ("output", "data", "kwargs"):
        inner = message.get(name) if isinstance(message, dict) else None
        if isinstance(inner, dict) and (name == "output" or "tool_call_id" in inner):
            message = inner
    if not isinstance(message, dict) or "content" not in message or "tool_call_id" not in message:
        return Returned(value)
    return Returned(message["content"], Fields(message).identifier("tool_call_id"), message.get("status") == "error")


def _executed(text: str) -> Returned:
    found = python_members(text)
    failed = found.get("status") == "failure"
    name = "error" if failed else "result"
    return Returned(found[name], failed=failed) if name in found else Returned(text, failed=failed)


def literal(text: str) -> Json:
    """The value that Python shows as this text (``{'city': 'Paris'}``); the text itself where it shows none."""
    start = text.lstrip()[:1]
    if start not in ("{", "[", "'", '"') or len(text) > _LONGEST or text.count("[") + text.count("{") + text.count("(") > 1000:
        return text
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if not isinstance(value, dict | list | str) or too_deep(value):
        return text
    return jsonable(value)

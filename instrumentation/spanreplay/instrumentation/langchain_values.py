"""What LangChain and LangGraph pass around, as the record keeps it: without the ids that every execution makes anew.

Messages get a uuid, or ``lc_run--<uuid>``; interrupts are numbered by checkpoint; some models' call ids are made by the client; the files
of deepagents carry the time. None of them says anything, and all of them would make two equal runs differ.
"""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

from spanreplay.content import codec

_DEPTH: Final = 100
_MESSAGE: Final = ("name", "content", "artifact")
_INTERRUPT_ID: Final = re.compile(r"[0-9a-f]{32}")
_INTERRUPTS: Final = "__interrupt__"
_FILE_TIMES: Final = frozenset({"created_at", "modified_at"})


def is_a(cls: type, name: str) -> bool:
    """Whether a class, or one of its bases, is ``module:Name``; nothing is imported."""
    return name in _names(cls)


@lru_cache(maxsize=1024)
def _names(cls: Hashable) -> frozenset[str]:
    return frozenset(f"{base.__module__}:{base.__qualname__}" for base in getattr(cls, "__mro__", ()))


def is_message(value: object) -> bool:
    """Whether it is a message of LangChain's."""
    return is_a(type(value), "langchain_core.messages.base:BaseMessage")


def is_tool_message(value: object) -> bool:
    """Whether it is the result of a tool, as a model is given it."""
    return is_a(type(value), "langchain_core.messages.tool:ToolMessage")


def is_command(value: object) -> bool:
    """Whether it is a command of LangGraph's: an update of the state, a jump, or what a human answered."""
    return is_a(type(value), "langgraph.types:Command")


def shown(value: Any, depth: int = _DEPTH) -> Any:
    """A state, an input or an output, messages in short."""
    if depth == 0 or value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        is_file = value.keys() >= _FILE_TIMES
        told = {key: shown(item, depth - 1) for key, item in value.items() if not (is_file and key in _FILE_TIMES)}
        return {**told, _INTERRUPTS: _sorted(told[_INTERRUPTS])} if _INTERRUPTS in told else told
    if type(value) in (list, tuple):
        return [shown(item, depth - 1) for item in value]
    if is_message(value):
        return _message(value, depth - 1)
    if is_a(type(value), "langgraph.types:Interrupt"):
        return {"interrupt": shown(value.value, depth - 1)}
    if is_command(value):
        return {name: shown(item, depth - 1) for name, item in _command(value).items()}
    if is_a(type(value), "langgraph.types:Send"):
        return {"send": value.node, "arg": shown(value.arg, depth - 1)}
    if is_a(type(value), "langgraph.types:GraphOutput"):
        return {"value": shown(value.value, depth - 1), "interrupts": shown(value.interrupts, depth - 1)}
    return value


def _sorted(items: Iterable[Any]) -> list[Any]:
    """In an order that does not tell which of several tasks at once was the first to ask."""
    return sorted(items, key=lambda item: codec.encode(item).text)


def _command(command: Any) -> dict[str, Any]:
    told = {field.name: getattr(command, field.name) for field in fields(command)}
    answers = told.get("resume")
    if isinstance(answers, dict) and answers and all(isinstance(key, str) and _INTERRUPT_ID.fullmatch(key) for key in answers):
        told["resume"] = _sorted(answers.values())
    return {name: item for name, item in told.items() if item is not None and item != ()}


def _message(message: Any, depth: int) -> dict[str, Any]:
    told: dict[str, Any] = {"type": str(message.type).removesuffix("MessageChunk").lower().replace("aimessage", "ai")}
    for name in _MESSAGE:
        item = getattr(message, name, None)
        if item or name == "content":
            told[name] = shown(item, depth)
    if getattr(message, "status", "success") == "error":
        told["status"] = "error"
    calls = getattr(message, "tool_calls", None)
    if calls:
        told["tool_calls"] = [{"name": call["name"], "args": shown(call["args"], depth)} for call in calls]
    return told


# ---- results ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A ``Send`` of LangGraph's, which is a plain class that no codec restores."""

    node: str
    arg: Any
    timeout: Any = None


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a tool gave, and what it wrote to the state meanwhile, past its result, as the files of deepagents are."""

    result: Any
    writes: list[tuple[str, Any]]


def packed(value: Any, name: str) -> Any:
    """What a tool gave, as it is kept: the text of a message that says nothing else; commands in a form that can be restored.

    Args:
        value: what ``BaseTool.run`` returned.
        name: the tool's.
    """
    if type(value) is list:
        return [packed(item, "") if is_command(item) else item for item in value]
    if is_command(value):
        goto = value.goto
        if any(is_a(type(item), "langgraph.types:Send") for item in _listed(goto)):
            sent = [Sent(item.node, item.arg, getattr(item, "timeout", None)) if hasattr(item, "node") else item for item in _listed(goto)]
            return replace(value, goto=sent if isinstance(goto, list | tuple) else sent[0])
        return value
    return value.content if is_tool_message(value) and _says_only_text(value, name) else value


def _says_only_text(message: Any, name: str) -> bool:
    said = dict(vars(message))
    text = said.pop("content", None)
    said.pop("tool_call_id", None)
    plain = {"name": name, "type": "tool", "status": "success"}
    return isinstance(text, str) and {key: value for key, value in said.items() if value not in (None, {}, [])} == plain


def unpacked(value: Any, name: str, call_id: str | None, modules: Mapping[str, Any]) -> Any:
    """What :func:`packed` was given, or what the record of another says of it.

    Args:
        value: as kept.
        name: the tool's.
        call_id: the model's id of the call; a call that has one gives a message, or commands.
        modules: has LangChain's and LangGraph's where they are imported.
    """
    if type(value) is list and any(is_command(item) or is_tool_message(item) for item in value):
        return [unpacked(item, name, None, modules) for item in value]
    if is_command(value):
        command: Any = value
        if any(isinstance(item, Sent) for item in _listed(command.goto)):
            send = modules["langgraph.types"].Send
            made = [_send(send, item) if isinstance(item, Sent) else item for item in _listed(command.goto)]
            return replace(command, goto=made if isinstance(command.goto, list | tuple) else made[0])
        return value
    if call_id is None or is_tool_message(value):
        return value
    message = modules["langchain_core.messages.tool"].ToolMessage
    if isinstance(value, dict) and value.get("type") == "tool" and "content" in value:  # a message, as others record it
        told = {key: value[key] for key in ("artifact", "status") if value.get(key) is not None}
        return message(value["content"], tool_call_id=call_id, name=name, **told)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return message(text, artifact=None, tool_call_id=call_id, name=name, status="success")


def _send(send: Any, sent: Sent) -> Any:
    return send(sent.node, sent.arg) if sent.timeout is None else send(sent.node, sent.arg, timeout=sent.timeout)


def _listed(goto: Any) -> list[Any]:
    return list(goto) if isinstance(goto, list | tuple) else [goto]

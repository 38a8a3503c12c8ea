"""Messages and generations of LangChain, in each form it serialises them.

``dumpd`` (``{"lc": 1, "type": "constructor", "id": […, "HumanMessage"], "kwargs": {…}}``), ``model_dump`` (``{"type": "human", "content",
"additional_kwargs", …}``), ``message_to_dict`` (``{"type": "human", "data": {…}}``), and chat messages with ``additional_kwargs``.
Source: ``langchain_core.messages`` and ``.outputs`` (1.8.3).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from spanreplay.replay.model import Json
from spanreplay.replay.reading.parts import part, parts, role_of

NAME: Final = "langchain"

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "HumanMessageChunk": "user",
    "AIMessageChunk": "assistant",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
}
_REASONS: Final[Mapping[str, str]] = {
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "tool_use": "tool_call",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
}
_PAIR_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_DUMPED: Final = frozenset({"lc", "type", "id", "kwargs", "name"})
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk"})


def reads(item: Mapping[str, Json]) -> bool:
    """A message of LangChain, in whichever form."""
    return _fields(item) is not None


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """The message; its tool calls once, though LangChain may hold them three times."""
    fields = _fields(item) or {}
    extra = _object(fields.get("additional_kwargs"))
    said = role_of(fields.get("role"), role)
    content = fields.get("content")
    made: dict[str, Json] = {"role": said}
    if said == "tool":
        made["parts"] = [{"type": "tool_call_response", "id": fields.get("tool_call_id"), "response": content}]
    else:
        calls = _calls(fields, extra)
        blocks = content if isinstance(content, list) else [content] if content not in (None, "") else []
        made["parts"] = [*parts([block for block in blocks if not (calls and _is_call(block))]), *calls]
    name = fields.get("name") or extra.get("name")
    if isinstance(name, str):
        made["name"] = name
    if finish := _finish(fields):
        made["finish_reason"] = finish
    return [made]


def asked(body: Mapping[str, Json]) -> Json:
    """What a run of a chat model got: ``messages``, in a list for each prompt; or ``prompts``, texts, for a model that completes."""
    prompts = body.get("prompts")
    if isinstance(prompts, list) and prompts and all(isinstance(prompt, str) for prompt in prompts):
        said: list[Json] = [{"role": "user", "content": prompt} for prompt in prompts]
    else:
        given = body.get("messages")
        if not isinstance(given, list):
            return None
        nested = bool(given) and all(isinstance(inner, list) for inner in given)
        pairs = [_pair(inner) for inner in given]
        said = pairs if all(pairs) else [message for inner in given for message in inner] if nested else given
        if not nested and not any(isinstance(message, dict) and reads(message) for message in said):
            return None
    tools = body.get("tools")
    return {
        "messages": said,
        "system": [],
        "tools": tools if isinstance(tools, list) else [],
        "params": {key: value for key, value in body.items() if key not in ("messages", "prompts", "tools") and value is not None},
    }


def answered(body: Mapping[str, Json]) -> Json:
    """What a run of a model gave: ``generations``, in a list for each prompt."""
    listed = body.get("generations")
    if not isinstance(listed, list):
        return None
    said: list[Json] = []
    finish: Json = None
    for inner in listed:
        for generation in inner if isinstance(inner, list) else [inner]:
            if not isinstance(generation, dict):
                continue
            message = generation.get("message")
            said.append(message if isinstance(message, dict) else {"role": "assistant", "content": generation.get("text")})
            finish = finish or _reason(_object(generation.get("generation_info")))
    return {"messages": said, "finish": finish} if said else None


class ToolAnswer(NamedTuple):
    """What a tool gave, where LangChain made a message of it."""

    name: str | None
    call_id: str | None
    content: Json
    failed: bool
    """The message says so; the tool may have raised nothing."""


def tool_answer(value: Json) -> ToolAnswer | None:
    """The message of a tool, in whichever form; ``None`` of anything else."""
    fields = _fields(value) if isinstance(value, dict) else None
    if fields is None or role_of(fields.get("role"), "") != "tool" or "tool_call_id" not in fields:
        return None
    name, call_id = fields.get("name"), fields["tool_call_id"]
    return ToolAnswer(
        name=name if isinstance(name, str) else None,
        call_id=call_id if isinstance(call_id, str) and call_id else None,
        content=fields.get("content"),
        failed=fields.get("status") == "error",
    )


def _pair(item: Json) -> Json:
    """A message that was given as a pair of role and content, or ``None``."""
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str) or not isinstance(item[1], str | list):
        return None
    role = _ROLES.get(item[0], item[0])
    return {"role": role, "content": item[1]} if role in _PAIR_ROLES else None


def _fields(item: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The fields of a message, with its ``role``; ``None`` from anything else."""
    kind = item.get("type")
    if isinstance(item.get("kwargs"), dict) and (item.get("lc") is not None or item.keys() <= _DUMPED):
        kwargs: dict[str, Json] = item["kwargs"]
        named = item.get("id")
        last = named[-1] if isinstance(named, list) and named else None
        role = _ROLES.get(str(kwargs.get("type"))) or (_class_role(last) if isinstance(last, str) else None)
        return {"role": role, **kwargs} if role is not None and "content" in kwargs else None
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    data = item.get("data")
    if role is not None and isinstance(data, dict) and "content" in data:
        return {"role": role, **data}
    if role is not None and "content" in item and "parts" not in item and not isinstance(item.get("role"), str):
        return {**item, "role": role}
    if "additional_kwargs" in item and "content" in item and isinstance(item.get("role"), str):
        return item
    return None


def _class_role(name: str) -> str | None:
    """The role that the name of a message class tells, such as ``HumanMessage`` or ``AIMessageChunk``."""
    kind = name.removesuffix("Chunk").removesuffix("Message").lower()
    return _ROLES.get(kind) if "Message" in name else None


def _calls(fields: Mapping[str, Json], extra: Mapping[str, Json]) -> list[dict[str, Json]]:
    for listed in (fields.get("tool_calls"), extra.get("tool_calls")):
        calls = [_call(call) for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
        if calls:
            broken = fields.get("invalid_tool_calls")
            return [*calls, *[_call(call) for call in broken if isinstance(call, dict)]] if isinstance(broken, list) else calls
    old = extra.get("function_call")
    return [part({"function": old})] if isinstance(old, dict) else []


def _call(call: dict[str, Json]) -> dict[str, Json]:
    made = part(call if isinstance(call.get("function"), dict) else {**call, "type": "tool_call"})
    return {key: value for key, value in made.items() if key in ("type", "id", "name", "arguments") or (key == "error" and value)}


def _is_call(block: Json) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind in _CALL_BLOCKS


def _finish(fields: Mapping[str, Json]) -> str | None:
    return _reason(_object(fields.get("response_metadata")))


def _reason(told: Mapping[str, Json]) -> str | None:
    for name in ("finish_reason", "stop_reason", "done_reason"):
        reason = told.get(name)
        if isinstance(reason, str) and reason:
            return _REASONS.get(reason, reason)
    return None


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}

"""What a model was asked and what it answered, from ``gen_ai.*`` attributes, in the parts shape of the GenAI conventions.

The shape: ``[{"role": …, "parts": [{"type": "text", "content": …} | {"type": "tool_call", "id", "name", "arguments"} |
{"type": "tool_call_response", "id", "response"} | …]}]``. Older spellings and chat messages are read too; a part of an unknown type is
kept as it is.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from spanreplay.replay.fields import NULL_IDS, Fields, decoded_json, jsonable, whole
from spanreplay.replay.model import Json
from spanreplay.semconv import attributes as a

REQUEST_PREFIX: Final = "gen_ai.request."
USAGE_PREFIX: Final = "gen_ai.usage."
OLD_SYSTEM: Final = "gen_ai.system"
OLD_USAGE: Final[Mapping[str, str]] = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "cache_creation_input_tokens": "cache_write_input_tokens",
}

_PART_TYPES: Final[Mapping[str, str]] = {
    "input_text": "text",
    "output_text": "text",
    "thinking": "reasoning",
    "tool-call": "tool_call",
    "tool_use": "tool_call",
    "function_call": "tool_call",
    "tool-result": "tool_call_response",
    "tool_result": "tool_call_response",
    "tool_response": "tool_call_response",
}
_ROLES: Final[Mapping[str, str]] = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}


class Asked(NamedTuple):
    """A tool call that a model's output asked for."""

    call_id: str | None
    name: str | None
    arguments: Json


def model_input(fields: Fields) -> Json:
    """``{"messages", "system", "tools", "params"}``, or ``None`` where the messages were not captured."""
    given = fields.json(a.GEN_AI_INPUT_MESSAGES, strict=True)
    system = fields.json(a.GEN_AI_SYSTEM_INSTRUCTIONS)
    if given is None and not system:
        return None
    tools = fields.json(a.GEN_AI_TOOL_DEFINITIONS, strict=True)
    view: dict[str, Json] = {
        "messages": messages(given, "user"),
        "system": parts(system) if system else [],
        "tools": tools if isinstance(tools, list) else [],
        "params": params(fields),
    }
    if isinstance(given, str):
        view["raw"] = given
    return view


def model_output(fields: Fields) -> Json:
    """``{"messages", "finish"}``, or ``None`` where the answer was not captured."""
    given = fields.json(a.GEN_AI_OUTPUT_MESSAGES, strict=True)
    if given is None:
        return None
    said = messages(given, "assistant")
    finish = finish_reason(fields)
    if finish is None and said:
        finish = next((m["finish_reason"] for m in said if isinstance(m.get("finish_reason"), str)), None)
    view: dict[str, Json] = {"messages": said, "finish": finish}
    if isinstance(given, str):
        view["raw"] = given
    return view


def finish_reason(fields: Fields) -> str | None:
    """Why the model stopped; of several choices, the first."""
    return next(iter(fields.texts(a.GEN_AI_RESPONSE_FINISH_REASONS)), None)


def params(fields: Fields) -> dict[str, Json]:
    """What was asked of the model beside the messages: every ``gen_ai.request.*`` by its own name."""
    return {
        name.removeprefix(REQUEST_PREFIX): jsonable(value)
        for name, value in fields.attributes.items()
        if name.startswith(REQUEST_PREFIX) and value is not None
    }


def usage(fields: Fields) -> dict[str, int]:
    """Tokens by kind, dots as underscores, old names as the present ones."""
    counted: dict[str, int] = {}
    for name, value in fields.attributes.items():
        number = whole(value) if name.startswith(USAGE_PREFIX) else None
        if number is not None:
            kind = name.removeprefix(USAGE_PREFIX).replace(".", "_")
            if kind in OLD_USAGE:
                counted.setdefault(OLD_USAGE[kind], number)
            else:
                counted[kind] = number
    return counted


def messages(value: Json, role: str) -> list[dict[str, Json]] | None:
    """Messages in the parts shape; ``None`` from what is no list of messages.

    Args:
        value: the decoded attribute.
        role: of a message that names none.
    """
    if isinstance(value, dict):
        value = value["messages"] if isinstance(value.get("messages"), list) else [value]
    if not isinstance(value, list):
        return None
    return [_message(item, role) for item in value]


def _message(item: Json, role: str) -> dict[str, Json]:
    if not isinstance(item, dict):
        return {"role": role, "parts": parts(item)}
    given = item.get("role")
    said = _ROLES.get(given, given) if isinstance(given, str) else role
    rest = {key: value for key, value in item.items() if key not in ("role", "parts", "content", "tool_calls", "tool_call_id")}
    if "parts" in item:
        return {"role": said, "parts": parts(item["parts"]), **rest}
    content = item.get("content")
    made = [] if content is None else parts(content)
    if said == "tool":
        answer = content if not isinstance(content, list) else made
        made = [{"type": "tool_call_response", "id": item.get("tool_call_id") or item.get("id"), "response": answer}]
    calls = item.get("tool_calls")
    made += [_part(call if "type" in call else {"type": "tool_call", **call}) for call in calls or () if isinstance(call, dict)]
    return {"role": said, "parts": made, **rest}


def parts(value: Json) -> list[dict[str, Json]]:
    """The parts of a message, from a list of parts, one part, or bare text."""
    if isinstance(value, list):
        return [_part(item) for item in value]
    return [_part(value)]


def _part(item: Json) -> dict[str, Json]:
    if not isinstance(item, dict):
        return {"type": "text", "content": item}
    function = item.get("function")
    if isinstance(function, dict):
        item = {**{k: v for k, v in item.items() if k != "function"}, **function, "type": "tool_call"}
    kind = item.get("type")
    if kind is None:
        kind = "text" if "text" in item or "content" in item else "generic"
    kind = _PART_TYPES.get(kind, kind) if isinstance(kind, str) else str(kind)
    part: dict[str, Json] = {**item, "type": kind}
    if kind in ("text", "reasoning") and "content" not in part:
        for old in ("text", "thinking"):
            if old in part:
                part["content"] = part.pop(old)
                break
    elif kind == "tool_call_response" and "response" not in part:
        for old in ("result", "output", "content"):
            if old in part:
                part["response"] = part.pop(old)
                break
    elif kind == "tool_call" and "arguments" not in part:
        for old in ("input", "args"):
            if old in part:
                part["arguments"] = part.pop(old)
                break
    return part


def asked_for(output: Json) -> Iterator[Asked]:
    """The tool calls that a model's output asks for, in order."""
    said: Any = output.get("messages") if isinstance(output, dict) else None
    for message in said if isinstance(said, list) else ():
        held = message.get("parts") if isinstance(message, dict) else None
        for part in held if isinstance(held, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call":
                call_id, name = part.get("id"), part.get("name")
                yield Asked(
                    call_id if isinstance(call_id, str) and call_id not in NULL_IDS else None,
                    name if isinstance(name, str) else None,
                    decoded_json(part.get("arguments"))[0],
                )

"""What a model was asked and what it answered, from ``gen_ai.*`` attributes, in the parts shape of the GenAI conventions.

The shape: ``[{"role": …, "parts": [{"type": "text", "content": …} | {"type": "tool_call", "id", "name", "arguments"} |
{"type": "tool_call_response", "id", "response"} | …]}]``. Older spellings and chat messages are read too; a part of an unknown type is
kept as it is.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import NULL_IDS, Fields, decoded_json, jsonable, whole
from spanreplay.replay.reading.growing import PerElement
from spanreplay.replay.reading.parts import is_summary, part, parts, role_of
from spanreplay.replay.reading.shape import registry
from spanreplay.replay.reading.shown_haystack import shown_of_haystack
from spanreplay.replay.reading.shown_messages import shown_of_langchain
from spanreplay.semconv import attributes as a

REQUEST_PREFIX: Final = "gen_ai.request."
NUMBERED_TOOLS: Final = "gen_ai.request.functions."
"""AgentOps numbers the tools that a model is offered, in members."""
USAGE_PREFIX: Final = "gen_ai.usage."
OLD_SYSTEM: Final = "gen_ai.system"
OLD_USAGE: Final[Mapping[str, str]] = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "cache_creation_input_tokens": "cache_write_input_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}


_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_CHOICE: Final = frozenset({"index", "message", "finish_reason", "logprobs"})
"""Members of a choice of OpenAI's Chat Completions API."""
_NOT_SAID: Final = frozenset({"user", "system", "developer", "tool"})
"""Roles of what is no answer."""
_READ: Final = frozenset({"role", "parts", "content", "tool_calls", "tool_call_id"})
_TALKS: Final = frozenset({"role", "content", "parts", "text", "tool_calls", "messages"})
"""What a message, or an object that has messages, is known by."""


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
        "messages": messages(_said(fields, a.GEN_AI_INPUT_MESSAGES, given), "user"),
        "system": parts(system) if system else [],
        "tools": definitions(tools),
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
    said = messages(_said(fields, a.GEN_AI_OUTPUT_MESSAGES, given), "assistant")
    finish = finish_reason(fields)
    if finish is None and said:
        finish = _finish(said)
    view: dict[str, Json] = {"messages": said, "finish": finish}
    if isinstance(given, str):
        view["raw"] = given
    return view


def _said(fields: Fields, name: str, given: Json) -> Json:
    """Messages; a whole text that is no JSON is what was said."""
    return [given] if isinstance(given, str) and name not in fields.reasons else given


def finish_reason(fields: Fields) -> str | None:
    """Why the model stopped; of several choices, the first."""
    return next(iter(fields.texts(a.GEN_AI_RESPONSE_FINISH_REASONS)), None)


def params(fields: Fields) -> dict[str, Json]:
    """What was asked of the model beside the messages: every ``gen_ai.request.*`` by its own name; tools in a numbered form are none."""
    return {
        name.removeprefix(REQUEST_PREFIX): jsonable(value)
        for name, value in fields.attributes.items()
        if name.startswith(REQUEST_PREFIX) and value is not None and not name.startswith(NUMBERED_TOOLS)
    }


def usage(fields: Fields) -> dict[str, int]:
    """Tokens by kind, dots as underscores, old names as the present ones. A negative number is no count."""
    counted: dict[str, int] = {}
    for name, value in fields.attributes.items():
        number = whole(value) if name.startswith(USAGE_PREFIX) else None
        if number is not None and number >= 0:
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
    return list(chain.from_iterable(_of_role(role).of(value)))


@lru_cache(maxsize=16)
def _of_role(role: str) -> PerElement[list[dict[str, Json]]]:
    return PerElement(lambda item: _messages(item, role))


def _messages(item: Json, role: str) -> list[dict[str, Json]]:
    if not isinstance(item, dict):
        shown = shown_of_langchain(item) or shown_of_haystack(item) if isinstance(item, str) else None
        return _messages(shown, role) if shown else [{"role": role, "parts": parts(item)}]
    if _is_read(item):
        return [item]
    for shape in registry():
        if shape.reads(item):
            return shape.messages(item, role)
    said = item.get("message")
    if isinstance(said, dict) and "role" in said and item.keys() <= _CHOICE:  # Laminar has the choices of a response there
        finish = item.get("finish_reason")
        finish = "tool_call" if finish in ("tool_calls", "function_call") else finish
        return [_message({**said, "finish_reason": finish} if finish is not None else said, role)]
    return [_message(item, role)]


def _is_read(item: dict[str, Json]) -> bool:
    """Whether a message is in the parts shape to the letter, as most are: no shape need be asked then."""
    role, held = item.get("role"), item.get("parts")
    if not isinstance(role, str) or role not in _ROLES or not isinstance(held, list) or not all(map(_is_part, held)):
        return False
    if "tool_calls" in item or "tool_call_id" in item:
        return False
    return all(value is not None and (name != "finish_reason" or value != "") for name, value in item.items())


def _is_part(part: Json) -> bool:
    if not isinstance(part, dict):
        return False
    kind = part.get("type")
    if kind in ("text", "reasoning"):
        return isinstance(part.get("content"), str) and not (kind == "reasoning" and is_summary(part["content"]))
    if kind == "tool_call":
        return not isinstance(part.get("arguments", ""), str) and "name" in part and "call_id" not in part
    return kind == "tool_call_response" and "response" in part and "id" in part


def _message(item: dict[str, Json], role: str) -> dict[str, Json]:
    said = role_of(item.get("role"), role)
    rest = {key: value for key, value in item.items() if key not in _READ and value is not None}
    if rest.get("finish_reason") == "":
        del rest["finish_reason"]
    content = item.get("content")
    if "parts" in item:
        held = parts(item["parts"])
        beside = bool(item.get("tool_calls") or item.get("tool_call_id"))  # LiteLLM: what an API has, beside the parts
        if not beside or any(one["type"] in ("tool_call", "tool_call_response") for one in held):
            return {"role": said, "parts": held, **rest}
        content = _content_of(held, said)
    if content is None and isinstance(item.get("text"), str):
        content = rest.pop("text")
    made = [] if content is None else parts(content)
    if said == "tool":
        answer = content if not isinstance(content, list) else made
        made = [{"type": "tool_call_response", "id": item.get("tool_call_id") or item.get("id"), "response": answer}]
    calls = item.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    made += [part(call if "type" in call else {"type": "tool_call", **call}) for call in calls if isinstance(call, dict)]
    return {"role": said, "parts": made, **rest}


def _content_of(held: list[dict[str, Json]], role: str) -> Json:
    """The content of a message in parts, as an API has it: a tool's text, and no empty text beside calls."""
    if role == "tool":
        return held[0].get("content") if len(held) == 1 and held[0]["type"] == "text" else list[Json](held)
    return [one for one in held if one["type"] != "text" or one.get("content")]


_SCHEMAS: Final = ("input_schema", "inputSchema")
"""What the parameters of a tool are called by the Anthropic API, and by MCP and the Vercel AI SDK."""


def definitions(tools: Json) -> list[Json]:
    """Tools as the conventions define them, ``{"type", "name", "description", "parameters"}``, from whatever an API takes them as."""
    return [_definition(tool) for tool in tools] if isinstance(tools, list) else []


def _definition(tool: Json) -> Json:
    if not isinstance(tool, dict):
        return tool
    tool = {key: value for key, value in tool.items() if value is not None}
    function = tool.get("function")
    if isinstance(function, dict):
        told = {key: value for key, value in function.items() if value is not None}
        tool = {"type": "function", **told, **{key: value for key, value in tool.items() if key not in ("function", "type")}}
    schema = next((name for name in _SCHEMAS if name in tool), None)
    if schema is not None and "parameters" not in tool and tool.get("type", "function") in ("custom", "function"):
        rest = {key: value for key, value in tool.items() if key not in (schema, "type")}
        tool = {"type": "function", **rest, "parameters": tool[schema]}
    return tool if "type" in tool or "parameters" not in tool else {"type": "function", **tool}


def input_view(value: Json) -> Json:
    """``{"messages", "system", "tools", "params"}`` from whatever says what a model was asked.

    Args:
        value: decoded: a request body of any known shape, messages, or anything else, taken for what the user said; ``None`` gives
            ``None``.
    """
    if value is None:
        return None
    view = body_asked(value)
    return view if view is not None else _asked({"messages": value if is_talk(value) else [{"role": "user", "content": _as_text(value)}]})


def _asked(found: Mapping[str, Json]) -> dict[str, Json]:
    system = found.get("system")
    return {
        "messages": messages(found.get("messages"), "user") or [],
        "system": parts(system) if system else [],
        "tools": definitions(found.get("tools")),
        "params": found.get("params") or {},
    }


def output_view(value: Json) -> Json:
    """``{"messages", "finish"}`` from whatever says what a model answered.

    Args:
        value: decoded: a response body of any known shape, messages, or anything else, taken for the text of the answer; ``None`` gives
            ``None``.
    """
    if value is None:
        return None
    view = body_answered(value)
    return (
        view
        if view is not None
        else _answered({"messages": value if is_talk(value) else [{"role": "assistant", "content": _as_text(value)}]})
    )


def _answered(found: Mapping[str, Json]) -> dict[str, Json]:
    said = messages(found.get("messages"), "assistant") or []
    return {"messages": said, "finish": found.get("finish") or _finish(said)}


def body_asked(value: Json) -> Json:
    """The view of a request body of a known shape, or of the list of its items; ``None`` of anything else."""
    body = {"input": value} if isinstance(value, list) else value
    found = next((view for shape in registry() if (view := shape.asked(body)) is not None), None) if isinstance(body, dict) else None
    return None if found is None else _asked(found)


def body_answered(value: Json) -> Json:
    """The view of a response body of a known shape, of a list of its items or of such bodies; ``None`` of anything else."""
    body = {"output": value} if isinstance(value, list) else value
    found = next((view for shape in registry() if (view := shape.answered(body)) is not None), None) if isinstance(body, dict) else None
    if found is None and isinstance(value, list):
        found = _of_bodies(value)
    return None if found is None else _answered(found)


def _of_bodies(bodies: list[Json]) -> Json:
    """One view of several bodies; ``None`` where one of them is none: what the stream of an agent's model ended with is a list of one."""
    views = [view for body in bodies if isinstance(body, dict) and (view := body_answered(body)) is not None]
    if not views or len(views) != len(bodies):
        return None
    return {"messages": [message for view in views for message in view["messages"]], "finish": views[-1]["finish"]}


def is_talk(value: Json) -> bool:
    """Whether a value is a message or a list of messages and parts, and not something that was said."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) or is_talk(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(key in value for key in _TALKS) or any(shape.reads(value) for shape in registry())


def unpacked(text: str) -> tuple[Json, bool]:
    """The blocks of content that a text holds as JSON, or the text, since somebody may have said it as it is; and whether it is whole."""
    if text.lstrip()[:1] != "[":
        return text, True
    decoded, whole_text = decoded_json(text)
    if isinstance(decoded, list) and decoded and all(isinstance(block, dict) and _is_block(block) for block in decoded):
        return decoded, True
    return text, whole_text or not text.lstrip().startswith('[{"')


def _is_block(block: Mapping[str, Json]) -> bool:
    if isinstance(block.get("type"), str) and "function" not in block:
        return True
    if isinstance(block.get("text"), str):
        return True
    return any(shape.reads({"role": "user", "content": [block]}) for shape in registry())


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _finish(said: list[dict[str, Json]]) -> str | None:
    """Why the first answer stopped, of those after all that was not said by the model: a state of an agent begins with what was asked."""
    told: str | None = None
    for message in said:
        if message.get("role") in _NOT_SAID:
            told = None
        elif told is None and isinstance(message.get("finish_reason"), str):
            told = str(message["finish_reason"])
    return told


def asked_for(output: Json) -> Iterator[Asked]:
    """The tool calls that a model's output asks for, in order."""
    said: Any = output.get("messages") if isinstance(output, dict) else None
    for message in said if isinstance(said, list) else ():
        held = message.get("parts") if isinstance(message, dict) else None
        for item in held if isinstance(held, list) else ():
            if isinstance(item, dict) and item.get("type") == "tool_call":
                call_id, name = item.get("id"), item.get("name")
                yield Asked(
                    call_id if isinstance(call_id, str) and call_id not in NULL_IDS else None,
                    name if isinstance(name, str) else None,
                    decoded_json(item.get("arguments"))[0],
                )

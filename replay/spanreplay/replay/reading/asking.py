"""What a model is asked, in one form for the wire and for what any instrumentation wrote of it.

Instrumentations put the system prompt among the messages or beside them, split and join messages, give tool results the role of the user,
leave ids out, and write arguments and results as text or as values. What is left here is what all of them can mean: who said what, which
tools were called with what, and what came back, in order. Thoughts are left out: most instrumentations drop them.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from spanreplay.replay.model import Json, Step
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.live_calls import read_live
from spanreplay.replay.reading.messages import definitions
from spanreplay.replay.reading.parts import role_of
from spanreplay.replay.reading.python_text import python_value
from spanreplay.replay.reading.settings import other_settings, settings
from spanreplay.replay.reading.withheld import is_empty
from spanreplay.semconv import attributes as names

TurnKind: TypeAlias = Literal["text", "call", "result", "media", "unknown"]

_THOUGHTS: Final = frozenset({"reasoning", "thinking", "compaction", "redacted_thinking"})
_WRAPS: Final = frozenset({"result", "output", "content", "response", "text", "error"})
"""Keys under which an API or a framework puts what a tool gave, where it stands alone."""
_LAYERS: Final = 6
_HOLDERS: Final = ("content", "data", "uri", "url", "file_data", "file_url", "image_url", "base64", "file_id")
"""Keys of what an attachment holds: the conventions', and those of the OpenAI and Anthropic APIs and of LangChain."""


class Turn(NamedTuple):
    """One thing said, called or given."""

    kind: TurnKind
    role: str
    """``user``, ``assistant``, ``tool``, or as recorded."""
    value: Json
    """Texts that stand together as a list; ``{"name", "arguments"}`` of a call; the plain value of a result; a part of another sort.

    Of what is unknown ``None``: a message was there, and what it said was left out."""
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a model is asked."""

    model: str | None
    system: tuple[str, ...]
    turns: tuple[Turn, ...]
    tools: Mapping[str, Json]
    """Name to ``{"description", "parameters"}``, whichever of them are known."""
    settings: Mapping[str, Json]
    """What is set, see :mod:`spanreplay.replay.reading.settings`."""
    others: Mapping[str, Json] = field(default_factory=dict)
    """What else is set, by the name that it was given."""
    all_settings: bool = False
    """What is not among the settings was not set."""
    provider: str | None = None
    """Name of the provider whose API a live call is of."""
    lead: int = 0
    """Messages that stood before the first turn and are in ``system``."""


def recorded_request(step: Step, redact: Callable[[str], str]) -> Request | None:
    """What a recorded model call asked; ``None`` where its messages were not captured.

    Args:
        step: the recorded step.
        redact: what is done to the text of a live call.
    """
    asked = step.input
    if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
        return None
    asked = redacted(asked, redact)
    told = step.versions.get("model")
    model = told.get("request") if isinstance(told, dict) else None
    params = asked.get("params")
    return _request(
        model if isinstance(model, str) else step.name,
        asked.get("system"),
        asked["messages"],
        asked.get("tools"),
        settings(params, step.dialect) if isinstance(params, dict) else {},
        others=other_settings(params) if isinstance(params, dict) else {},
        all_settings=isinstance(params, dict) and step.every_setting,
    )


def live_request(asked: str, name: str) -> Request | None:
    """What a live model call asks; ``None`` where no provider knows it.

    Args:
        asked: its matching form, JSON text with ``method``, ``url`` and ``body``.
        name: of the model.
    """
    live = read_live(asked)
    if live is None:
        return None
    view, body = live.view, live.body
    return _request(
        name,
        _value(view.get(names.GEN_AI_SYSTEM_INSTRUCTIONS)),
        _value(view.get(names.GEN_AI_INPUT_MESSAGES)),
        _value(view.get(names.GEN_AI_TOOL_DEFINITIONS)),
        settings(body) if isinstance(body, dict) else {},
        others=other_settings(body) if isinstance(body, dict) else {},
        all_settings=True,
        provider=live.provider,
    )


def redacted(value: Json, redact: Callable[[str], str]) -> Json:
    """A value with what is done to the text of a live call."""
    clean: Json = json.loads(redact(json.dumps(value, ensure_ascii=False)))
    return clean


def decoded(value: Json) -> Json:
    """A value out of the JSON text, or the text of a Python display, that it was written in; a text that is neither is itself."""
    if not isinstance(value, str):
        return value
    found = decoded_json(value)[0]
    displayed = python_value(found) if isinstance(found, str) else found
    return value if displayed is None else displayed


def plain_value(value: Json) -> Json:
    """What a tool was given or gave, out of the JSON text, the parts and the envelopes that it was written in."""
    for _ in range(_LAYERS):
        inner = _opened(value)
        if inner is value:
            return value
        value = inner
    return value


def _opened(value: Json) -> Json:
    if isinstance(value, str):
        return decoded(value)
    if isinstance(value, list):
        texts = [_text_of(item) for item in value]
        return "".join(text for text in texts if text is not None) if texts and None not in texts else value
    if not isinstance(value, dict):
        return value
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), dict):  # a message as LangChain dumps it
        return value["kwargs"].get("content", value)
    if "content" in value and ("toolUseId" in value or "tool_call_id" in value):  # a result of Strands, a ToolMessage
        return value["content"]
    text = _text_of(value)
    if text is not None:
        return text
    return next(iter(value.values())) if len(value) == 1 and next(iter(value)) in _WRAPS else value


def _text_of(item: Json) -> str | None:
    """The text of what is a text part in some spelling, and nothing more."""
    if not isinstance(item, dict) or item.get("type", "text") not in ("text", "input_text", "output_text"):
        return None
    found = next((item[key] for key in ("text", "content") if isinstance(item.get(key), str)), None)
    return found if found is not None and ("type" in item or len(item) == 1) else None


def _value(text: Any) -> Json:
    return json.loads(text) if isinstance(text, str) else None


def _request(
    model: str | None,
    system: Json,
    messages: Json,
    tools: Json,
    set_to: Mapping[str, Json],
    *,
    others: Mapping[str, Json],
    all_settings: bool,
    provider: str | None = None,
) -> Request:
    told = [text for part in system or () if (text := _content(part))] if isinstance(system, list) else []
    turns: list[Turn] = []
    lead = 0
    for message in messages if isinstance(messages, list) else ():
        found = message if isinstance(message, dict) else {}
        role = role_of(found.get("role"), "user")
        held = found.get("parts")
        parts: list[Json] = held if isinstance(held, list) else []
        if role == "system":
            told += [text for part in parts if (text := _content(part))]
            lead += not turns
            continue
        if is_empty(found):
            turns.append(Turn("unknown", role, None))
        for part in parts:
            _add(turns, role, part)
    return Request(
        model=model,
        system=tuple(told),
        turns=tuple(_in_order_of_calls(_texts_before_calls(turns))),
        tools=dict(_tools(tools)),
        settings=set_to,
        others=others,
        all_settings=all_settings,
        provider=provider,
        lead=lead,
    )


def _content(part: Json) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    content = part.get("content", part.get("refusal"))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False, sort_keys=True)


def _add(turns: list[Turn], role: str, part: Json) -> None:
    kind = part.get("type") if isinstance(part, dict) else "text"
    if kind in ("text", "refusal"):
        said = _content(part)
        if role == "tool":
            turns.append(Turn("result", role, plain_value(said)))
        elif turns and turns[-1].kind == "text" and turns[-1].role == role:
            turns[-1].value.append(said)
        elif said:
            turns.append(Turn("text", role, [said]))
    elif kind == "tool_call":
        called = {"name": part.get("name"), "arguments": decoded(part.get("arguments")) or {}}
        turns.append(Turn("call", "assistant", called, _id(part)))
    elif kind == "tool_call_response":
        turns.append(Turn("result", "tool", plain_value(part.get("response")), _id(part)))
    elif not isinstance(kind, str) or kind not in _THOUGHTS:
        turns.append(Turn("media", role, _held(part)))


def _id(part: Mapping[str, Json]) -> str | None:
    call_id = part.get("id")
    return call_id if isinstance(call_id, str) and call_id else None


def _held(part: Mapping[str, Json]) -> Json:
    """What a part of another sort holds: its data, address or file, in the words of the conventions or of an API; else all of it."""
    kind = part.get("type")
    places = (part, part.get(kind) if isinstance(kind, str) else None, part.get("source"))
    found = (place[key] for place in places if isinstance(place, dict) for key in _HOLDERS if isinstance(place.get(key), str))
    held = next(found, None)
    if not isinstance(held, str):
        return dict(part)
    head, comma, data = held.partition(",")
    return data if comma and head.startswith("data:") and head.endswith(";base64") else held


def _texts_before_calls(turns: Iterable[Turn]) -> Iterable[Turn]:
    """What a model said and called at once, the texts first: instrumentations write the two in either order."""
    said: list[str] = []
    calls: list[Turn] = []
    for turn in turns:
        if turn.kind == "call":
            calls.append(turn)
        elif turn.kind == "text" and turn.role == "assistant":
            said += turn.value
        else:
            yield from _at_once(said, calls)
            said, calls = [], []
            yield turn
    yield from _at_once(said, calls)


def _at_once(said: list[str], calls: list[Turn]) -> Iterable[Turn]:
    return [*([Turn("text", "assistant", said)] if said else []), *calls]


def _in_order_of_calls(turns: Iterable[Turn]) -> Iterable[Turn]:
    """Results that stand together, in the order of the calls that they answer: frameworks put them as they came."""
    places: dict[str | None, int] = {}
    block: list[Turn] = []
    for turn in turns:
        if turn.kind == "result":
            block.append(turn)
            continue
        yield from _sorted(block, places)
        block = []
        if turn.kind == "call" and turn.call_id is not None:
            places[turn.call_id] = len(places)
        yield turn
    yield from _sorted(block, places)


def _sorted(block: list[Turn], places: Mapping[str | None, int]) -> list[Turn]:
    if not all(turn.call_id in places for turn in block):
        return block
    return sorted(block, key=lambda turn: places[turn.call_id])


def _tools(tools: Json) -> Iterable[tuple[str, Json]]:
    for tool in definitions(tools):
        found = tool if isinstance(tool, dict) else {"name": tool}
        name = found.get("name") or found.get("type")
        if isinstance(name, str):
            known = {"description": found.get("description"), "parameters": found.get("parameters")}
            yield name, {key: value for key, value in known.items() if value}

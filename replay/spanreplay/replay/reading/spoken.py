"""What was said to a model and by it, from events that hold one message each.

That is how the GenAI conventions had it before messages became attributes: ``gen_ai.content.prompt`` and ``.completion`` up to 1.27,
``gen_ai.system.message``, ``gen_ai.user.message``, ``gen_ai.assistant.message``, ``gen_ai.tool.message`` and ``gen_ai.choice`` from 1.28 to
1.36. Emitters differ: tool calls stand inside the message of a choice or beside it, the message is an object or JSON text, the content a
text or blocks. Source: <https://github.com/open-telemetry/semantic-conventions/blob/v1.36.0/docs/gen-ai/gen-ai-events.md>.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.fields import NOT_CAPTURED, decoded_json, jsonable
from spanreplay.replay.reading.messages import messages, unpacked
from spanreplay.replay.reasons import CUT
from spanreplay.spans.record import Value

EVENT_NAME: Final = "event.name"
"""Where the name of an event was before log records had a field for it."""
CHOICE: Final = "gen_ai.choice"
_ROLES: Final[Mapping[str, str]] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.prompt": "user",  # Semantic Kernel's, of text completions
}
_WHOLE: Final[Mapping[str, tuple[str, str]]] = {
    "gen_ai.content.prompt": ("gen_ai.prompt", "user"),
    "gen_ai.content.completion": ("gen_ai.completion", "assistant"),
}
"""Events that hold all messages of a side: the attribute they are in, and the role of one that names none."""
MESSAGES: Final[Mapping[str, str]] = {role: name for name, role in _ROLES.items() if name.endswith(".message")}
"""The event that holds a message of a role."""
NAMES: Final = frozenset({CHOICE, *_ROLES, *_WHOLE})
"""The events that :func:`spoken` reads."""
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_calls", "parts", "refusal"})


class Spoken(NamedTuple):
    """Both sides of a call; ``None`` where nothing of one was captured."""

    asked: list[dict[str, Json]] | None
    """In the parts shape, in the order of the events; instructions stand among them as messages of the role ``system``."""
    answered: list[dict[str, Json]] | None
    """One message a choice, with its ``finish_reason``."""
    cut: tuple[Reason, ...]
    """What is not whole."""


NOTHING: Final = Spoken(None, None, ())
"""What no events say."""


def spoken(events: Iterable[Mapping[str, Value]], *, encoded: bool = False) -> Spoken:
    """What some events say.

    Args:
        events: in order; each the fields of its body and its attributes in one, its name as ``event.name``. Other events are left out.
        encoded: the fields are attributes of span events, where anything but text had to be written as JSON text.
    """
    asked: list[dict[str, Json]] = []
    answered: list[dict[str, Json]] = []
    cut: list[Reason] = []
    for event in events:
        name = event.get(EVENT_NAME)
        if not isinstance(name, str) or name not in NAMES:
            continue
        said, faults = _said(name, event, encoded)
        (answered if name in (CHOICE, "gen_ai.content.completion") else asked).extend(said)
        cut += [Reason(code=CUT, detail=f"{fault} of the event {name} stops in the middle of its JSON") for fault in faults]
    # A question or an answer may be empty: that it was captured is then known from the other.
    heard, replied = any(map(_tells, asked)), any(map(_tells, answered))
    if replied and not heard:
        asked = [{**message, "parts": [{"type": "text", "content": ""}]} for message in asked if message["role"] == "user"]
    return Spoken(asked if asked and (heard or replied) else None, answered if answered and (heard or replied) else None, tuple(cut))


def _said(name: str, event: Mapping[str, Value], encoded: bool) -> tuple[list[dict[str, Json]], list[str]]:
    if name in _WHOLE:
        attribute, role = _WHOLE[name]
        given, whole = decoded_json(event.get(attribute))
        made = [] if given is None or given in ("", *NOT_CAPTURED) else messages(given, role) or messages([given], role) or []
        return made, [] if whole else [attribute]
    fields = {key: value for key, inner in event.items() if "." not in key and (value := jsonable(inner)) is not None}
    faults: list[str] = []
    if name == CHOICE:
        fields = _choice(fields, faults)
    elif name == "gen_ai.tool.message" and "id" in fields:
        fields["tool_call_id"] = fields.pop("id")
    content = fields.get("content")
    if isinstance(content, str):
        if content in NOT_CAPTURED:
            del fields["content"]
        elif encoded:
            fields["content"] = _blocks(content, "content", faults)
    if isinstance(fields.get("tool_calls"), str):
        fields["tool_calls"], whole = decoded_json(fields["tool_calls"])
        faults += [] if whole else ["tool_calls"]
    if not isinstance(fields.get("tool_calls"), list):
        fields.pop("tool_calls", None)
    role = _ROLES.get(name, "assistant")
    if role == "tool" and "content" not in fields and "parts" not in fields:
        return [{"role": role, "parts": []}], faults
    return messages([fields], role) or [], faults


def _choice(fields: dict[str, Json], faults: list[str]) -> dict[str, Json]:
    """A choice as a message: its ``message`` and what stands beside it."""
    beside = {key: value for key, value in fields.items() if key not in ("message", "index")}
    message = fields.get("message")
    if isinstance(message, str):
        decoded, whole = decoded_json(message)
        faults += [] if whole else ["message"]
        if isinstance(decoded, dict) and (not decoded or not _MESSAGE_FIELDS.isdisjoint(decoded)):
            message = decoded
        else:
            message = {"content": _blocks(message, "message", [])}
    elif isinstance(message, list):
        message = {"content": message}
    return {**beside, **message} if isinstance(message, dict) else beside


def _blocks(text: str, where: str, faults: list[str]) -> Json:
    value, whole = unpacked(text)
    faults += [] if whole else [where]
    return value


def _tells(message: Mapping[str, Json]) -> bool:
    """Whether a message holds content: emitters write events without where its capture is off."""
    return any(
        part.get("arguments") is not None
        if part.get("type") == "tool_call"
        else any(part.get(key) for key in part if key not in ("type", "id"))
        for part in message.get("parts") or ()
    )

"""What a model call asks for, without its wire form.

A span that carries the ``gen_ai.*`` view and not the exchange (``SPANREPLAY_SPAN_CONTENT=view``, or another instrumentation) says what was
asked only by its meaning. A live call is then compared by its meaning too: the provider reads its body into the same view, and both are
brought to the fields that the GenAI conventions define.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Step
from spanreplay.replay.reading.live_calls import read_live
from spanreplay.semconv import attributes as names

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("content",),
    "reasoning": ("content",),
    "tool_call": ("id", "name", "arguments"),
    "tool_call_response": ("id", "response"),
    "blob": ("mime_type", "modality", "content"),
    "uri": ("mime_type", "modality", "uri"),
    "file": ("mime_type", "modality", "file_id"),
}
"""Fields of each part type that the conventions define; a part of another type is compared whole."""


def recorded_meaning(step: Step, *, tools: bool) -> str | None:
    """The meaning of a recorded model call, as text to compare; ``None`` where it has no messages.

    Args:
        step: the recorded step.
        tools: compare the offered tools too.
    """
    asked = step.input
    if not isinstance(asked, dict) or not asked.get("messages"):
        return None
    return _form(asked.get("messages"), asked.get("system"), asked.get("tools") if tools else None)


def live_meaning(asked: str, *, tools: bool) -> str | None:
    """The meaning of a live call, from its matching form; ``None`` where no provider knows it.

    Args:
        asked: JSON text with ``method``, ``url`` and ``body``.
        tools: compare the offered tools too.
    """
    live = read_live(asked)
    if live is None:
        return None
    view = live.view
    return _form(
        _value(view.get(names.GEN_AI_INPUT_MESSAGES)),
        _value(view.get(names.GEN_AI_SYSTEM_INSTRUCTIONS)),
        _value(view.get(names.GEN_AI_TOOL_DEFINITIONS)) if tools else None,
    )


def answer_meaning(step: Step) -> str | None:
    """What the model answered, in the form that a provider makes a body of; ``None`` where it is not there."""
    output = step.output
    if not isinstance(output, dict) or not isinstance(output.get("messages"), list):
        return None
    model = step.versions.get("model")
    said: list[Json] = output["messages"]
    if len(said) == 1 and output.get("finish") and not said[0].get("finish_reason"):
        said = [{**said[0], "finish_reason": output["finish"]}]
    told: dict[str, Json] = {"messages": said, "usage": dict(step.usage)}
    if isinstance(model, dict) and model.get("response"):
        told["model"] = model["response"]
    return canonical_json(told)


def _value(text: Any) -> Json:
    return json.loads(text) if isinstance(text, str) else None


def _form(messages: Json, system: Json, tools: Json) -> str:
    said = [_message(m) for m in messages or ()]
    return canonical_json({"messages": said, "system": [_part(p) for p in system or ()], "tools": tools or []})


def _message(message: Json) -> Json:
    if not isinstance(message, dict):
        return message
    return {"role": message.get("role"), "parts": [_part(p) for p in message.get("parts") or ()]}


def _part(part: Json) -> Json:
    fields = _FIELDS.get(part.get("type", "")) if isinstance(part, dict) else None
    if fields is None:
        return part
    return {"type": part["type"], **{name: part.get(name) for name in fields}}

"""The settings of a model call in one spelling: temperature, which tools it may choose, the form of its answer.

APIs and instrumentations spell them differently, and some write what the server took for what was left out. So a value that is every
server's default is the same as none.

Sources: the API references of OpenAI (Chat Completions, Responses), Anthropic (Messages) and Google (``generateContent``); the GenAI
conventions for ``gen_ai.request.*``.
"""

import json
from collections.abc import Mapping
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json

_NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "n": ("n", "choice.count", "candidate_count", "candidateCount"),
}
_STOP: Final = ("stop", "stop_sequences", "stopSequences")
_FORMAT: Final = ("response_format", "responseFormat")
_FORMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("json", "application/json"), "json"),
    **dict.fromkeys(("text", "grammar", "image", "speech", "audio"), "text"),
}
UNTOLD: Final = "?"
_REASONING: Final = ("reasoning_effort", "reasoning.level", "reasoningEffort")
_INSIDE: Final = ("generationConfig", "generation_config", "config", "options", "kwargs", "model_kwargs", "extra_body")
"""Objects in which an API or a framework keeps settings."""

_READ: Final = frozenset(
    {key for keys in _NUMBERS.values() for key in keys} | {*_STOP, *_FORMAT, *_REASONING, *_INSIDE}
    | {"tool_choice", "toolChoice", "toolConfig", "tool_config", "parallel_tool_calls", "text", "reasoning", "output_config"}
    | {"thinkingConfig", "thinking_config", "output.type", "inferenceConfig"}
    | {f"response{name}" for name in ("MimeType", "Schema", "JsonSchema", "_mime_type", "_schema", "_json_schema")}
)  # fmt: skip
_NO_SETTINGS: Final = frozenset(
    {"model", "messages", "input", "prompt", "contents", "system", "instructions", "systemInstruction", "system_instruction"}
    | {"tools", "functions", "stream", "stream_options", "modelId", "anthropic_version"}
)
"""Members of bodies that are compared in another way, or say only how the answer is sent."""
_DEFAULTS: Final[Mapping[str, tuple[Json, ...]]] = {
    "temperature": (1,),
    "top_p": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "n": (1,),
    "tool_choice": ("auto",),
    "response_format": ({"type": "text"},),
    "reasoning_effort": ("medium", "none"),
    "parallel_tool_calls": (True,),
}
"""What the servers take for a setting that is left out."""
_COMMON: Final = frozenset({"temperature", "top_p", "max_tokens", "tool_choice", "response_format", "reasoning_effort"})
_PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "openai.chat": _COMMON | {"seed", "frequency_penalty", "presence_penalty", "n", "stop", "parallel_tool_calls"},
    "openai.responses": _COMMON | {"parallel_tool_calls"},
    "anthropic.messages": _COMMON | {"top_k", "stop"},
}
"""The settings that a provider's SDK has a parameter of: any other one goes round it (``extra_body``), and past what instruments it."""
_FILLED_IN: Final[Mapping[str, Mapping[str, Json]]] = {"openlit": {"seed": 0}}
"""What an instrumentation writes for a setting that was left out, where that is no server's default; by dialect."""


def settings(given: Mapping[str, Json], dialect: str = "") -> dict[str, Json]:
    """What is set.

    Args:
        given: the body of a request, or parameters as an instrumentation wrote them.
        dialect: of the instrumentation.
    """
    held = {name: value for key in _INSIDE for name, value in _object(given.get(key)).items()} | dict(given)
    found = {name: number for name, keys in _NUMBERS.items() if (number := _number(_first(held, keys))) is not None}
    stop = decoded(_first(held, _STOP))
    told: dict[str, Json] = {
        **found,
        "stop": [stop] if isinstance(stop, str) else stop or None,
        "tool_choice": _tool_choice(held),
        "response_format": _format(held),
        "reasoning_effort": _effort(held),
        "parallel_tool_calls": held.get("parallel_tool_calls"),
    }
    filled = _FILLED_IN.get(dialect, {})
    return {name: value for name, value in told.items() if value is not None and not (name in filled and filled[name] == value)}


def other_settings(given: Mapping[str, Json]) -> dict[str, Json]:
    """What is set that :func:`settings` has no common name for, such as ``logit_bias``, by the name that it was given.

    Args:
        given: see :func:`settings`.
    """
    held = dict(_object(given.get("extra_body"))) | dict(given)
    return {name: value for name, value in held.items() if value is not None and name not in _READ and name not in _NO_SETTINGS}


def has_parameter(provider: str | None, name: str) -> bool:
    """Whether the SDK of a provider has a parameter of a setting; of a provider that is not known, every one."""
    return name in _PARAMETERS.get(provider or "", {name})


def is_default(name: str, value: Json) -> bool:
    """Whether a value is what servers take for a setting that is left out."""
    return value in _DEFAULTS.get(name, ())


def same_setting(name: str, one: Json, other: Json) -> bool:
    """Whether two values of one setting, ``None`` where it is not set, are the same.

    A form of the answer has its schema, or only says that it is JSON.
    """
    if one is None or other is None:
        return is_default(name, other if one is None else one)
    if isinstance(one, dict) and isinstance(other, dict) and "type" in one and "type" in other:
        if UNTOLD in (one["type"], other["type"]):
            return True
        return one["type"] == other["type"] and ("schema" not in one or "schema" not in other or _equal(one["schema"], other["schema"]))
    return _equal(one, other)


def decoded(value: Json) -> Json:
    """A value out of the JSON text that it may be written in."""
    return decoded_json(value)[0] if isinstance(value, str) else value


def _equal(one: Json, other: Json) -> bool:
    return one == other or canonical_json(one) == canonical_json(other)


def _first(held: Mapping[str, Json], keys: tuple[str, ...]) -> Json:
    return next((held[key] for key in keys if held.get(key) is not None), None)


def _object(value: Json) -> Mapping[str, Json]:
    found = decoded(value)
    return found if isinstance(found, dict) else {}


def _number(value: Json) -> int | float | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _tool_choice(held: Mapping[str, Json]) -> Json:
    """``auto``, ``required``, ``none``, or the name of the tool as ``{"name"}``; anything else as it is."""
    config = _object(_first(held, ("toolConfig", "tool_config")))
    calling = _object(_first(config, ("functionCallingConfig", "function_calling_config")))
    choice = decoded(_first(held, ("tool_choice", "toolChoice"))) if not calling else str(calling.get("mode", "")).lower() or None
    names = _first(calling, ("allowedFunctionNames", "allowed_function_names"))
    if isinstance(names, list) and len(names) == 1:
        return {"name": names[0]}
    if isinstance(choice, dict):
        inner = choice.get("function")
        name = inner.get("name") if isinstance(inner, dict) else choice.get("name") or choice.get("toolName")
        if isinstance(name, str):
            return {"name": name}
        choice = choice.get("type", choice)
    return {"any": "required", "validated": "auto"}.get(choice, choice) if isinstance(choice, str) else choice


def _format(held: Mapping[str, Json]) -> Json:
    """``{"type", "schema"}``; a form that cannot be told, such as the display of a class, has the type :data:`UNTOLD`."""
    text = _object(held.get("text"))
    form = decoded(_first(held, _FORMAT)) or decoded(text.get("format"))
    if isinstance(form, dict):
        kind = form.get("type")
        within = form.get("json_schema")
        schema = within.get("schema") if isinstance(within, dict) else form.get("schema")
        kind = kind if "properties" not in form else UNTOLD
    else:
        kind = form or _first(held, ("responseMimeType", "response_mime_type", "output.type"))
        schema = _first(held, ("responseSchema", "response_schema", "responseJsonSchema", "response_json_schema"))
    if kind is None:
        return None
    known = next((word for start, word in _FORMS.items() if isinstance(kind, str) and kind.startswith(start)), UNTOLD)
    return {"type": known, "schema": schema} if schema is not None else {"type": known}


def _effort(held: Mapping[str, Json]) -> Json:
    reasoning = _object(held.get("reasoning"))
    thinking = _object(_first(held, ("thinkingConfig", "thinking_config")))
    config = _object(held.get("output_config"))
    found = _first(held, _REASONING) or reasoning.get("effort") or config.get("effort")
    found = found or _first(thinking, ("thinkingLevel", "thinking_level"))
    return found.lower() if isinstance(found, str) else None

"""Calls for embeddings that others recorded: what was embedded, and the vectors, where the record has them.

OpenInference, MLflow, LangSmith, Langfuse and the Vercel AI SDK keep texts and vectors; the GenAI conventions keep neither.
"""

from collections.abc import Callable, Mapping
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Step
from spanreplay.replay.reading.asking import decoded, redacted
from spanreplay.replay.reading.likeness import Likeness
from spanreplay.replay.reading.naming import same_model

_GIVEN: Final = (
    "input",
    "inputs",
    "texts",
    "values",
    "value",
    "text",
    "inputText",
    "prompt",
    "documents",
    "requests",
    "content",
    "parts",
    "query",
)
"""Where APIs and instrumentations have what is embedded."""
_VECTORS: Final = ("data", "embeddings", "embedding", "values", "vector", "float", "output")
_LAYERS: Final = 6
_PART: Final = "embeddings"
"""Type of the generic part of which the codec of embeddings writes a response."""


def given_texts(value: Json) -> list[str] | None:
    """The texts that a request or a record names, in order; ``None`` where it names none, or something else than texts.

    Args:
        value: the body of a request, or the recorded arguments.
    """
    return _texts(value, _LAYERS)


def _texts(value: Json, layers: int) -> list[str] | None:
    if isinstance(value, dict):
        inner = next((value[key] for key in _GIVEN if value.get(key)), None)
        return None if inner is None or not layers else _texts(inner, layers - 1)
    if isinstance(value, str):
        inner = decoded(value)
        return _texts(inner, layers - 1) if layers and isinstance(inner, dict | list) else [value]
    if not isinstance(value, list) or not value or not layers:
        return None
    found = [[item] if isinstance(item, str) else _texts(item, layers - 1) if isinstance(item, dict) else None for item in value]
    return None if None in found else [text for texts in found for text in texts or ()]


def vectors(value: Json, layers: int = _LAYERS) -> list[list[float]] | None:
    """Lists of numbers, out of what they were written in; ``None`` where there are none."""
    value = decoded(value)
    if isinstance(value, dict):
        inner = next((value[key] for key in _VECTORS if value.get(key) is not None), None)
        return None if inner is None or not layers else vectors(inner, layers - 1)
    if not isinstance(value, list) or not value or not layers:
        return None
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
        return [value]
    found = [None if item == [] else vectors(item, layers - 1) for item in value]
    return None if any(made is None or len(made) != 1 for made in found) else [made[0] for made in found if made]


def embeds(step: Step) -> bool:
    """Whether a recorded step is a call for embeddings, and no search."""
    made = vectors(step.output.get("result")) if isinstance(step.output, dict) else None
    return step.kind == "retrieval" and (made is not None or "model" in step.versions)


def alike_texts(step: Step, texts: list[str], name: str, redact: Callable[[str], str]) -> Likeness | None:
    """How a live call for embeddings compares with a step; ``None`` where the record has not what was embedded, or no vector of it.

    Args:
        step: the recorded step.
        texts: what is embedded now.
        name: of the model now.
        redact: what is done to the texts of a live call.
    """
    known = recorded_texts(step)
    clean = None if known is None else redacted(known, redact)
    if clean is None or (clean == texts and vectors_meaning(step) is None):
        return None
    wanted: dict[str, Json] = {} if clean == texts else {"input": clean}
    actual: dict[str, Json] = {} if clean == texts else {"input": list(texts)}
    model = _model(step.versions)
    if isinstance(model, str) and not same_model(model, name):
        wanted["model"], actual["model"] = model, name
    closeness = sum(one == other for one, other in zip(clean, texts, strict=False))
    return Likeness(equal=not wanted, closeness=closeness, recorded=wanted, actual=actual)


def recorded_texts(step: Step) -> list[str] | None:
    """What a recorded step embedded; ``None`` where it is no such step, or the record does not say."""
    asked = step.input.get("arguments") if isinstance(step.input, dict) else None
    return given_texts(asked)


def vectors_meaning(step: Step) -> str | None:
    """The answer to a call for embeddings, in the form that a provider makes a body of; ``None`` where a vector is missing."""
    texts = recorded_texts(step)
    made = vectors(step.output.get("result")) if isinstance(step.output, dict) else None
    if texts is None or made is None or len(made) != len(texts):
        return None
    told: dict[str, Json] = {
        "messages": [{"role": "assistant", "parts": [{"type": "generic", "generic_type": _PART, "value": made}]}],
        "usage": dict(step.usage),
        "model": _model(step.versions) or step.name,
    }
    return canonical_json(told)


def _model(versions: Mapping[str, Json]) -> Json:
    told = versions.get("model")
    return (told.get("response") or told.get("request")) if isinstance(told, dict) else None

"""The form in which inputs are compared."""

import json
from functools import lru_cache
from typing import Any

from spanreplay.content.canonical import canonical_json
from spanreplay.content.redaction import mask


@lru_cache(maxsize=128)
def comparable(text: str | None) -> str | None:
    """The form in which two inputs are compared: canonical JSON, redactions without their run's hash."""
    if text is None:
        return None
    masked = mask(text)
    try:
        return canonical_json(json.loads(masked))
    except ValueError:
        return masked


def parsed(text: str | None) -> Any:
    """A comparable input as a JSON value; the text itself where it is none."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def telling(kind: str, value: Any) -> Any:
    """What of an input is shown as a whole: of a request to a model its body, as where it was sent tells nothing."""
    return value["body"] if kind == "model_call" and isinstance(value, dict) and "body" in value else value

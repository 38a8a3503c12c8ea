"""The form in which inputs are compared."""

import json
from functools import lru_cache
from typing import Any

from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import without_classes
from spanreplay.content.redaction import mask


@lru_cache(maxsize=128)
def comparable(text: str | None) -> str | None:
    """The form in which two inputs are compared: canonical JSON, redactions without their run's hash.

    What older recordings do not have of types counts for nothing.
    """
    if text is None:
        return None
    masked = mask(text)
    try:
        tree = json.loads(masked)
        return canonical_json(_as_of_old(tree) if '"$t"' in masked else tree)
    except ValueError:
        return masked


def _as_of_old(tree: Any) -> Any:
    try:
        return without_classes(tree)
    except RecursionError:  # no text of the codec is as deep
        return tree


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

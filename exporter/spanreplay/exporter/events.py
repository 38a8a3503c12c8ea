"""Which log records may carry content of a model or tool call, and which of them are in the store already."""

import contextlib
from typing import Any, Final

_PREFIXES: Final = ("gen_ai.", "spanreplay.")
_KEPT: Final = "_spanreplay_kept"


def is_event(record: Any) -> bool:
    """Whether a log record is an event or has an attribute of the GenAI conventions. Takes the ``LogRecord`` of several SDK versions."""
    if getattr(record, "event_name", None):
        return True
    attributes = record.attributes or {}
    return "event.name" in attributes or any(str(name).startswith(_PREFIXES) for name in attributes)


def mark_kept(record: Any) -> None:
    """Note on a log record, which has no id, that the recorder has written it."""
    with contextlib.suppress(AttributeError):
        setattr(record, _KEPT, True)


def is_kept(record: Any) -> bool:
    """Whether the recorder has written it."""
    return getattr(record, _KEPT, False) is True

"""What can go wrong with a recorded text."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_FREE: Final = frozenset({"message", "why"})
"""Attributes of a stand-in that the recorded exception may have had itself."""
_LONGEST: Final = 200
"""Characters of a class's name; a longer one is not given to a stand-in."""


class CodecError(ValueError):
    """A text is no value of the codec: not JSON, or a tag with a payload that does not fit it."""


class RecordedError(Exception):
    """Stands for a recorded exception whose class is not there any more, was never imported, or cannot be rebuilt.

    ``str()`` gives the recorded message alone, because programs put it into prompts and logs. What :func:`stand_in` makes has the name of
    the recorded class, its attributes, and a note that a traceback shows, which says why it is not of that class.

    Attributes:
        type_name: ``module:QualName`` of the recorded class.
        message: What ``str()`` of the recorded exception gave.
        why: Why the class could not be used, and what helps; empty where that is not known.
        recorded_state: The attributes of the recorded exception, as far as they were kept.
    """

    def __init__(self, type_name: str, message: str, why: str = "", state: Mapping[str, Any] | None = None) -> None:
        super().__init__(type_name, message)
        self.type_name = type_name
        self.message = self.__recorded_message = message
        self.why = why
        self.recorded_state: Mapping[str, Any] = {} if state is None else state

    def __str__(self) -> str:
        return self.__recorded_message


def stand_in(type_name: str, message: str, state: Mapping[str, Any], *, found: bool) -> RecordedError:
    """An exception of the recorded class's name that is not of that class.

    Args:
        type_name: ``module:QualName`` of the recorded class.
        message: What ``str()`` of it gave.
        state: Its attributes.
        found: The class is there, and what was recorded does not fit it.
    """
    module, _, qualname = type_name.partition(":")
    if found:
        why = "what was recorded does not fit the class as it is here"
    elif "<locals>" in qualname:
        why = "the class is made inside a function, where nothing else can reach it; define it at the top of its module"
    elif module in sys.modules:
        why = f"{module} has no {qualname} here"
    else:
        why = f"nothing here has imported {module}, and a replay imports nothing that a record names; import it atop the tool's file"
    error = _named(type_name)(type_name, message, why, state)
    for name, item in state.items():
        if name in _FREE or not hasattr(error, name):
            error.__dict__[name] = item
    notes = state.get("__notes__")
    told = f"[spanreplay] it was recorded as {written(type_name)}, and no such exception could be made: {why}"
    error.__notes__ = [*(notes if isinstance(notes, list) else ()), told]
    return error


def written(type_name: str) -> str:
    """``module:QualName`` as Python writes a class."""
    return type_name.replace(":", ".", 1).removeprefix("builtins.")


@lru_cache(maxsize=256)
def _named(type_name: str) -> type[RecordedError]:
    module, _, qualname = type_name.partition(":")
    name = qualname.rpartition(".")[2]
    if not name.isidentifier() or len(type_name) > _LONGEST:
        return RecordedError
    return type(name, (RecordedError,), {"__module__": module, "__qualname__": qualname, "__doc__": RecordedError.__doc__})

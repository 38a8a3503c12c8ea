"""Attributes of an exception that could not be kept: whoever asks for one is told so."""

from contextlib import suppress
from typing import Any

from spanreplay.content._types import declares


class Absent:
    """Stands in a class for an attribute of its instances. An instance that has the attribute never comes here.

    Args:
        name: Of the attribute.
        was: What it was described as when it was recorded.
    """

    def __init__(self, name: str, was: str) -> None:
        self._name = name
        self._was = was

    def __get__(self, instance: object, owner: type) -> Any:
        """Raise what Python raises where there is no attribute, and say why.

        Raises:
            AttributeError: Always.
        """
        if instance is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        said = f"{owner.__name__!r} object has no attribute {self._name!r}: a recording does not keep it (recorded was {self._was})"
        raise AttributeError(said, name=self._name, obj=instance)


def explain(cls: type, name: str, was: str) -> None:
    """Let a class say of an attribute that it was not kept; a built-in class cannot, and keeps to Python's own words."""
    if name.isidentifier() and not name.startswith("__") and not declares(cls, name):
        with suppress(Exception):  # a metaclass may refuse
            setattr(cls, name, Absent(name, was[:200]))

"""Where the values of a JSON text stand in it. The text is read by the C code of the standard library; places are characters."""

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # it has been there since Python 2.6
from typing import Any, Final

_scan: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, strict=False).scan_once  # type: ignore[attr-defined]
_space: Final = re.compile(r"[ \t\n\r]*").match

NO_JSON: Final = (StopIteration, ValueError, IndexError, RecursionError)
"""What is raised where the text is no JSON, or is nested deeply."""


def skip(text: str, place: int) -> int:
    """The next place that holds no white space."""
    if text[place : place + 1] > " ":
        return place
    return _space(text, place).end()  # type: ignore[union-attr]  # it always matches


def read(text: str, start: int) -> tuple[Any, int]:
    """A value, its numbers as text, and where it ends."""
    found: tuple[Any, int] = _scan(text, start)
    return found


def members(text: str, start: int, take: Callable[[str, int, int], int]) -> int:
    """Goes through the members of an object.

    Args:
        text: holds it.
        start: where it begins.
        take: is given a name, the place where the member begins, and that where its value does; gives that where the value ends.

    Returns:
        Where the object ends.
    """
    place = skip(text, start + 1)
    if text[place] == "}":
        return place + 1
    while True:
        if text[place] != '"':
            raise ValueError(place)
        name, end = scanstring(text, place + 1, False)
        colon = skip(text, end)
        if text[colon] != ":":
            raise ValueError(colon)
        end = skip(text, take(name, place, skip(text, colon + 1)))
        if text[end] == "}":
            return end + 1
        if text[end] != ",":
            raise ValueError(end)
        place = skip(text, end + 1)


def elements(text: str, place: int, take: Callable[[Any, int, int], None], *, first: bool) -> int:
    """Goes through elements of an array.

    Args:
        text: holds it.
        place: after the bracket that opens the array, or after an element.
        take: is given each element, its numbers as text, and the places where it begins and ends.
        first: it is after the bracket.

    Returns:
        The place of the bracket that closes the array.
    """
    place = skip(text, place)
    if text[place] == "]":
        return place
    while True:
        if not first:
            if text[place] != ",":
                raise ValueError(place)
            place = skip(text, place + 1)
        first = False
        found, end = _scan(text, place)
        take(found, place, end)
        place = skip(text, end)
        if text[place] == "]":
            return place

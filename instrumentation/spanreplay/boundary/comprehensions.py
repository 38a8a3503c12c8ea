"""Names of functions as every Python has them: from 3.12 on a comprehension is no function of its own (PEP 709), before that it is one.

A record names who reads a clock, waits, or starts a task, and is to be found again by another version of Python.
"""

import re
from typing import Final

_INLINED: Final = "<(?:list|set|dict)comp>"
_LAST: Final = rf"{_INLINED}(?:\.{_INLINED})*(?!\.)"
_PART: Final = re.compile(rf"(?:\.<locals>)?\.?{_LAST}|{_INLINED}\.|<genexpr>\.(?!{_LAST})")
"""One that the name ends with, or one that something is defined in; 3.12 leaves generator expressions out of names of the latter, too."""


def plain(text: str) -> str:
    """Take comprehensions out of the qualified names in a text.

    >>> plain("agent.<locals>.<listcomp>.<lambda>")
    'agent.<locals>.<lambda>'
    >>> plain("agent.py:<dictcomp>")
    'agent.py:<module>'
    """
    return _PART.sub(_instead, text) if "comp>" in text or "<genexpr>." in text else text


def _instead(found: re.Match[str]) -> str:
    return "" if found[0].startswith(".") or found[0].endswith(".") else "<module>"

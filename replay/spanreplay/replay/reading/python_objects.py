"""Python objects in the text that ``repr`` makes of data classes, read by their members: no class is looked up, nothing is evaluated."""

import re
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.python_text import python_value

CLASS: Final = ""
"""The member of an object that has the name of its class."""
_LONGEST: Final = 1_000_000
"""Characters of an object's text that is taken apart."""
_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
_PIECE: Final = re.compile(
    r"""(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<call>[A-Za-z_]\w*)\(
      | (?P<member>[A-Za-z_]\w*)=
      | <[A-Za-z_][\w.]*:\s(?P<enum>'(?:[^'\\\n]|\\.)*'|-?\d+)>
      | (?P<mark>[\[\](){}])
      | (?P<other>[\w.]+|[\s,:+-])""",
    re.VERBOSE | re.DOTALL,
)


def python_object(text: str) -> dict[str, Json]:
    """The members of an object and of the objects in it, each with the name of its class as :data:`CLASS`; empty of anything else.

    Members of enumerations are their values. An object that shows anything but its members and plain values is none.

    Args:
        text: such as ``Call(name='f', of=<Kind.TOOL: 'tool'>, origin=Origin(id=1))``.
    """
    if len(text) > _LONGEST:
        return {}
    made: list[str] = []
    closes: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            return {}
        at = found.end()
        kind, shown = found.lastgroup, found[0]
        if kind == "call":
            shown = f"{{{CLASS!r}: {found['call']!r}, "
            closes.append((")", "}"))
        elif kind == "member":
            shown = f"{found['member']!r}: "
        elif kind == "enum":
            shown = found["enum"]
        elif kind == "mark" and shown in _CLOSES:
            closes.append((_CLOSES[shown], _CLOSES[shown]))
        elif kind == "mark":
            wanted, written = closes.pop() if closes else ("", "")
            if shown != wanted:
                return {}
            shown = written
        made.append(shown)
    value = python_value("".join(made))
    return value if isinstance(value, dict) and isinstance(value.get(CLASS), str) else {}

"""Whether two names, of two instrumentations or of a framework and an API, may be those of one model or one tool."""

import re
from typing import Final

_BEFORE_MODEL: Final = re.compile(r"(^|[/:., ])$")
_AFTER_MODEL: Final = re.compile(r"([-@:_](v?\d|latest|preview|exp)|,|$)")
"""Names come with and without provider ("openai/gpt-4o") and date ("gpt-4o-2024-08-06"); "gpt-4o-mini" is another model."""
_BEFORE_TOOL: Final = re.compile(r"[.:/_-]$")


def same_model(one: str, other: str) -> bool:
    """Whether two names may be those of one model."""
    ours, theirs = ({name, name.rpartition("/")[2]} for name in (one.lower(), other.lower()))
    return any(_extends(*sorted((a, b), key=len, reverse=True)) for a in ours for b in theirs)


def _extends(longer: str, shorter: str) -> bool:
    place = longer.find(shorter)
    while place >= 0:
        if _BEFORE_MODEL.search(longer[:place]) and _AFTER_MODEL.match(longer, place + len(shorter)):
            return True
        place = longer.find(shorter, place + 1)
    return False


def same_tool(one: str, other: str) -> bool:
    """Whether two names may be those of one tool: a framework writes a server or plug-in before it, as in ``mcp__github__search``."""
    shorter, longer = sorted((one, other), key=len)
    return longer.endswith(shorter) and (len(longer) == len(shorter) or _BEFORE_TOOL.search(longer[: -len(shorter)]) is not None)

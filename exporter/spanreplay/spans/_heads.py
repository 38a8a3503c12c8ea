"""Resources and scopes that come again: a file names the same few in every message, and equal ones are one object.

That saves reading them, and lets who keeps something by each of them find it again.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from spanreplay.spans.errors import Problem, Problems
from spanreplay.spans.record import Resource, Scope

_MANY: Final = 1024
_LONG: Final = 65_536
"""How many of each are remembered, and of which size in bytes."""

_Head = TypeVar("_Head", Resource, Scope)


class Known(Generic[_Head]):
    """Those of one kind. One about which there is something to tell is read, and told of, each time."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Head] = {}

    def get(self, written: bytes, read: Callable[[Problems], _Head], problems: Problems) -> _Head:
        """The one that is written so.

        Args:
            written: all that it is read from.
            read: reads it, and tells what was wrong with it.
            problems: is told that.
        """
        found = self._known.get(written)
        if found is None:
            told: list[Problem] = []
            found = read(told.append)
            for problem in told:
                problems(problem)
            if not told and len(written) <= _LONG:
                if len(self._known) >= _MANY:
                    self._known.clear()
                self._known[written] = found
        return found


class Heads:
    """Those of an input."""

    def __init__(self) -> None:
        self.resources: Known[Resource] = Known()
        self.scopes: Known[Scope] = Known()

"""All hints in one search, with Hyperscan (the extra ``fast``): of a text of 6 kB in 3 us, not in 50.

An automaton takes a tenth of a second to make, in a thread of its own, and only programs that search many texts get one. Whether there is
one changes no result: it tells where to look for secrets, not what they are.
"""

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

_MOST: Final = 20_000
"""Characters of patterns, ten times those of the default policy. Of many more, as of a stranger's policy, no automaton is made."""


class Automaton:
    """Finds which of some patterns are in a text.

    Args:
        patterns: Each over the bytes of a text, without looking back or ahead, and whether letter case counts in it.
        after: Bytes that are searched without it before it is made; 0: it is made at once.
    """

    found: Callable[[bytes], list[int] | None]
    """Gives the numbers of the patterns that match a text, or ``None`` where there is no automaton, or not yet."""

    is_made = False
    """Whether there is one."""

    def __init__(self, patterns: Sequence[tuple[str, bool]], *, after: int) -> None:
        self._patterns = tuple(patterns)
        self._left = after
        self.found = self._not_found
        if sum(len(pattern) for pattern, _ in patterns) > _MOST:
            self._left = 0
        elif after <= 0:
            self._make()

    def _not_found(self, data: bytes) -> None:
        if self._left > 0:
            self._left -= len(data)
            if self._left <= 0:
                self._begin()

    def _begin(self) -> None:
        with suppress(Exception):  # the same is found without
            import hyperscan  # noqa: F401 - here: a fork while another thread imports leaves the child a lock that nobody opens

            start_new_thread(self._make, ())

    def _make(self) -> None:
        with suppress(Exception):  # the same is found without
            self.found = _Search(self._patterns).of
            self.is_made = True


class _Search:
    """The automaton."""

    def __init__(self, patterns: Sequence[tuple[str, bool]]) -> None:
        import hyperscan

        once, any_case = hyperscan.HS_FLAG_SINGLEMATCH, hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_CASELESS
        database: Any = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[pattern.encode("utf-8", "surrogatepass") for pattern, _ in patterns],
            ids=list(range(len(patterns))),
            flags=[once if exact else any_case for _, exact in patterns],
        )
        self._scan = database.scan
        self._scratch: Any = hyperscan.Scratch(database)
        self._idle: list[Any] = []

    def of(self, data: bytes) -> list[int] | None:
        found: list[int] = []
        try:
            scratch = self._idle.pop()  # one for each search at the same time
        except IndexError:
            scratch = self._scratch.clone()
        try:
            self._scan(data, match_event_handler=_note, context=found, scratch=scratch)
        except Exception:  # noqa: BLE001 - the same is found without
            return None
        self._idle.append(scratch)
        return found


def _note(number: int, _start: int, _end: int, _flags: int, found: list[int]) -> None:
    found.append(number)

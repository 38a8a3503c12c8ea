"""Whose turn it is at one place that tasks or threads come to, as it was recorded: who is next, and who has had his turn early.

How one waits for a turn is another thing: threads and tasks do so differently.
"""

import time
from collections import Counter, deque
from typing import Final

from spanreplay.boundary.orders import Channel, Item, Member
from spanreplay.boundary.session import Session

_IN_VAIN: Final = 3
"""After so many who did not come, the rest comes as it comes."""


class RecordedTurns:
    """The turns at one place. Whoever shares it between threads has a lock of his own.

    Args:
        session: of the program.
        channel: the place.
    """

    def __init__(self, session: Session, channel: Channel) -> None:
        self.told: Final = session.told_orders if session.mode == "replay" else None
        self.left: Final[deque[Item]] = deque() if self.told is None else (self.told.left(channel) or deque())
        """Those that are to come."""
        self._to_come = Counter(members[0] for _, members in self.left if members)
        self._early: Counter[Member] = Counter()
        """Who has had its turn and did not wait for it."""
        self._in_vain = 0

    def is_of(self, who: str) -> bool:
        """Whether it is the turn of ``who``, a path."""
        return self.left[0][1] == (who,)

    def comes(self, who: str) -> bool:
        """Whether ``who`` has a turn that is still to come."""
        return self._to_come[who] > 0

    def had(self, who: str) -> None:
        """It has had a turn, its own or before that."""
        self._early[who] += 1
        self._go_on()

    def give_up(self) -> None:
        """Whose turn it is does not come."""
        self._in_vain += 1
        self._drop()
        self._go_on()
        if self._in_vain >= _IN_VAIN:
            self.left.clear()

    def _go_on(self) -> None:
        while self.left and all(self._early[member] for member in self.left[0][1]):
            self._early.subtract(self.left[0][1])
            self._drop()

    def _drop(self) -> None:
        for member in self.left.popleft()[1]:
            self._to_come[member] -= 1


class Lap:
    """Milliseconds from one to the next."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at = time.monotonic()

    def ms(self) -> int:
        """Since the last time, or since it was made."""
        now = time.monotonic()
        passed, self._at = now - self._at, now
        return int(passed * 1000)

"""The recorded orders of what the program saw come, told again: see :mod:`spanreplay.boundary.orders`."""

import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from spanreplay.boundary.orders import Channel, Item, decoded
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.patience import Patience
from spanreplay.replay.reexecution.turns import IMPATIENT_S, WAIT_S

_PATIENCE: Final = 3
"""After so many waits in vain the agent is another one, and further waits are short."""
_LONGEST_MS: Final = 3_600_000


class RecordedOrders:
    """A :class:`spanreplay.boundary.orders.ToldOrders` of recorded runs.

    Args:
        runs: the runs.
        relaxed: called when a wait has been given up.
    """

    def __init__(self, runs: Sequence[Run], relaxed: Callable[[], None]) -> None:
        self.released = False
        self._relaxed = relaxed
        self._given_up = 0
        self._channels = _channels_of(runs)
        self._places = Counter(channel[1:] for channel in self._channels)
        self._only = {channel[1:]: items for channel, items in self._channels.items()}
        self._waiting: list[weakref.WeakMethod[Any]] = []

    def left(self, channel: Channel) -> deque[Item] | None:
        """What is to come; where its run is another one now, as in a copy of the process, of the only one at its place."""
        if self.released:
            return None
        found = self._channels.get(channel)
        place = channel[1:]
        return self._only[place] if found is None and self._places[place] == 1 else found

    def patience(self, ms: int) -> Patience:
        """A wait as long as was recorded, and some time more."""
        return Patience((WAIT_S if self._given_up < _PATIENCE else IMPATIENT_S) + min(max(ms, 0), _LONGEST_MS) / 1000)

    def relaxed(self) -> None:
        """A wait has been given up."""
        self._given_up += 1
        self._relaxed()

    def on_release(self, act: weakref.WeakMethod[Any]) -> None:
        """Call ``act`` when nobody waits any more."""
        self._waiting.append(act)

    def release(self) -> None:
        """What is recorded decides no more what comes first."""
        self.released = True
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            call = act()
            if call is not None:
                call()


def _channels_of(runs: Sequence[Run]) -> dict[Channel, deque[Item]]:
    of_runs = (text for run in runs for text in run.orders)
    of_steps = (step.orders for run in runs for step in run.steps if step.orders is not None)
    found: dict[Channel, deque[Item]] = defaultdict(deque)
    for channel, items in decoded([*of_runs, *of_steps]):
        found[channel].extend(items)
    return dict(found)

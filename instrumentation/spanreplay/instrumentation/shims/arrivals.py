"""What comes from threads and processes reaches the program in an order that is kept, and in a replay in the recorded one.

Who comes before its turn is kept back, and handed over by whoever brings the one that is awaited. So nobody who brings something waits.
Where that one does not come in time, see :meth:`spanreplay.boundary.orders.ToldOrders.patience`, the others go on without it.
"""

import _thread
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final

from spanreplay.boundary.orders import Channel, Item, Member, channel_of
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Session

_IN_VAIN: Final = 3
"""After so many who did not come, the rest of a channel comes as it comes."""
_RUNS: Final = 1000
_TURN_S: Final = 0.005
"""How long one waits for another one to have been handed over, while recording: without it the order kept could be another one."""


def arrivals(scope: Scope, name: str, *, of_run: bool = False, once: bool = True, seen: bool = True) -> "Arrivals | None":
    """What keeps, or tells, the order in a channel; ``None`` where there is nothing to keep or to tell.

    Args:
        scope: where the program waits.
        name: of the channel.
        of_run: it is one of the whole run.
        once: it is asked for once; else all who ask for it get the same.
        seen: who is handed over is seen by the program; else it tells with :meth:`Arrivals.saw`.
    """
    session = scope.session
    told = session.told_orders if session.mode == "replay" else None
    if told is None and session.orders is None:
        return None
    channel = channel_of(scope, name, of_run=of_run)
    if channel is None:
        return None
    if once:
        return Arrivals(session, channel, seen=seen)
    known: Arrivals | None = session.arrivals.get(channel)
    if known is None and told is None and len(session.arrivals) >= _RUNS:
        session.arrivals.clear()  # while recording, one has nothing that another has not
    return known if known is not None else session.arrivals.setdefault(channel, Arrivals(session, channel))


class Arrivals:
    """The order in one channel.

    Args:
        session: of the program.
        channel: it is.
        seen: who is handed over is seen by the program.
    """

    def __init__(self, session: Session, channel: Channel, *, seen: bool = True) -> None:
        self.channel: Final = channel
        self._seen = seen
        self._kept = session.orders
        self.told = session.told_orders if session.mode == "replay" else None
        """Where recorded orders are from; ``None`` while recording."""
        self._left: deque[Item] | None = None if self.told is None else self.told.left(channel)
        self._expected = {members[0] for _, members in self._left or () if members}
        self._held: dict[Member, Callable[[], None]] = {}
        self._lock = threading.RLock()
        self._handing = threading.RLock()
        self._hands_over = False
        self._watched = False
        self._in_vain = 0
        self._at = time.monotonic()
        if self._left and self.told is not None:
            self.told.on_release(weakref.WeakMethod(self.release))

    @property
    def awaits_somebody(self) -> bool:
        """The next thing that was recorded is that somebody came, and not that a wait was over before."""
        with self._lock:
            return bool(self._left and self._left[0][1])

    def came(self, member: Member, hand_over: Callable[[], None]) -> None:
        """Somebody is here.

        Args:
            member: who.
            hand_over: lets the program see it; from any thread, in the member's turn.
        """
        if not self._left:
            self._as_it_comes(member, hand_over)
            return
        with self._lock:
            # Who was not seen by a program that waits for one after the other was there after all that it saw.
            known = (member in self._expected or not self._seen) and member not in self._held
            if known:
                self._held[member] = hand_over
        if known:
            self._go_on()
        else:
            self._as_it_comes(member, hand_over)

    def saw(self, member: Member) -> None:
        """The program has seen who was handed over."""
        self._keep((member,))

    def timed_out(self) -> None:
        """The program has given up to wait for more."""
        with self._lock:
            if self._left and not self._left[0][1]:
                self._left.popleft()
        self._keep(())

    def release(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._left = None
        self._go_on()

    def _as_it_comes(self, member: Member, hand_over: Callable[[], None]) -> None:
        alone = self._kept is not None and self._handing.acquire(timeout=_TURN_S)
        try:
            if self._seen:
                self._keep((member,))
            hand_over()
        finally:
            if alone:
                self._handing.release()

    def _keep(self, members: tuple[Member, ...]) -> None:
        if self._kept is not None:
            now = time.monotonic()
            self._kept.add(self.channel, int((now - self._at) * 1000), members)
            self._at = now

    def _go_on(self) -> None:
        """Hand over whoever is here and has its turn; one thread at a time does, and others leave it to that."""
        while True:
            with self._lock:
                if self._hands_over:
                    return
                hand_over = self._next()
                if hand_over is None:
                    self._watch()
                    return
                self._hands_over = True
            try:
                hand_over()
            finally:
                with self._lock:
                    self._hands_over = False

    def _next(self) -> Callable[[], None] | None:
        if not self._left:
            member = next(iter(self._held), None)
        else:
            members = self._left[0][1]
            member = members[0] if members else None
            if member not in self._held:
                return None
            self._left.popleft()
        if member is None:
            return None
        self._expected.discard(member)
        if self._seen:
            self._keep((member,))
        return self._held.pop(member)

    # ---- bounds -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._held and self.awaits_somebody and not self._watched:
            self._watched = True
            _thread.start_new_thread(self._bound, ())  # no thread of the program's, whose scope it would be forked from

    def _bound(self) -> None:
        """While somebody is kept back, look whether the one before comes."""
        told, nobody = self.told, threading.Event()
        head, patience = None, None
        while told is not None:
            with self._lock:
                if not self._held or not self._left or not self.awaits_somebody:
                    self._watched = False
                    return
                if head is not self._left[0] or patience is None:
                    head, patience = self._left[0], told.patience(self._left[0][0])
            nobody.wait(patience.part)
            if patience.is_over():
                with self._lock:
                    if not self._left or head is not self._left[0]:
                        continue
                    self._left.popleft()
                    self._in_vain += 1
                    if self._in_vain >= _IN_VAIN:
                        self._left.clear()
                told.relaxed()
                self._go_on()

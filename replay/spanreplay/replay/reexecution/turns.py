"""Siblings finish in the recorded order.

What an agent does next can depend on which of several parallel calls came back first: it orders the tool messages of its next
request by completion. A step waits until the step that ended before it in the record has been given, and those have begun that it may
have had cancelled. Then it waits, on an event loop, until the loop has nothing ready, so that what those answers set off, and what the
record shows as begun meanwhile, has run; a thread waits until the one that was given an answer stands still, see
:mod:`spanreplay.replay.reexecution.resting`. Those that ended together are given together, see :mod:`spanreplay.replay.reexecution.bursts`.
Waits are bounded, see :mod:`spanreplay.replay.reexecution.patience`; those for what only the one who waits can bring about are left out,
see :mod:`spanreplay.replay.reexecution.holding`.
"""

import threading
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

from spanreplay.boundary import loops
from spanreplay.boundary.scope import current_scope
from spanreplay.instrumentation.shims import deadlines
from spanreplay.replay.reexecution.holding import Holding
from spanreplay.replay.reexecution.patience import Patience
from spanreplay.replay.reexecution.resting import GivenTo, others_rest

WAIT_S: Final = 2.0
"""Longest wait for a step that does not come."""
IMPATIENT_S: Final = 0.05
_PATIENCE: Final = 3
"""After so many waits in vain the agent is another one, and further waits are short."""
_QUIET_PASSES: Final = 200
_NOBODY: Final[frozenset[int]] = frozenset()
_FARTHEST: Final = 64
"""Steps that are looked at for one that is awaited in vain: more are seldom open at once."""
_BLIND_PASSES: Final = 20
"""Passes on a loop whose ready queue cannot be seen (uvloop, trio)."""


class _Awaited(NamedTuple):
    """Whom a step waits for: until those were given, and those have begun."""

    given: frozenset[int]
    begun: frozenset[int]


class Turns:
    """The completion order of one recorded run. Steps are named by their ``seq``."""

    def __init__(
        self,
        before: Mapping[int, frozenset[int]],
        relaxed: Callable[[], None],
        *,
        pending_s: Mapping[int, float] | None = None,
        wait_s: float | None = None,
        holding: Holding | None = None,
        begun: Mapping[int, frozenset[int]] | None = None,
        together: Mapping[int, Sequence[int]] | None = None,
        overdue: Callable[[int], Collection[deadlines.Deadline]] = lambda _: (),
    ) -> None:
        """See the module's text.

        Args:
            before: step to the steps that must have been given when it is.
            relaxed: called when a wait has been given up.
            pending_s: how long steps that end by being cancelled take for it; whoever waits for one waits that much longer. Also how long
                a step took that is one of ``begun``, which waits that much longer itself.
            wait_s: longest wait in seconds; :data:`WAIT_S` by default.
            holding: who reads what; nobody anything else by default.
            begun: step to the steps that must have begun when it is given.
            together: step to those that are given in one turn of the event loop, it too.
            overdue: tells the deadlines that had expired before a step ended, and have not here.
        """
        self._before = before
        self._to_begin = begun or {}
        self._have_begun: set[int] = set()
        self._together = together or {}
        self._overdue = overdue
        self._ready: dict[int, Callable[[], None]] = {}
        """Steps that wait for those that are given together with them, and what wakes them."""
        self._holding = Holding() if holding is None else holding
        self._relaxed = relaxed
        self._pending_s = pending_s or {}
        self._wait_s = WAIT_S if wait_s is None else wait_s
        self._released = False
        self._given_up = 0
        self._impatient: set[int] = set()
        """Steps that have waited in vain."""
        self._given: set[int] = set()
        """Steps that were given, and whose turn it was."""
        self._early: set[int] = set()
        """Steps that were given before their turn, as a call of plain code on an event loop cannot wait: whoever comes after them does."""
        self._last: GivenTo | None = None
        """The thread that was given an answer last, until it has been waited for."""
        self._changed = threading.Condition()
        self._waiting: dict[int, tuple[_Awaited, Callable[[], None]]] = {}
        """Step to whom it waits for on an event loop, and what wakes it; from any thread."""

    def turn(self, seq: int) -> "OneTurn":
        """The turn of a step."""
        return OneTurn(self, seq)

    def _longest(self, seq: int) -> float:
        longest = self._wait_s if self._given_up < _PATIENCE else min(self._wait_s, IMPATIENT_S)
        after = (*self._before.get(seq, ()), *([seq] if seq in self._to_begin else ()))
        return longest + max((self._pending_s.get(other, 0.0) for other in after), default=0.0)

    def _open(self, seq: int) -> bool:
        return self._released or self._before.get(seq, _NOBODY) <= self._given

    def _may_be_given(self, seq: int) -> bool:
        return self._open(seq) and (self._released or self._to_begin.get(seq, _NOBODY) <= self._have_begun)

    def _have_come(self, awaited: "_Awaited") -> bool:
        return self._released or (awaited.given <= self._given and awaited.begun <= self._have_begun)

    def _awaited(self, seq: int) -> "_Awaited":
        """Whom a step waits for: none that comes after one that is awaited in vain, as that cannot have its turn either."""
        scope = current_scope()
        awaited = before = self._before.get(seq, _NOBODY)
        begun = self._to_begin.get(seq, _NOBODY)
        with self._changed:
            for _ in range(_FARTHEST):
                left = before - self._given
                if not left:
                    break
                before = _NOBODY.union(*(self._before.get(other, _NOBODY) for other in left))
                if any(other not in self._early and self._holding.in_vain(seq, scope, other) for other in left):
                    awaited = before
            vain = frozenset(other for other in begun - self._have_begun if self._holding.in_vain(seq, scope, other))
        return _Awaited(awaited, begun - vain)

    def _all_of(self, seq: int, awaited: "_Awaited") -> bool:
        return awaited == (self._before.get(seq, _NOBODY), self._to_begin.get(seq, _NOBODY))

    def taken(self, seq: int) -> None:
        """Whoever runs now has opened the step's stream, or has read on in it."""
        self._holding.taken(seq)

    def is_to_come(self, seq: int) -> bool:
        """Whether it is not the step's turn yet, though it need not have waited for it."""
        return not self._may_be_given(seq) and seq not in self._impatient

    def wait(self, seq: int) -> None:
        """Block this thread until it is the step's turn, and whoever was given an answer last has done what that set off."""
        if loops.is_running():  # a loop that is blocked brings nobody
            return
        if not self._may_be_given(seq):
            awaited = self._awaited(seq)
            if not self._all_of(seq, awaited):
                others_rest()  # one of them may have been handed the stream, and not have read in it yet
                awaited = self._awaited(seq)
            self._await(seq, awaited)
        if seq in self._together:
            self._await_those_before(seq)
        last = self._last
        if last is not None and not self._released:
            last.rest()
            if self._last is last:
                self._last = None

    def _await_those_before(self, seq: int) -> None:
        """Threads have no turns of a loop: what is given together goes to one after the other."""
        those = self._together[seq]
        with self._changed:
            self._ready[seq] = lambda: None
            self._wake_together(seq)
        try:
            self._await(seq, _Awaited(frozenset(those[: those.index(seq)]), _NOBODY))
        finally:
            with self._changed:
                self._ready.pop(seq, None)

    def _await(self, seq: int, awaited: "_Awaited") -> None:
        with self._changed:
            patience = Patience(self._longest(seq))
            while not self._changed.wait_for(lambda: self._have_come(awaited), patience.part):
                if patience.is_over():
                    self._give_up(seq)
                    return

    def _give_up(self, seq: int) -> None:
        self._given_up += 1
        with self._changed:
            self._impatient.add(seq)
            if seq in self._together:
                self._wake_together(seq)
        self._relaxed()

    async def wait_async(self, seq: int) -> None:
        """Wait for the step's turn, then for the loop to come to rest."""
        await self._let_expire(seq)
        bell: loops.Bell | None = None
        awaited = _Awaited(_NOBODY, _NOBODY)
        if not self._may_be_given(seq):
            awaited = self._awaited(seq)
            if not self._all_of(seq, awaited):
                await _rest()
                awaited = self._awaited(seq)
        with self._changed:
            if not self._have_come(awaited):
                bell = loops.bell()
                self._waiting[seq] = awaited, bell.ring
        if bell is not None and not await self._hears(bell, seq, self._waiting):
            return
        await _rest()
        if seq in self._together:
            await self._wait_together(seq)

    async def _let_expire(self, seq: int) -> None:
        """Whoever waits with a deadline for what comes of this step waits in vain first where it was so; he may wait again and again."""
        tried: set[deadlines.Deadline] = set()
        while late := [one for one in self._overdue(seq) if one not in tried]:
            tried.update(late)
            for deadline in late:
                deadline.expire()
            await _rest()

    async def _hears(self, bell: loops.Bell, seq: int, waiting: MutableMapping[int, Any]) -> bool:
        """Wait for the bell of a step, which is among ``waiting`` until then; tells whether it rang before the wait was given up."""
        patience = Patience(self._longest(seq))
        try:
            while not await bell.wait(patience.part):
                if patience.is_over():
                    self._give_up(seq)
                    return False
        finally:
            with self._changed:
                waiting.pop(seq, None)
        return True

    async def _wait_together(self, seq: int) -> None:
        """Wait until all have come that are given together with the step; then they go on in one turn of the loop, in their order."""
        bell = loops.bell()
        with self._changed:
            self._ready[seq] = bell.ring
            self._wake_together(seq)
        await self._hears(bell, seq, self._ready)

    def _wake_together(self, seq: int) -> None:
        those = self._together[seq]
        if self._released or all(one in self._ready or one in self._given or one in self._early or one in self._impatient for one in those):
            for one in those:
                if one in self._ready:
                    self._ready[one]()

    def begun(self, seq: int) -> None:
        """The step has been asked for."""
        with self._changed:
            self._have_begun.add(seq)
            self._wake()

    def given(self, seq: int) -> None:
        """The step's answer has been handed over."""
        self._holding.given(seq)
        last = None if loops.is_running() else GivenTo()
        with self._changed:
            self._last = last
            self._early.add(seq)
            while passed := {early for early in self._early if early in self._impatient or self._open(early)}:
                self._early -= passed
                self._given |= passed
            self._wake()
            if seq in self._together:
                self._wake_together(seq)

    def release(self) -> None:
        """The replay is stopped: nobody waits any more."""
        with self._changed:
            self._released = True
            self._wake()
            for ring in self._ready.values():
                ring()

    def _wake(self) -> None:
        self._changed.notify_all()
        for awaited, ring in self._waiting.values():
            if self._have_come(awaited):
                ring()


class OneTurn:
    """The turn of one step; a :class:`spanreplay.boundary.call.Turn`."""

    __slots__ = ("_seq", "_turns")

    def __init__(self, turns: Turns, seq: int) -> None:
        self._turns = turns
        self._seq = seq

    @property
    def is_to_come(self) -> bool:
        """Whether a stream that was opened before its turn has to wait for it before it ends."""
        return self._turns.is_to_come(self._seq)

    def taken(self) -> None:
        """Whoever runs now has opened this step's stream, or has read on in it."""
        self._turns.taken(self._seq)

    def wait(self) -> None:
        """Block until it is this step's turn."""
        self._turns.wait(self._seq)

    async def wait_async(self) -> None:
        """Wait until it is this step's turn."""
        await self._turns.wait_async(self._seq)

    def given(self) -> None:
        """The answer has been handed over."""
        self._turns.given(self._seq)


async def _rest() -> None:
    """Return when nothing else is ready to run on the loop that is running."""
    ready = loops.ready()
    for passes in range(_QUIET_PASSES):
        await loops.turn()
        if ready is None:
            if passes >= _BLIND_PASSES:
                return
        elif not ready:
            return

"""What is known here of each command that an agent has started: a recorded one, or what stands for one in a replay."""

import os
import weakref
from collections.abc import Callable
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Answer
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.step import Step
from spanreplay.content import codec
from spanreplay.instrumentation.commands import Fed, Live, Result

_HELD: Final = "_spanreplay"
"""Attribute of a ``Popen``."""

by_pid: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
"""Each ``Popen`` that was started here and is still held."""
running: Final["weakref.WeakSet[Live | Stub]"] = weakref.WeakSet()
"""What is known of the commands that an agent has started; nobody says when one is to be forgotten."""


class Stub:
    """A command in a replay."""

    def __init__(self, step: Step, answer: Answer) -> None:
        self.step = step
        self.answer = answer
        self.result = Result(codec.decode(answer.result or "null"))
        self.polls = self.result.polls
        self.timeouts = self.result.timeouts
        self.exited: Callable[[], object] | None = None
        """Tells an event loop that the command has ended."""
        self.runs_on = self.result.left
        """Until the agent ends it."""
        self.ends: list[int] = []
        """Of pipes that end when the command does, and that is when the agent ends it."""
        self.fed: Fed | None = None
        """What the agent writes to it, where that is seen."""
        self._compared = False
        self._settled = False

    def compare_input(self, *, stops: bool = True) -> None:
        """Compare what the agent has written to the command up to now with the record; once it is all, for the last time.

        Args:
            stops: a difference may stop the agent here.

        Raises:
            ControlSignal: it differs.
        """
        if self.fed is None or self._compared or self.answer.fed is None:
            return
        self._compared = self.fed.over
        try:
            self._compared = self.answer.fed(codec.encode(self.fed.told())) or self._compared
        except ControlSignal:
            self._compared = True
            if stops:
                raise

    def end(self) -> None:
        """The agent ends the command, or forgets it."""
        self.runs_on = False
        for fd in self.ends:
            os.close(fd)
        self.ends = []

    def settle(self, *, waiting: bool = True) -> None:
        """The agent has got what it waited for: siblings that came later in the record may follow."""
        if self._settled:
            return
        self.compare_input(stops=waiting)
        self._settled = True
        self.end()
        if self.result.left:  # its end was the end of all
            self.step.succeed(encoded=boundary.again(self.answer.result or "null"), outcome=self.answer.outcome)
        elif waiting:
            boundary.give(self.step, self.answer)
            return
        if self.answer.turn is not None:
            self.answer.turn.given()

    async def settle_async(self) -> None:
        """As :meth:`settle`, on an event loop."""
        if not self._settled:
            self._settled = True
            await boundary.agive(self.step, self.answer)


def hold(popen: Any, known: Live | Stub) -> None:
    """From now on :func:`held` gives this of a ``Popen``."""
    setattr(popen, _HELD, known)
    running.add(known)


def held(popen: Any) -> Live | Stub | None:
    """What is known here of a ``Popen``."""
    found = getattr(popen, _HELD, None)
    return found if isinstance(found, Live | Stub) else None

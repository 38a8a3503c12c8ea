"""A debugger in the frame of the agent that makes a call: Python's own, ``pdb``, on the terminal of the command.

It opens at once, and not at the next line as ``breakpoint()`` does: the call is made, and not answered yet. ``c`` goes on, ``n`` to the
next line of the agent, ``q`` ends the replay there. Frames of spanreplay are not stepped into.
"""

import bdb
import pdb  # noqa: T100 — it is what is offered
import sys
from types import FrameType
from typing import Any, Final

from spanreplay.replay.isolation.callers import is_ours, user_frame
from spanreplay.replay.reexecution.stepping import Enough

_CONTINUED: Final = -1
"""``bdb``'s mark for: stop at break points only."""


class _Debugger(pdb.Pdb):
    """A :class:`pdb.Pdb` that opens in a given frame."""

    def __init__(self) -> None:
        super().__init__(skip=["spanreplay", "spanreplay.*"], nosigint=True)

    def open_in(self, frame: FrameType) -> bool:
        """Talk to the user; gives whether the program is to go on."""
        self.reset()
        outer: FrameType | None = frame
        while outer is not None:
            outer.f_trace = self._traced
            self.botframe = outer
            outer = outer.f_back
        self.set_step()
        sys.settrace(None)
        self.interaction(frame, None)
        if getattr(self, "quitting", False):
            sys.settrace(None)
            return False
        if getattr(self, "stoplineno", _CONTINUED) != _CONTINUED or self.breaks:
            sys.settrace(self._traced)
        return True

    def _traced(self, frame: FrameType, event: str, argument: Any) -> Any:
        try:
            return self.trace_dispatch(frame, event, argument)
        except bdb.BdbQuit:  # agents catch what is no BaseException of ours
            sys.settrace(None)
            raise Enough("left at the debugger") from None


def debug(what: str) -> bool:
    """Open a debugger in the frame of the agent around this call; gives whether the agent is to go on.

    Args:
        what: what there is to say first.
    """
    frame = user_frame(sys._getframe(1)) or _not_ours(sys._getframe(1))
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        print(f"spanreplay: no debugger {what}: this process has no terminal", file=sys.stderr)  # noqa: T201 — there is no other way out
        return True
    print(f"spanreplay: {what}; c goes on, n to the next line, q ends here", flush=True)  # noqa: T201
    return _Debugger().open_in(frame)


def _not_ours(frame: FrameType) -> FrameType:
    found: FrameType | None = frame
    while found is not None and is_ours(str(found.f_globals.get("__name__")), found.f_code.co_filename):
        found = found.f_back
    return found or frame

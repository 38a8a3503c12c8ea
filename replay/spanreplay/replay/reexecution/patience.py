"""How long somebody waits for another one, on a machine that may be busy with something else.

Who is awaited needs processor time to come, and a busy machine gives it late. So a wait is counted in parts. One that takes longer than it
was to, because who waits came late to look, counts as long as it was to take. One in which this process has worked counts as long as it
worked, though never less than a share of the real time: an agent that works on something else is not waited for without end.
"""

import time
from typing import Final

_PARTS: Final = 8
_WORKS: Final = 0.05
"""Share of a processor above which a process works; below, it looks at its timers."""
_LEAST: Final = 0.2
"""Share of the real time that counts at least."""


class Patience:
    """One wait, from now on. Look with :meth:`is_over` after each :attr:`part`.

    Args:
        longest: seconds that it takes at most where nothing works; on a machine with other work at most five times as long.
    """

    def __init__(self, longest: float) -> None:
        self._part = longest / _PARTS
        self._left = longest
        self._at, self._used = time.monotonic(), time.process_time()

    @property
    def part(self) -> float:
        """Seconds to wait until the next look."""
        return min(self._part, self._left)

    def is_over(self) -> bool:
        """Whether the wait has been long enough; counts what has passed since the last look."""
        now, used = time.monotonic(), time.process_time()
        passed, worked = now - self._at, used - self._used
        self._at, self._used = now, used
        counted = passed if worked <= _WORKS * passed else max(worked, _LEAST * passed)
        self._left -= min(counted, self.part)
        return self._left <= self._part / 1000

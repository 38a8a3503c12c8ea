"""The time of an event loop, as a replay tells it: among each other such times are what was recorded, for everybody else they are real.

A loop such as ``while loop.time() < deadline`` decides by them what is called, and timers of the event loop are set by them
(``loop.call_at``, ``asyncio.timeout_at``), which wait by the real clock. So the number is the real time. What the program does with several
of them, comparing two or taking one from the other, goes by what it read when it was recorded.
"""

from typing import Any, Self, SupportsFloat, SupportsIndex


class LoopTime(float):
    """A real time that knows which one was recorded in its place.

    Attributes:
        told: the recorded one, seconds.
    """

    __slots__ = ("told",)
    told: float

    def __new__(cls, real: SupportsFloat | SupportsIndex, told: float) -> Self:
        """One of both."""
        made = super().__new__(cls, real)
        made.told = told
        return made

    def __add__(self, other: Any) -> Any:
        real = float.__add__(self, other)
        return real if real is NotImplemented or isinstance(other, LoopTime) else LoopTime(real, self.told + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, LoopTime):
            return self.told - other.told
        real = float.__sub__(self, other)
        return real if real is NotImplemented else LoopTime(real, self.told - other)

    def __lt__(self, other: Any) -> bool:
        return self.told < other.told if isinstance(other, LoopTime) else float.__lt__(self, other)

    def __le__(self, other: Any) -> bool:
        return self.told <= other.told if isinstance(other, LoopTime) else float.__le__(self, other)

    def __gt__(self, other: Any) -> bool:
        return self.told > other.told if isinstance(other, LoopTime) else float.__gt__(self, other)

    def __ge__(self, other: Any) -> bool:
        return self.told >= other.told if isinstance(other, LoopTime) else float.__ge__(self, other)

    def __reduce__(self) -> Any:
        return float, (float(self),)

    def __copy__(self) -> "LoopTime":
        return self

    def __deepcopy__(self, memo: Any) -> "LoopTime":
        return self

"""At which sizes the texts of an input were cut.

Back ends and most SDKs limit the bytes of a text, OpenTelemetry's SDK for Python its characters; where all texts are ASCII, that is one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from spanreplay.replay.reading.fields import TEMPO_LIMIT

Unit: TypeAlias = Literal["bytes", "characters"]

LENGTHS_KEPT: Final = 20_000
SEVERAL: Final = 3
"""Different texts of just one size, and none longer, that are no chance."""
_NEAR: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The sizes at which values were cut, each with the number of spans of which one was."""

    bytes: Mapping[int, int]
    characters: Mapping[int, int]
    """Only where texts of this many characters have more bytes."""

    def __bool__(self) -> bool:
        return bool(self.bytes or self.characters)

    def reached(self, text: str, size: int) -> tuple[int, Unit] | None:
        """The limit that a text of ``size`` bytes has just the size of."""
        if size in self.bytes:
            return size, "bytes"
        return (len(text), "characters") if len(text) in self.characters else None


@dataclass(slots=True)
class Sizes:
    """How many spans have texts of which sizes, in one unit."""

    seen: Counter[int] = field(default_factory=Counter)
    broken: Counter[int] = field(default_factory=Counter)
    plain: dict[int, set[int]] = field(default_factory=dict)
    longest: int = 0

    def copy(self) -> "Sizes":
        """One that goes on by itself."""
        return Sizes(Counter(self.seen), Counter(self.broken), {size: set(texts) for size, texts in self.plain.items()}, self.longest)

    def see(self, sizes: Collection[int], broken: Collection[int]) -> None:
        """Count the texts of one span."""
        if broken:
            self.broken.update(broken)
        if not sizes:
            return
        self.longest = max(self.longest, *sizes)
        seen = self.seen
        if len(seen) < LENGTHS_KEPT:
            for size in sizes:  # in a tenth of the time of update, which looks first at what it is given
                seen[size] = seen.get(size, 0) + 1

    def see_plain(self, found: Iterable[tuple[int, str]]) -> None:
        """Keep that there are such texts, of sizes that are usual for a limit."""
        for size, text in found:
            texts = self.plain.setdefault(size, set())
            if len(texts) < SEVERAL:
                texts.add(hash(text))

    def limits(self) -> dict[int, int]:
        """Sizes at which values were cut, and in how many spans.

        A size counts where JSON was cut there twice, or a cut value has it and nothing is longer: half a JSON text alone may have been
        written so. A usual limit counts too where several different texts have its size and nothing is longer.
        """
        longest = max(self.seen, default=0)
        found = {size: max(count, self.seen[size]) for size, count in self.broken.items() if count > 1 or size == longest}
        if len(self.plain.get(self.longest, ())) >= SEVERAL:
            found.setdefault(self.longest, self.seen[self.longest])
        return found

    def tempo(self) -> int:
        """In how many spans Tempo's default has cut, in bytes; 0 where it has not, as far as can be told.

        It counts once two spans have it, and far more than have any size near it: in a large input each size is somebody's.
        """
        near = max(self.seen[TEMPO_LIMIT + distance] for distance in range(-_NEAR, _NEAR + 1) if distance)
        is_it = self.seen[TEMPO_LIMIT] > max(1, 4 * near) or self.broken[TEMPO_LIMIT]
        return max(self.seen[TEMPO_LIMIT], self.broken[TEMPO_LIMIT]) if is_it else 0

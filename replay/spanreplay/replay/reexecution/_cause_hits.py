"""A change as it is tied to a difference, and which of several count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spanreplay.replay.reexecution.ledger import Difference

SEEN, LINE, CALLED, POSSIBLE = 3, 2, 1, 0
"""How a change is tied to a difference: by the words that differ, by the line of the call, by being called from there, or not at all."""
CODE: Final = frozenset({"commit", "diff"})
"""Kinds of the changes of code that is kept by its commit."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A change, as it is tied to a difference."""

    kind: str
    text: str
    strength: int
    file: str | None = None
    """Where in the code it is."""
    both: bool | None = None
    """Whether what was recorded stands in its old side and what is there now in its new one; ``None`` where a side is not known."""
    words: frozenset[str] = frozenset()
    """Which of the words that differ it has, where that is known."""
    carriers: Mapping[str, str] = field(default_factory=dict)
    """The changed files of the code that a text stands in, and what to say of each."""


def strongest(hits: Sequence[Hit]) -> list[Hit]:
    """Those that are tied to the difference most closely; none where none is tied to it."""
    best = max((hit.strength for hit in hits), default=POSSIBLE)
    if best == CALLED and any(hit.kind != "dependency" for hit in hits):
        best = POSSIBLE
    return [hit for hit in hits if hit.strength == best > POSSIBLE]


def merged(texts: Sequence[Hit], reached: Sequence[Hit]) -> list[Hit]:
    """The texts, each with the place in the code that it stands at, and what else reached a difference."""
    made = []
    for text in texts:
        seen = [hit.text for hit in reached if hit.file in text.carriers]
        own = seen if len(seen) == 1 else list(text.carriers.values())
        made.append(replace(text, text=f"{text.text}: {own[0]}") if len(own) == 1 else text)
    carried = {file for text in texts for file in text.carriers}
    return [*made, *(hit for hit in reached if hit.file not in carried)]


def sided(reached: Sequence[Hit]) -> list[Hit]:
    """Without what has the words of one side only, where another change has those of both."""
    whole = {word for hit in reached if hit.both for word in hit.words}
    return [hit for hit in reached if hit.both is not False or not hit.words <= whole]


def in_order(reached: list[Hit], difference: Difference) -> list[Hit]:
    """As their words come in the difference, where each has its own."""
    if len(reached) < 2 or not apart(reached):
        return reached
    evidence = difference.evidence or {}
    texts = [*evidence.get("added", ()), *evidence.get("removed", ())]

    def first(hit: Hit) -> int:
        return min((place for place, text in enumerate(texts) if any(word in text for word in hit.words)), default=len(texts))

    return sorted(reached, key=first)


def apart(reached: Sequence[Hit]) -> bool:
    """Has each change other words of the difference?"""
    words = [word for hit in reached for word in hit.words]
    return all(hit.words for hit in reached) and len(words) == len(set(words))

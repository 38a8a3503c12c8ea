"""Whether a command replays the same way however it is scheduled, on another day and another machine: several replays, shuffled.

What the record holds (clock, uuids, ``random``, order of sets) stays as recorded, so what still differs depends on something else: on which
of several tasks or threads comes first, on the system's own randomness, on an address in memory, on files that changed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spanreplay.replay.case import worst
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.verdict import Verdict

_FIRST_SEED: Final = 20_261_129
_NUMBER: Final = re.compile(r"\[\d+\]")


@dataclass(slots=True, kw_only=True)
class Finding:
    """One place where replays part from the record."""

    difference: Difference
    """As it was found first."""
    replays: int = 0
    """In how many of them."""
    actual: dict[str | None, None] = field(default_factory=dict)
    """What was found there, each once."""

    def to_json(self) -> dict[str, Any]:
        """As under ``findings``."""
        shown = self.difference
        return {
            "replays": self.replays,
            "where": shown.where,
            "step": shown.step,
            "name": shown.name,
            "field": shown.field,
            "recorded": shown.recorded,
            "actual": list(self.actual),
            "summary": shown.summary(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """What several replays showed."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """The worst of all."""
        return worst([verdict.exit_code for verdict in self.verdicts])

    @property
    def changed(self) -> tuple[Finding, ...]:
        """What was the same in every replay: no chance, but another program, or another input."""
        return tuple(f for f in self.findings if f.replays == len(self.verdicts) > 1 and len(f.actual) == 1)

    @property
    def by_chance(self) -> tuple[Finding, ...]:
        """What was not."""
        return tuple(f for f in self.findings if f not in self.changed)

    def to_json(self) -> dict[str, Any]:
        """The document of ``spanreplay replay --check-determinism K --json``."""
        return {
            "schema": 1,
            "exit_code": self.exit_code,
            "replays": len(self.verdicts),
            "equal": sum(verdict.exit_code == 0 for verdict in self.verdicts),
            "by_chance": [finding.to_json() for finding in self.by_chance],
            "changed": [finding.to_json() for finding in self.changed],
            "refusals": [dict(r) for verdict in self.verdicts for r in verdict.refusals],
        }


def seeds(number: int) -> Iterator[int]:
    """What decides the shuffling of each replay: always the same, so that what was found is found again."""
    return iter(range(_FIRST_SEED, _FIRST_SEED + number))


def compared(verdicts: Sequence[Verdict]) -> Determinism:
    """What replays of one command have in common, and what not."""
    found: dict[tuple[Any, ...], Finding] = {}
    for verdict in verdicts:
        places: Mapping[tuple[Any, ...], Difference] = {_place(d): d for d in reversed(verdict.differences)}
        for place, difference in places.items():
            finding = found.setdefault(place, Finding(difference=difference))
            finding.replays += 1
            finding.actual[difference.actual] = None
    ordered = sorted(found.values(), key=lambda f: (f.difference.step is None, f.difference.step or 0))
    return Determinism(verdicts=tuple(verdicts), findings=tuple(ordered))


def _place(difference: Difference) -> tuple[Any, ...]:
    field = None if difference.field is None else _NUMBER.sub("[*]", difference.field)
    return difference.kind, difference.run_id, difference.step, difference.name, field, difference.where

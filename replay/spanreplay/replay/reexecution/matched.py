"""What comes of finding the recorded step of a live call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from spanreplay.replay.model import Grade, Step
from spanreplay.replay.reexecution.diff import ValueDifference

MatchedBy: TypeAlias = Literal["path", "input", "renaming", "tolerance", "place"]
"""
``path``: it was made at the step's place, with its very input. ``input``: with its input, elsewhere. ``renaming``: its input differs in ids
and times that programs make themselves. ``tolerance``: in what the user lets differ. ``place``: it differs, and was answered all the same.
"""

_TOLD: Final = 20
"""Ignored values of one call that are told."""
_STUB_GRADES: Final[frozenset[Grade]] = frozenset({"exact", "semantic"})


def stub_grades(*, accept_incomplete: bool) -> frozenset[Grade]:
    """The grades of steps that may answer a call.

    Args:
        accept_incomplete: also those whose record is known to lack something.
    """
    more: frozenset[Grade] = frozenset({"incomplete"} if accept_incomplete else ())
    return _STUB_GRADES | more


def unable(step: Step) -> str:
    """Why a step cannot answer a call, and what helps."""
    why = "; ".join(reason.detail for reason in step.reasons) or f"it ended as {step.outcome}"
    advice = {
        "structure": "; it answers when it is recorded with its content",
        "incomplete": "; --accept-incomplete lets it answer with what there is",
    }.get(step.grade, "")
    return f"the record cannot answer it: {why}{advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """How a live input counts as a recorded one, though the two differ."""

    by: Literal["renaming", "tolerance"]
    ignored: tuple[ValueDifference, ...] = ()
    """What differs and does not count; named as differences are."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Recorded ids to live ones, as far as they are new."""

    def facts(self) -> dict[str, Any]:
        """What of it is entered in the ledger."""
        return {"ignored": [{"field": v.path, **dict(zip(("recorded", "actual"), v.texts(), strict=False))} for v in self.ignored[:_TOLD]]}

    @property
    def distance(self) -> int:
        """How much differs: of several recorded steps the nearest fits best."""
        return len(self.ignored) + len(self.renamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A recorded step that answers a live call."""

    step: Step
    by: MatchedBy
    like: Like | None = None
    """With ``renaming`` and ``tolerance``."""
    away: bool = False
    """It was made elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A call that was answered by input, away from its own place."""

    path: str
    asked: str | None
    """Its comparable input."""
    where: str | None
    """``file:line`` of the agent's code that made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """No recorded step answers a live call."""

    kind: Literal["input", "order", "never_recorded", "already_used", "not_replayable"]
    step: Step | None
    """The recorded step that was expected here, if any; it is the one that differs."""
    next: Step | None = None
    """For a call that is not in the record: the recorded step that was to come next here."""
    nearest: tuple[Step, ...] = ()
    instead: Step | None = None
    """The recorded step whose call was made where ``step`` was expected."""
    skipped: tuple[Step, ...] = ()
    """Steps of tasks and threads started from here that ended before ``step`` in the record, and were not asked for."""
    again: Step | None = None
    """The step before ``step`` in its place, which has answered just this: it may be that the agent makes one call more."""
    claim: Claim | None = None
    """The earlier call that took the step of this one, and is the one that differs."""

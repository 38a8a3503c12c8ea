"""Steps without their doubles: which spans became part of which step, and what the step says of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from spanreplay.replay.model import GRADE_ORDER, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import combined
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reasons import DOUBLED
from spanreplay.replay.rebuilding.same_call import FAILED, Candidate, apart, lasts_over, meet
from spanreplay.replay.rebuilding.tree import SpanKey

_NAMED: Final = 8
"""Spans of one step that are named; the rest is counted."""


@dataclass(slots=True, kw_only=True)
class Folded:
    """Steps without their doubles."""

    steps: dict[SpanKey, Candidate]
    """In order of their start."""
    around: Mapping[SpanKey, SpanKey]
    """For each candidate the nearest around it."""
    places: Mapping[SpanKey, "Place"]
    absorbed: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """Spans that are no step of their own, and the step that each is part of."""
    inside: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """Steps whose double knows better what is around them, and that double."""
    wrapped: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """Model calls of which several are in one span that is no call of its own, and that span."""

    def step_of(self, key: SpanKey) -> SpanKey:
        """The step that a span became part of; the span itself if it is one."""
        if key not in self.absorbed:
            return key
        path = [key]
        while (following := self.absorbed.get(path[-1])) is not None:
            path.append(following)
        self.absorbed.update(dict.fromkeys(path[:-1], path[-1]))
        return path[-1]

    def outer(self, key: SpanKey) -> SpanKey | None:
        """The step around a step, or around a span that became part of one, by the tree alone."""
        step = self.step_of(key)
        around = self.around.get(self.inside.get(key, key))
        while around is not None and self.step_of(around) == step:
            around = self.around.get(around)
        return None if around is None else self.step_of(around)

    def join(self, keeper: Candidate, other: Candidate, *, merge: bool = True) -> None:
        """Makes ``other`` a part of ``keeper``.

        Args:
            keeper: the step.
            other: the span that is none any more.
            merge: whether what it says is about this call alone.
        """
        draft = _with_end(combined(keeper.draft, other.draft), keeper, other) if merge else keeper.draft
        del self.steps[other.key]
        self.absorbed[other.key] = keeper.key
        self.steps[keeper.key] = replace(keeper, draft=draft, recorders=keeper.recorders | other.recorders)

    def beside(self, one: Candidate, other: Candidate) -> bool:
        """Whether two steps of different instrumentations ran at the same time, and neither is inside the other."""
        a, b = self.places[one.key], self.places[other.key]
        return apart(one, other) and meet(one, other) and not a.holds(b) and not b.holds(a)

    def join_beside(self, one: Candidate, other: Candidate) -> SpanKey:
        """Makes one of two steps that stand beside each other a part of the other; gives the one that is left."""
        keeper, double = sorted((one, other), key=lambda step: (*rank(step.draft), step.key))
        self.join(keeper, double)
        here, there = (self.inside.get(step.key, step.key) for step in (keeper, double))
        if self.places[there].depth > self.places[here].depth:
            self.inside[keeper.key] = there
        return keeper.key

    def tell(self, candidates: Iterable[Candidate]) -> None:
        """Has every step say which spans are part of it.

        Args:
            candidates: all, in the order in which they are to be named.
        """
        around = Counter(self.wrapped.values())
        parts: dict[SpanKey, list[str]] = {}
        for part in candidates:
            if part.key in self.absorbed:
                who = f"span {part.key.span_id} ({part.name or part.draft.name}, {part.dialect})"
                calls = around[part.key]
                detail = f"{who} is around {calls} calls and is none of its own" if calls else f"also recorded as {who}, counted once"
                parts.setdefault(self.step_of(part.key), []).append(detail)
        for key, details in parts.items():
            step = self.steps[key]
            if len(details) > _NAMED:
                details[_NAMED:] = [f"also recorded as {len(details) - _NAMED} more spans, counted once"]
            told = tuple(Reason(code=DOUBLED, detail=detail) for detail in details)
            self.steps[key] = replace(step, draft=replace(step.draft, reasons=(*step.draft.reasons, *told)))


def rank(draft: StepDraft) -> tuple[bool, bool, bool, int, int, int, int]:
    """Lower for our own record of a call, then for one that tells more.

    Some write a conversation as one text: messages and requests tell more than a text of them.
    """
    lacking = (draft.input is None) + (draft.output is None)
    requests, messages = 0, 0
    if draft.kind == "model_call":
        requests = sum(1 + (asked.call_id is not None) for asked in asked_for(draft.output))
        if isinstance(draft.input, dict):
            messages = len(draft.input.get("messages") or ()) + bool(draft.input.get("system"))
    return not draft.root, draft.path is None, draft.grade != "exact", lacking, -requests, -messages, GRADE_ORDER.index(draft.grade)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a candidate is in the tree of candidates, counted depth first."""

    first: int
    last: int
    """Of what is inside it."""
    depth: int

    def holds(self, other: "Place") -> bool:
        """Whether the other one is in it, or is it."""
        return self.first <= other.first <= self.last


def places_of(steps: Mapping[SpanKey, Candidate], around: Mapping[SpanKey, SpanKey]) -> dict[SpanKey, Place]:
    """Depth first: everything after what it is inside."""
    inside: dict[SpanKey, list[SpanKey]] = {}
    for key in steps:
        if key in around:
            inside.setdefault(around[key], []).append(key)
    firsts: dict[SpanKey, int] = {}
    depths: dict[SpanKey, int] = {}
    stack = [key for key in reversed(list(steps)) if key not in around]
    while stack:
        key = stack.pop()
        firsts[key] = len(firsts)
        depths[key] = depths[around[key]] + 1 if key in around else 0
        stack.extend(reversed(inside.get(key, ())))
    lasts = dict(firsts)
    for key in reversed(list(firsts)):
        if key in around:
            lasts[around[key]] = max(lasts[around[key]], lasts[key])
    return {key: Place(first, lasts[key], depths[key]) for key, first in firsts.items()}


def _with_end(draft: StepDraft, keeper: Candidate, other: Candidate) -> StepDraft:
    """A step from two records of it with how it ended: an answer tells more than the lack of an error."""
    ours, theirs = keeper.draft, other.draft
    ends = {ours.outcome, theirs.outcome}
    if len(ends) == 1 or theirs.outcome == "unknown":
        return draft
    failed = next((one for one in (ours, theirs) if one.outcome in FAILED), None)
    if ours.kind == "tool_call" and failed is not None and "ok" in ends:
        outer, inner = (keeper, other) if failed is theirs else (other, keeper)
        told = outer.draft.output is not None and lasts_over(outer, inner)  # the agent made a result of the failure
        return replace(draft, outcome="tool_error" if told else failed.outcome, error=failed.error)
    worse = theirs.outcome == "tool_error" or (theirs.outcome in FAILED and ours.output is None)
    if ours.outcome == "unknown" or (ours.outcome == "ok" and worse):
        return replace(draft, outcome=theirs.outcome, error=theirs.error)
    return draft

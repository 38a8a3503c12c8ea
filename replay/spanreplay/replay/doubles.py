"""One call that several instrumentations recorded is one step.

Two spans of one call are mostly nested: a framework's around a client's, an agent's around the protocol's. They may also stand side by
side, where two instrumentations hang their spans under the same parent, or each under its own copy of it. What only one of them knows is
added to the other, whose span is counted among the unclassified. A model span around several real calls, which are attempts of one client
or go to one model after another, is no call of its own. Two real calls are never taken for one: see :mod:`spanreplay.replay.same_call`.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spanreplay.replay.dialect import StepDraft
from spanreplay.replay.drafting import combined
from spanreplay.replay.messages import asked_for
from spanreplay.replay.model import GRADE_ORDER, Reason
from spanreplay.replay.reasons import DOUBLED
from spanreplay.replay.same_call import (
    FAILED,
    Candidate,
    apart,
    arguments_conflict,
    asked_ids,
    calls_agree,
    meet,
    models_agree,
    same_agent,
    same_answer,
)
from spanreplay.replay.tree import SpanKey

_REMEMBERED: Final = 64
"""Calls with the same id that are compared with a further one."""
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


def fold(candidates: Iterable[Candidate], around: Mapping[SpanKey, SpanKey]) -> Folded:
    """Finds the doubles.

    Args:
        candidates: what was read as steps in one run, roots among them.
        around: for each of them the nearest candidate around it, if any. No loops.
    """
    ordered = sorted(candidates, key=lambda candidate: (candidate.start_ns, candidate.key))
    steps = {candidate.key: candidate for candidate in ordered}
    folded = Folded(steps=steps, around=around, places=_places(steps, around))
    standing: dict[SpanKey, list[SpanKey]] = {}
    for key in reversed(list(folded.places)):
        inner = standing.pop(key, [])
        shown = _fold_nested(folded, steps[key], [steps[step] for step in reversed(inner)]) if inner else [key]
        outer = around.get(key)
        if outer is not None:
            standing.setdefault(outer, []).extend(reversed(shown))
    _fold_beside(folded)
    folded.tell(ordered)
    return folded


def _places(steps: Mapping[SpanKey, Candidate], around: Mapping[SpanKey, SpanKey]) -> dict[SpanKey, Place]:
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


# ---- nested ------------------------------------------------------------------------------------------------------


def _fold_nested(folded: Folded, outer: Candidate, inner: Sequence[Candidate]) -> list[SpanKey]:
    """Folds a candidate with those directly inside it that are the same call; gives what stands for it now.

    Args:
        folded: is changed.
        outer: the candidate.
        inner: the steps directly inside it, in order.
    """
    kind = outer.draft.kind
    alike = [candidate for candidate in inner if candidate.draft.kind == kind]
    if not alike:
        return [outer.key]
    if kind == "model_call":
        return _fold_models(folded, outer, alike)
    if kind == "tool_call":
        return _fold_tools(folded, outer, alike)
    if len(alike) == 1 and _same_other(outer, alike[0]):
        return [_fold_two(folded, outer, alike[0])]
    return [outer.key]


def _fold_models(folded: Folded, outer: Candidate, alike: Sequence[Candidate]) -> list[SpanKey]:
    answers = [same_answer(outer.draft, candidate.draft) for candidate in alike]
    proven = [candidate for candidate, same in zip(alike, answers, strict=True) if same]
    answered = [candidate for candidate in alike if candidate.draft.outcome not in FAILED]
    if not proven:
        if False in answers or (not answered and outer.draft.outcome not in FAILED):
            return [outer.key]
        fallbacks = len(alike) > 1 and answered == [alike[-1]]  # each after the failure of the one before, to whatever model
        if not fallbacks and not all(models_agree(outer.draft, candidate.draft) for candidate in alike):
            return [outer.key]
    if len(alike) == 1:
        return [_fold_two(folded, outer, alike[0], inner_first=True)]
    chosen = proven[-1] if proven else answered[-1] if answered else alike[-1]
    certain = bool(proven) or len(answered) <= 1
    folded.join(chosen, outer, merge=certain)
    folded.wrapped.update((candidate.key, outer.key) for candidate in alike)
    return [candidate.key for candidate in alike]


def _fold_tools(folded: Folded, outer: Candidate, alike: Sequence[Candidate]) -> list[SpanKey]:
    same = [candidate for candidate in alike if calls_agree(outer.draft, candidate.draft)]
    carried = [candidate for candidate in same if candidate.draft.transport]
    if carried and len(carried) == len(same):  # of a call that was sent again too, the tool's caller knows nothing
        for candidate in reversed(carried):
            folded.join(folded.steps[outer.key], candidate, merge=candidate is carried[-1])
        return [outer.key]
    if len(same) != 1 or len(alike) != 1:
        return [outer.key]
    proven = outer.draft.transport or (outer.draft.call_id is not None and outer.draft.call_id == same[0].draft.call_id)
    return [_fold_two(folded, outer, same[0])] if proven or apart(outer, same[0]) else [outer.key]


def _same_other(outer: Candidate, inner: Candidate) -> bool:
    if not apart(outer, inner):
        return False
    if outer.draft.kind == "agent":
        return same_agent(outer.draft, inner.draft) and not (outer.draft.root and inner.draft.root)
    return outer.draft.name == inner.draft.name and not arguments_conflict(outer.draft.input, inner.draft.input)


def _fold_two(folded: Folded, outer: Candidate, inner: Candidate, *, inner_first: bool = False) -> SpanKey:
    """The span that tells most is the step; else that of a model call nearest to the provider, of others what the agent saw."""
    keeper, other = sorted((outer, inner), key=lambda step: (*_rank(step.draft), (step is outer) == inner_first))
    folded.join(keeper, other)
    if outer.draft.kind == "tool_call" and keeper is inner and keeper.draft.name != outer.draft.name:
        kept = folded.steps[keeper.key]
        folded.steps[keeper.key] = replace(kept, draft=replace(kept.draft, name=outer.draft.name))
    return keeper.key


def _rank(draft: StepDraft) -> tuple[bool, bool, int, int, int, int]:
    """Lower for a record that tells more. Some write a conversation as one text: messages and requests tell more than a text of them."""
    lacking = (draft.input is None) + (draft.output is None)
    requests, messages = 0, 0
    if draft.kind == "model_call":
        requests = sum(1 for _ in asked_for(draft.output))
        if isinstance(draft.input, dict):
            messages = len(draft.input.get("messages") or ()) + bool(draft.input.get("system"))
    return not draft.root, draft.grade != "exact", lacking, -requests, -messages, GRADE_ORDER.index(draft.grade)


def _with_end(draft: StepDraft, keeper: Candidate, other: Candidate) -> StepDraft:
    """A step from two records of it with how it ended: an answer tells more than the lack of an error."""
    ours, theirs = keeper.draft, other.draft
    ends = {ours.outcome, theirs.outcome}
    if len(ends) == 1 or theirs.outcome == "unknown":
        return draft
    failed = next((one for one in (ours, theirs) if one.outcome in FAILED), None)
    if ours.kind == "tool_call" and failed is not None and "ok" in ends:
        outer, inner = (keeper, other) if failed is theirs else (other, keeper)
        told = outer.draft.output is not None and _lasts_over(outer, inner)  # the agent made a result of the failure
        return replace(draft, outcome="tool_error" if told else failed.outcome, error=failed.error)
    worse = theirs.outcome == "tool_error" or (theirs.outcome in FAILED and ours.output is None)
    if ours.outcome == "unknown" or (ours.outcome == "ok" and worse):
        return replace(draft, outcome=theirs.outcome, error=theirs.error)
    return draft


def _lasts_over(outer: Candidate, inner: Candidate) -> bool:
    return outer.start_ns <= inner.start_ns and (outer.end_ns is None or (inner.end_ns is not None and inner.end_ns <= outer.end_ns))


# ---- side by side ------------------------------------------------------------------------------------------------


def _fold_beside(folded: Folded) -> None:
    """Folds model and tool calls that stand side by side, then the agents that they were recorded in twice."""
    groups: dict[tuple[str, object], list[Candidate]] = {}
    for candidate in folded.steps.values():
        evidence = _evidence(candidate.draft)
        if evidence is not None:
            groups.setdefault((candidate.draft.kind, evidence), []).append(candidate)
    copies: list[tuple[SpanKey, SpanKey]] = []
    for group in groups.values():
        if len(group) > 1:
            copies += _fold_group(folded, group)
    while copies:
        one, other = (folded.outer(key) for key in copies.pop())
        if one is None or other is None or one == other:
            continue
        ours, theirs = folded.steps[one], folded.steps[other]
        if ours.draft.kind == theirs.draft.kind == "agent" and _stand_beside(folded, ours, theirs) and _same_other(ours, theirs):
            copies.append((one, other))
            _join_beside(folded, ours, theirs)


def _evidence(draft: StepDraft) -> object:
    """What only records of one call share."""
    if draft.kind == "model_call":
        return draft.response_id or asked_ids(draft) or None
    return draft.call_id if draft.kind == "tool_call" else None


def _fold_group(folded: Folded, group: Sequence[Candidate]) -> list[tuple[SpanKey, SpanKey]]:
    """Of calls with the same id, in order of their start, each with at most one of every other instrumentation."""
    found: list[tuple[SpanKey, SpanKey]] = []
    calls: deque[SpanKey] = deque(maxlen=_REMEMBERED)
    for candidate in group:
        earlier = (folded.steps[key] for key in reversed(calls))
        twin = next((call for call in earlier if _stand_beside(folded, call, candidate) and _same_beside(call, candidate)), None)
        if twin is None:
            calls.append(candidate.key)
        else:
            calls[calls.index(twin.key)] = _join_beside(folded, twin, candidate)
            found.append((twin.key, candidate.key))
    return found


def _stand_beside(folded: Folded, one: Candidate, other: Candidate) -> bool:
    a, b = folded.places[one.key], folded.places[other.key]
    return apart(one, other) and meet(one, other) and not a.holds(b) and not b.holds(a)


def _same_beside(one: Candidate, other: Candidate) -> bool:
    if one.draft.kind == "model_call":
        return models_agree(one.draft, other.draft)
    return calls_agree(one.draft, other.draft) and not arguments_conflict(one.draft.input, other.draft.input)


def _join_beside(folded: Folded, one: Candidate, other: Candidate) -> SpanKey:
    keeper, double = sorted((one, other), key=lambda step: (*_rank(step.draft), step.key))
    folded.join(keeper, double)
    here, there = (folded.inside.get(step.key, step.key) for step in (keeper, double))
    if folded.places[there].depth > folded.places[here].depth:
        folded.inside[keeper.key] = there
    return keeper.key

"""Records of one call that stand side by side: two instrumentations hang their spans under one parent, or each under its own copy of it.

Frameworks that tell by callbacks tell one instrumentation after the other, of the end as of the beginning, so that neither span lasts over
the other; and some know no id of an answer or of a call. Two that recorded one call together record the others together too.
"""

from collections import deque
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.folded import Folded
from spanreplay.replay.rebuilding.same_call import (
    FAILED,
    Candidate,
    Recorder,
    arguments,
    arguments_conflict,
    asked_ids,
    calls_agree,
    last_name,
    lasts_over,
    models_agree,
    said,
    same_answer,
    same_other,
)
from spanreplay.replay.rebuilding.told_twice import fold_told_agents, fold_told_models
from spanreplay.replay.rebuilding.tree import SpanKey

_REMEMBERED: Final = 64
"""Calls with the same id that are compared with a further one."""

Pairs = Collection[frozenset[str]]


def fold_beside(folded: Folded) -> None:
    """Folds model and tool calls that stand side by side, then the agents that they were recorded in twice."""
    copies: list[tuple[SpanKey, SpanKey]] = []
    for evidence in (_identity, _asks, _words):
        groups: dict[tuple[str, object], list[Candidate]] = {}
        for candidate in folded.steps.values():
            known = evidence(candidate.draft)
            if known is not None:
                groups.setdefault((candidate.draft.kind, known), []).append(candidate)
        pairs = _pairs(folded)
        for group in groups.values():
            if len(group) > 1:
                copies += _fold_group(folded, group, pairs)
    pairs = _pairs(folded)
    copies += _fold_unnumbered(folded, pairs)
    copies += _fold_failures(folded, pairs)
    copies += fold_told_models(folded)
    while copies:
        one, other = (folded.outer(key) for key in copies.pop())
        if one is None or other is None or one == other:
            continue
        ours, theirs = folded.steps[one], folded.steps[other]
        if ours.draft.kind == theirs.draft.kind == "agent" and folded.beside(ours, theirs) and same_other(ours, theirs):
            copies.append((one, other))
            folded.join_beside(ours, theirs)
    fold_told_agents(folded)


def _identity(draft: StepDraft) -> object:
    """What only records of one call share."""
    if draft.kind == "model_call":
        return draft.response_id or asked_ids(draft) or None
    return draft.call_id if draft.kind == "tool_call" else None


def _asks(draft: StepDraft) -> object:
    """What records of one model call share of which one has no id of the answer."""
    return (asked_ids(draft) or None) if draft.kind == "model_call" else None


def _words(draft: StepDraft) -> object:
    """What was asked last and answered: it may come twice."""
    if draft.kind != "model_call":
        return None
    asked, answer = tuple(said(draft.input)[-1:]), tuple(said(draft.output))
    return (asked, answer) if asked and answer else None


def _pairs(folded: Folded) -> Pairs:
    """The instrumentations that recorded a call together, two by two: they do so of others too."""
    recorders = (step.recorders for step in folded.steps.values() if len(step.recorders) > 1)
    return {frozenset((_who(one), _who(other))) for each in recorders for one, other in combinations(each, 2)}


def _who(recorder: Recorder) -> str:
    return recorder.scope or recorder.dialect


def _is_proven(one: Candidate, other: Candidate, pairs: Pairs) -> bool:
    """Whether two model calls have one answer; of equal short ones only where both instrumentations recorded others together."""
    if one.draft.kind != "model_call":
        return True
    same = same_answer(one.draft, other.draft)
    if same is not None:
        return same
    return _paired(one, other, pairs)


def _paired(one: Candidate, other: Candidate, pairs: Pairs) -> bool:
    return any(frozenset((_who(ours), _who(theirs))) in pairs for ours in one.recorders for theirs in other.recorders)


def _fold_group(folded: Folded, group: Sequence[Candidate], pairs: Pairs) -> list[tuple[SpanKey, SpanKey]]:
    """Of calls with the same id, in order of their start, each with at most one of every other instrumentation."""
    found: list[tuple[SpanKey, SpanKey]] = []
    calls: deque[SpanKey] = deque(maxlen=_REMEMBERED)
    for candidate in group:
        earlier = (call for key in reversed(calls) if folded.beside(call := folded.steps[key], candidate) and _same_beside(call, candidate))
        twin = next((call for call in earlier if _is_proven(call, candidate, pairs)), None)
        if twin is None:
            calls.append(candidate.key)
        else:
            calls[calls.index(twin.key)] = folded.join_beside(twin, candidate)
            found.append((twin.key, candidate.key))
    return found


def _fold_unnumbered(folded: Folded, pairs: Pairs) -> list[tuple[SpanKey, SpanKey]]:
    """Folds calls of tools whose ids one instrumentation does not know: of the same arguments, at one time."""
    groups: dict[str, list[Candidate]] = {}
    tools = [candidate for candidate in folded.steps.values() if candidate.draft.kind == "tool_call"]
    if all(candidate.draft.call_id is not None for candidate in tools):
        return []
    for candidate in tools:
        asked = arguments(candidate.draft.input)
        if asked is not None:
            groups.setdefault(f"{last_name(candidate.draft.name or '').lower()} {_values(asked)}", []).append(candidate)
    found: list[tuple[SpanKey, SpanKey]] = []
    for group in groups.values():
        numbered = deque((c.key for c in group if c.draft.call_id is not None), maxlen=_REMEMBERED)
        for candidate in (c for c in group if c.draft.call_id is None):
            near = (key for key in numbered if _names_agree(folded.steps[key], candidate))
            twin = next((key for key in near if _at_once(folded, folded.steps[key], candidate, pairs)), None)
            if twin is not None:
                numbered.remove(twin)  # each call has one
                found.append((twin, candidate.key))
                folded.join_beside(folded.steps[twin], candidate)
    return found


def _values(asked: Json) -> str:
    """The values of some arguments, whatever their order: some tracers of LangChain have no names of them."""
    values = asked
    if isinstance(asked, dict):
        values = asked["args"] if asked.keys() == {"args", "kwargs"} and asked["kwargs"] == {} else list(asked.values())
    listed = values if isinstance(values, list) else [values]
    return canonical_json(sorted(value if isinstance(value, str) else canonical_json(value) for value in listed))


def _names_agree(one: Candidate, other: Candidate) -> bool:
    """Whether two calls with the same values of arguments have the same names of them, or one has none."""
    asked = [arguments(call.draft.input) for call in (one, other)]
    named = [value for value in asked if isinstance(value, dict) and value.keys() != {"args", "kwargs"}]
    return len(named) < 2 or canonical_json(named[0]) == canonical_json(named[1])


def _fold_failures(folded: Folded, pairs: Pairs) -> list[tuple[SpanKey, SpanKey]]:
    """Folds calls of a model that failed in one place, of which nothing but the time tells that they are one."""
    failed = [c for c in folded.steps.values() if c.draft.kind == "model_call" and c.draft.outcome in FAILED]
    found: list[tuple[SpanKey, SpanKey]] = []
    left = deque((c.key for c in failed), maxlen=_REMEMBERED)
    while len(left) > 1:
        one = folded.steps[left.popleft()]
        near = (key for key in left if folded.around.get(key) == folded.around.get(one.key))
        twin = next((key for key in near if _at_once(folded, one, folded.steps[key], pairs)), None)
        if twin is not None:
            left.remove(twin)
            found.append((one.key, twin))
            folded.join_beside(one, folded.steps[twin])
    return found


def _at_once(folded: Folded, one: Candidate, other: Candidate, pairs: Pairs) -> bool:
    """Whether two calls can have given the same, and one lasted over the other; callbacks of two that record together end in any order."""
    if not folded.beside(one, other) or not _same_beside(one, other) or one.end_ns is None or other.end_ns is None:
        return False
    gave = [call.draft.output for call in (one, other) if call.draft.output is not None]
    if len(gave) == 2 and canonical_json(gave[0]) != canonical_json(gave[1]):
        return False
    return lasts_over(one, other) or lasts_over(other, one) or _paired(one, other, pairs)


def _same_beside(one: Candidate, other: Candidate) -> bool:
    if one.draft.kind == "model_call":
        return models_agree(one.draft, other.draft)
    return calls_agree(one.draft, other.draft) and not arguments_conflict(one.draft.input, other.draft.input)

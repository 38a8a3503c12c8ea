"""One call that several instrumentations recorded is one step.

Two spans of one call are mostly nested: a framework's around a client's, an agent's around the protocol's. They may also stand side by
side, where two instrumentations hang their spans under the same parent, or each under its own copy of it. What only one of them knows is
added to the other, whose span is counted among the unclassified. A model span around several real calls, which are attempts of one client
or go to one model after another, is no call of its own. Two real calls are never taken for one: see
:mod:`spanreplay.replay.rebuilding.same_call`.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.folded import Folded, places_of, rank
from spanreplay.replay.rebuilding.origin import OWN
from spanreplay.replay.rebuilding.same_call import (
    FAILED,
    Candidate,
    apart,
    arguments,
    arguments_conflict,
    asked_ids,
    calls_agree,
    last_name,
    models_agree,
    same_agent,
    same_answer,
)
from spanreplay.replay.rebuilding.told_twice import fold_told_agents, fold_told_models
from spanreplay.replay.rebuilding.tree import SpanKey

_REMEMBERED: Final = 64
"""Calls with the same id that are compared with a further one."""


def fold(candidates: Iterable[Candidate], around: Mapping[SpanKey, SpanKey]) -> Folded:
    """Finds the doubles.

    Args:
        candidates: what was read as steps in one run, roots among them.
        around: for each of them the nearest candidate around it, if any. No loops.
    """
    ordered = sorted(candidates, key=lambda candidate: (candidate.start_ns, candidate.key))
    steps = {candidate.key: candidate for candidate in ordered}
    folded = Folded(steps=steps, around=around, places=places_of(steps, around))
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
    if kind == "agent" and len(inner) == 1 and outer.key in folded.around and _is_workflow_of(outer, alike[0]):
        return [_fold_two(folded, outer, alike[0])]
    return _fold_others(folded, outer, alike)


def _fold_others(folded: Folded, outer: Candidate, alike: Sequence[Candidate]) -> list[SpanKey]:
    """Folds agents and the rest. One instrumentation may tell of an agent in two spans (ADK 2: the workflow, and the agent in it)."""
    if len(alike) == 1 and _is_shell(outer.draft, alike[0].draft):
        return [_fold_two(folded, outer, alike[0])]
    nested = all(folded.places[one.key].holds(folded.places[other.key]) for one, other in pairwise(alike))
    if nested and all(_same_other(outer, candidate) for candidate in alike):
        key = outer.key
        for candidate in alike:
            key = _fold_two(folded, folded.steps[key], candidate)
        return [key]
    first = alike[0]
    if outer.dialect == OWN and (told := [candidate for candidate in alike if _same_other(outer, candidate)]):
        for candidate in told:  # ours is around hand-offs too, of which they tell agent by agent
            folded.join(folded.steps[outer.key], candidate)
        return [outer.key]
    if len(alike) == 1 and outer.draft.kind == "agent" and not apart(outer, first) and same_agent(outer.draft, first.draft):
        return [outer.key, first.key]
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


def _is_shell(outer: StepDraft, inner: StepDraft) -> bool:
    """Whether a look-up is only what is around the request of it, and tells nothing of its own (the AI SDK 7's embeddings)."""
    if outer.kind != "retrieval" or outer.name != inner.name or outer.outcome != inner.outcome:
        return False
    return outer.input is None and outer.output is None and not outer.usage


def _is_workflow_of(outer: Candidate, inner: Candidate) -> bool:
    """Whether an agent is only what is around the only thing inside it, an agent of its name (ADK 2's ``AgentTool``)."""
    shell = outer.draft.input is None and outer.draft.output is None and not outer.draft.usage
    return shell and outer.draft.name == inner.draft.name and outer.dialect == inner.dialect


def _same_other(outer: Candidate, inner: Candidate) -> bool:
    if not apart(outer, inner):
        return False
    if outer.draft.kind == "agent":
        return same_agent(outer.draft, inner.draft) and not (outer.draft.root and inner.draft.root)
    return outer.draft.name == inner.draft.name and not arguments_conflict(outer.draft.input, inner.draft.input)


def _fold_two(folded: Folded, outer: Candidate, inner: Candidate, *, inner_first: bool = False) -> SpanKey:
    """The span that tells most is the step; else that of a model call nearest to the provider, of others what the agent saw."""
    keeper, other = sorted((outer, inner), key=lambda step: (*rank(step.draft), (step is outer) == inner_first))
    folded.join(keeper, other)
    if outer.draft.kind == "tool_call" and keeper is inner and keeper.draft.name != outer.draft.name:
        kept = folded.steps[keeper.key]
        folded.steps[keeper.key] = replace(kept, draft=replace(kept.draft, name=outer.draft.name))
    return keeper.key


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
    copies += _fold_unnumbered(folded)
    copies += _fold_failures(folded)
    copies += fold_told_models(folded)
    while copies:
        one, other = (folded.outer(key) for key in copies.pop())
        if one is None or other is None or one == other:
            continue
        ours, theirs = folded.steps[one], folded.steps[other]
        if ours.draft.kind == theirs.draft.kind == "agent" and folded.beside(ours, theirs) and _same_other(ours, theirs):
            copies.append((one, other))
            folded.join_beside(ours, theirs)
    fold_told_agents(folded)


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
        twin = next((call for call in earlier if folded.beside(call, candidate) and _same_beside(call, candidate)), None)
        if twin is None:
            calls.append(candidate.key)
        else:
            calls[calls.index(twin.key)] = folded.join_beside(twin, candidate)
            found.append((twin.key, candidate.key))
    return found


def _fold_unnumbered(folded: Folded) -> list[tuple[SpanKey, SpanKey]]:
    """Folds calls of tools whose ids one instrumentation does not know: of the same arguments, and one around the other in time."""
    groups: dict[str, list[Candidate]] = {}
    tools = [candidate for candidate in folded.steps.values() if candidate.draft.kind == "tool_call"]
    if all(candidate.draft.call_id is not None for candidate in tools):
        return []
    for candidate in tools:
        asked = arguments(candidate.draft.input)
        if asked is not None:
            groups.setdefault(f"{last_name(candidate.draft.name or '').lower()} {canonical_json(asked)}", []).append(candidate)
    found: list[tuple[SpanKey, SpanKey]] = []
    for group in groups.values():
        numbered = deque((c.key for c in group if c.draft.call_id is not None), maxlen=_REMEMBERED)
        for candidate in (c for c in group if c.draft.call_id is None):
            twin = next((key for key in numbered if _is_around(folded, folded.steps[key], candidate)), None)
            if twin is not None:
                numbered.remove(twin)  # each call has one
                found.append((twin, candidate.key))
                folded.join_beside(folded.steps[twin], candidate)
    return found


def _fold_failures(folded: Folded) -> list[tuple[SpanKey, SpanKey]]:
    """Folds calls of a model that failed in one place, of which nothing but the time tells that they are one: one lasted over the other."""
    failed = [c for c in folded.steps.values() if c.draft.kind == "model_call" and c.draft.outcome in FAILED]
    found: list[tuple[SpanKey, SpanKey]] = []
    left = deque((c.key for c in failed), maxlen=_REMEMBERED)
    while len(left) > 1:
        one = folded.steps[left.popleft()]
        near = (key for key in left if folded.around.get(key) == folded.around.get(one.key))
        twin = next((key for key in near if _is_around(folded, one, folded.steps[key])), None)
        if twin is not None:
            left.remove(twin)
            found.append((one.key, twin))
            folded.join_beside(one, folded.steps[twin])
    return found


def _is_around(folded: Folded, one: Candidate, other: Candidate) -> bool:
    """Whether one of two calls began before the other, ended after it, and can have given what the other gave."""
    if not folded.beside(one, other) or not _same_beside(one, other) or one.end_ns is None or other.end_ns is None:
        return False
    first, second = sorted((one, other), key=lambda call: (call.start_ns, -(call.end_ns or 0)))
    gave = [call.draft.output for call in (one, other) if call.draft.output is not None]
    return (second.end_ns or 0) <= (first.end_ns or 0) and (len(gave) < 2 or canonical_json(gave[0]) == canonical_json(gave[1]))


def _same_beside(one: Candidate, other: Candidate) -> bool:
    if one.draft.kind == "model_call":
        return models_agree(one.draft, other.draft)
    return calls_agree(one.draft, other.draft) and not arguments_conflict(one.draft.input, other.draft.input)

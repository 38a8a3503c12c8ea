"""One call that several instrumentations recorded is one step.

Two spans of one call are mostly nested: a framework's around a client's, an agent's around the protocol's. Those that stand side by side
are found by :mod:`spanreplay.replay.rebuilding.beside`. What only one of them knows is added to the other, whose span is counted among the
unclassified. A model span around several real calls, which are attempts of one client or go to one model after another, is no call of its
own. Two real calls are never taken for one: see :mod:`spanreplay.replay.rebuilding.same_call`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.beside import fold_beside
from spanreplay.replay.rebuilding.folded import Folded, places_of, rank
from spanreplay.replay.rebuilding.origin import OWN
from spanreplay.replay.rebuilding.same_call import (
    FAILED,
    Candidate,
    apart,
    calls_agree,
    models_agree,
    same_agent,
    same_answer,
    same_other,
)
from spanreplay.replay.rebuilding.tree import SpanKey


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
    fold_beside(folded)
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
    if nested and all(same_other(outer, candidate) for candidate in alike):
        key = outer.key
        for candidate in alike:
            key = _fold_two(folded, folded.steps[key], candidate)
        return [key]
    first = alike[0]
    if outer.dialect == OWN and (told := [candidate for candidate in alike if same_other(outer, candidate)]):
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


def _fold_two(folded: Folded, outer: Candidate, inner: Candidate, *, inner_first: bool = False) -> SpanKey:
    """The span that tells most is the step; else that of a model call nearest to the provider, of others what the agent saw."""
    keeper, other = sorted((outer, inner), key=lambda step: (*rank(step.draft), (step is outer) == inner_first))
    folded.join(keeper, other)
    if outer.draft.kind == "tool_call" and keeper is inner and keeper.draft.name != outer.draft.name:
        kept = folded.steps[keeper.key]
        folded.steps[keeper.key] = replace(kept, draft=replace(kept.draft, name=outer.draft.name))
    return keeper.key

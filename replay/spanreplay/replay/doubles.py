"""One call that several instrumentations recorded is one step.

The span nearest to the call is the step, unless the one around it tells more; what only the other knows is added, and its span is counted
among the unclassified.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.dialect import StepDraft
from spanreplay.replay.drafting import combined
from spanreplay.replay.model import GRADE_ORDER
from spanreplay.replay.tree import SpanKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A span that was read as a step."""

    key: SpanKey
    draft: StepDraft
    dialect: str
    scope: str
    start_ns: int


@dataclass(slots=True, kw_only=True)
class Folded:
    """Steps without their doubles."""

    steps: dict[SpanKey, Candidate]
    absorbed: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """Spans that are no step of their own, and the step that each is part of."""

    def step_of(self, key: SpanKey) -> SpanKey:
        """The step that a span became part of; the span itself if it is one."""
        while key in self.absorbed:
            key = self.absorbed[key]
        return key


def fold(candidates: Sequence[Candidate], around: Mapping[SpanKey, SpanKey]) -> Folded:
    """Finds the doubles.

    Args:
        candidates: the steps of a run.
        around: for each of them the nearest step around it, if any. No loops.
    """
    folded = Folded(steps={candidate.key: candidate for candidate in candidates})
    inside: dict[SpanKey, list[SpanKey]] = {}
    for key, outer in around.items():
        inside.setdefault(outer, []).append(key)
    for key in reversed(_downwards(folded.steps, around, inside)):
        inner = inside.get(key)
        if inner and key in folded.steps:
            wrapper = folded.steps[key]
            twins = _twins(wrapper, [folded.steps[k] for k in inner if k in folded.steps])
            if twins:
                _fold_into(folded, wrapper, twins, around, inside)
    return folded


def _downwards(
    steps: Mapping[SpanKey, Candidate], around: Mapping[SpanKey, SpanKey], inside: Mapping[SpanKey, Sequence[SpanKey]]
) -> list[SpanKey]:
    order = [key for key in steps if key not in around]
    for key in order:
        order.extend(inside.get(key, ()))
    return order


def _twins(outer: Candidate, inner: Sequence[Candidate]) -> list[Candidate]:
    """Those of the steps directly inside a step that are the same call."""
    kind = outer.draft.kind
    alike = [candidate for candidate in inner if candidate.draft.kind == kind]
    if kind == "model_call":
        if alike and all(_models_agree(outer.draft, c.draft) for c in alike) and any(_same_answer(outer.draft, c.draft) for c in alike):
            return alike
    elif kind == "tool_call":
        if len(inner) == 1 and alike and _same_tool_call(outer, alike[0]):
            return alike
    elif kind == "agent" and len(alike) == 1 and outer.dialect != alike[0].dialect and outer.draft.agent:
        return alike if outer.draft.agent == alike[0].draft.agent and outer.draft.name == alike[0].draft.name else []
    return []


def _models(draft: StepDraft) -> set[str]:
    model: Any = draft.versions.get("model")
    return {name for name in (model.get("request"), model.get("response")) if isinstance(name, str)} if isinstance(model, dict) else set()


def _models_agree(one: StepDraft, other: StepDraft) -> bool:
    # Names come with and without provider ("openai/gpt-4o") and date ("gpt-4o-2024-08-06"): the shorter is part of the longer.
    ours, theirs = _models(one), _models(other)
    return not ours or not theirs or any(a in b or b in a for a in ours for b in theirs)


def _same_answer(one: StepDraft, other: StepDraft) -> bool:
    return one.response_id is None or other.response_id is None or one.response_id == other.response_id


def _same_tool_call(outer: Candidate, inner: Candidate) -> bool:
    a, b = outer.draft, inner.draft
    if a.name != b.name or (a.call_id is not None and b.call_id is not None and a.call_id != b.call_id):
        return False
    if b.transport or (a.call_id is not None and a.call_id == b.call_id):
        return True
    apart = outer.dialect != inner.dialect or outer.scope != inner.scope
    return apart and (a.input is None or b.input is None or canonical_json(a.input) == canonical_json(b.input))


def _fold_into(
    folded: Folded,
    outer: Candidate,
    twins: Sequence[Candidate],
    around: Mapping[SpanKey, SpanKey],
    inside: dict[SpanKey, list[SpanKey]],
) -> None:
    matching = [twin for twin in twins if outer.draft.response_id is not None and twin.draft.response_id == outer.draft.response_id]
    chosen = max(matching or twins, key=lambda twin: (twin.start_ns, twin.key))
    keeper, other = chosen, outer
    if len(twins) == 1 and GRADE_ORDER.index(outer.draft.grade) < GRADE_ORDER.index(chosen.draft.grade):
        keeper, other = outer, chosen
    del folded.steps[other.key]
    folded.absorbed[other.key] = keeper.key
    folded.steps[keeper.key] = replace(keeper, draft=combined(keeper.draft, other.draft, f"span {other.key.span_id}"))
    # What was inside the outer span is now inside the step; where the outer span was, all its attempts are.
    others = [key for key in inside[outer.key] if key not in {twin.key for twin in twins}]
    if keeper is outer:
        inside[outer.key] = others + inside.pop(chosen.key, [])
        return
    inside.setdefault(keeper.key, []).extend(others)
    parent = around.get(outer.key)
    if parent is not None:
        siblings = inside[folded.step_of(parent)]
        place = siblings.index(outer.key)
        siblings[place : place + 1] = [twin.key for twin in twins]

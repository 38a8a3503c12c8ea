"""Calls, agents and hand-offs that spanreplay recorded and another instrumentation told too, in spans that do not hold each other.

One that works by callbacks makes none of its spans the current one: ours hang beside them, or beside what is around them. It knows no
response id either. So time tells, one of the two lasting over the other, and what was asked and answered. Two records of our own are two
calls, and so are two of theirs.
"""

from collections.abc import Callable, Iterator
from typing import Final

from spanreplay.replay.rebuilding.folded import Folded
from spanreplay.replay.rebuilding.origin import OWN
from spanreplay.replay.rebuilding.same_call import (
    FAILED,
    Candidate,
    apart,
    asked_ids,
    bare_name,
    lasts_over,
    models_agree,
    said,
    same_agent,
    same_answer,
)
from spanreplay.replay.rebuilding.tree import SpanKey

_AT_ONCE: Final = 64
"""Steps at one time that are compared with a further one."""


def fold_told_models(folded: Folded) -> list[tuple[SpanKey, SpanKey]]:
    """Folds model calls: first those that gave the same, then those that were asked the same and ended alike; gives the pairs."""
    return [pair for same in (_gave_the_same, _asked_the_same) for pair in _fold(folded, "model_call", same)]


def fold_told_agents(folded: Folded) -> None:
    """Folds hand-offs, then agents in the same place, then the spans of workflows between our record of an agent and theirs."""
    _fold(folded, "handoff", lambda one, other: bare_name(one.draft.name) == bare_name(other.draft.name))
    _fold(folded, "agent", lambda one, other: same_agent(one.draft, other.draft) and folded.outer(one.key) == folded.outer(other.key))
    for key in [key for key, step in folded.steps.items() if step.draft.kind == "agent" and step.dialect != OWN]:
        _fold_workflow(folded, key)


def _fold(folded: Folded, kind: str, same: Callable[[Candidate, Candidate], bool]) -> list[tuple[SpanKey, SpanKey]]:
    found: list[tuple[SpanKey, SpanKey]] = []
    running: list[SpanKey] = []
    keys = [key for key, step in folded.steps.items() if step.draft.kind == kind]
    if len({folded.steps[key].dialect == OWN for key in keys}) < 2:  # all are ours, or all are theirs
        return found
    for key in keys:
        step = folded.steps[key]
        running = [other for other in running if other in folded.steps and _goes_on(folded.steps[other], step)][-_AT_ONCE:]
        twin = next((other for other in _twins(folded, running, step) if same(other, step)), None)
        if twin is not None:
            found.append((twin.key, key))
            folded.join_beside(twin, step)
        if key in folded.steps:
            running.append(key)
    return found


def _goes_on(earlier: Candidate, step: Candidate) -> bool:
    return earlier.end_ns is None or earlier.end_ns >= step.start_ns


def _twins(folded: Folded, running: list[SpanKey], step: Candidate) -> Iterator[Candidate]:
    """The steps that may be another record of one, the latest first: of each pair one is our own."""
    for key in reversed(running):
        other = folded.steps[key]
        if (
            (other.dialect == OWN) != (step.dialect == OWN)
            and folded.beside(other, step)
            and (lasts_over(other, step) or lasts_over(step, other))
        ):
            yield other


def _may_be_one(one: Candidate, other: Candidate) -> bool:
    """Whether nothing that two model calls say tells them apart."""
    asked, also = asked_ids(one.draft), asked_ids(other.draft)
    words, others = said(one.draft.output), said(other.draft.output)
    fits = (not asked or not also or asked == also) and (not words or not others or words == others)
    return fits and models_agree(one.draft, other.draft) and same_answer(one.draft, other.draft) is not False


def _gave_the_same(one: Candidate, other: Candidate) -> bool:
    given = (asked_ids(one.draft), said(one.draft.output))
    return any(given) and given == (asked_ids(other.draft), said(other.draft.output)) and _may_be_one(one, other)


def _asked_the_same(one: Candidate, other: Candidate) -> bool:
    ended = (one.draft.outcome in FAILED) == (other.draft.outcome in FAILED)
    words = said(one.draft.input)
    return ended and bool(words) and words == said(other.draft.input) and _may_be_one(one, other)


def _fold_workflow(folded: Folded, key: SpanKey) -> None:
    """Folds an agent that others told of, and the span of theirs around it, with our record of the agent around both."""
    between = folded.outer(key)
    around = None if between is None else folded.outer(between)
    if between is None or around is None or not {key, between, around} <= folded.steps.keys():
        return
    agent, workflow, ours = (folded.steps[one] for one in (key, between, around))
    if ours.dialect != OWN or {workflow.draft.kind, ours.draft.kind} != {"agent"} or agent.recorders.isdisjoint(workflow.recorders):
        return
    if apart(ours, workflow) and same_agent(ours.draft, agent.draft):
        folded.join(ours, agent)
        folded.join(folded.steps[around], workflow, merge=False)

"""Which step of runs that somebody else recorded is this live call?

Their spans know no causal path: a call is found by what it asks, among equal ones by the model call that asked for it and the agent that
made it, and then by order. Which recorded run a live one is, is told
by its calls too. Nothing is concluded from the order of calls that ask for different things: instrumentations do not say which of them
could have been made in another order; a call that does not come is told at the end.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.asking import Request, recorded_request, redacted
from spanreplay.replay.reading.embedded import alike_texts, embeds
from spanreplay.replay.reading.likeness import Likeness, Shows, alike, alike_arguments, shows
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.reasons import CALL_WITHOUT_SPAN, INPUT_ABSENT
from spanreplay.replay.reexecution.before import Company
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.matched import stub_grades
from spanreplay.replay.reexecution.salvage import salvaged
from spanreplay.replay.reexecution.twins import Twins

_STEP: Final = "step"
_OWN_CALLS: Final = frozenset({"tool_call", "agent", "handoff", "decision", "human"})
"""Kinds that are no part of a model call, even where they are inside its span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A recorded step that answers a live call."""

    run: "ForeignRun"
    step: Step
    left_out: frozenset[str] = frozenset()
    """What the call has and the record does not show."""
    by_chance: bool = False
    """Another step could have answered as well, and otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMatch:
    """No recorded step answers a live call."""

    run: "ForeignRun | None"
    step: Step | None = None
    """The one that was expected."""
    likeness: Likeness | None = None
    """How the call differs from it; ``None`` for one that cannot answer."""
    used: Step | None = None
    """One that asked the same and has answered already."""


class ForeignRun:
    """One run of others, prepared for matching. Not locked: the interceptor holds its own lock around every use.

    Args:
        run: the run.
        accept_incomplete: steps whose record is known to lack something answer too, with what there is.
        redact: what is done to live texts before they are compared.
        claims: shared with the other processes of the replay.
    """

    def __init__(self, run: Run, *, accept_incomplete: bool, redact: Callable[[str], str], claims: Claims) -> None:
        self.run, self._goes_on = salvaged(run) if accept_incomplete else (run, frozenset())
        self._stubs = stub_grades(accept_incomplete=accept_incomplete)
        self._accept = accept_incomplete
        self._redact = redact
        self._claims = claims
        self._gone: set[int] = set()
        self._by_seq = {step.seq: step for step in self.run.steps}
        self._of_kind: dict[str, list[Step]] = defaultdict(list)
        self._children: dict[int, list[int]] = defaultdict(list)
        self._asked: dict[int, list[int]] = defaultdict(list)
        for step in self.run.steps:
            if step.kind != "retrieval" or embeds(step):  # a search is no call that this could answer
                self._of_kind[step.kind].append(step)
            if step.parent_seq is not None:
                self._children[step.parent_seq].append(step.seq)
            if step.requested_by is not None and step.kind == "tool_call":
                self._asked[step.requested_by].append(step.seq)
        self._requests: dict[int, Request | None] = {}
        self._shown: Shows | None = None
        self._twins = Twins(self.run)

    @property
    def begun(self) -> bool:
        """Has any of its steps answered?"""
        return bool(self._gone)

    def free(self, kind: Kind, name: str | None, company: Company) -> list[Step]:
        """The steps of a kind, and of a tool, that have not answered yet: the nearest to a call first, and those alike in order."""
        found = [s for s in self._of_kind[kind] if s.seq not in self._gone and (name is None or same_tool(s.name, name))]
        return sorted(found, key=lambda step: company.distance(self.run.run_id, step))

    def left(self, but: Collection[str]) -> Iterator[Step]:
        """The calls of models and tools that have not answered, but those of these outcomes."""
        calls = (*self._of_kind["model_call"], *self._of_kind["tool_call"])
        return (step for step in calls if step.seq not in self._gone and step.outcome not in but)

    def of_kind(self, kind: Kind) -> Sequence[Step]:
        """All steps of a kind; of retrievals those that are calls for embeddings."""
        return self._of_kind.get(kind, ())

    def spent(self, kind: Kind, name: str | None) -> Iterator[Step]:
        """Those that have answered."""
        return (s for s in self._of_kind[kind] if s.seq in self._gone and (name is None or same_tool(s.name, name)))

    def twins(self, around: "ForeignRun", step: Step) -> Iterator[Step]:
        """The steps that have not answered yet, and can as well as a step of a run; see :mod:`spanreplay.replay.reexecution.twins`."""
        return (other for other in self._twins.of(around._twins, step) if other.seq not in self._gone and self.answers(other))

    def owes(self, model: Step, later: Step) -> bool:
        """Is a call that a model call asked for still to come, and was it when a later model call began in the record?"""
        left = (self._by_seq[seq] for seq in self._asked[model.seq] if seq not in self._gone)
        return any(step.ended_ns is None or step.ended_ns > later.started_ns for step in left)

    def take(self, step: Step) -> bool:
        """Use a step; ``False`` if another process has."""
        self._gone.add(step.seq)
        return self._claims.take(_STEP, self.run.run_id, str(step.seq))

    def cover(self, step: Step) -> list[int]:
        """Mark every step inside a step as covered, but for calls of the agent's own; returns the ``seq`` of those that had not answered.

        A body that does not run makes none of its calls. A model call has no body: some recorders put the tools that it asked for inside
        its span, and the agent calls these itself.
        """
        found: list[int] = []
        todo = [(step, seq) for seq in self._children[step.seq]]
        while todo:
            around, seq = todo.pop()
            inner = self._by_seq[seq]
            if around.kind == "model_call" and inner.kind in _OWN_CALLS:
                continue
            if seq not in self._gone:
                found.append(seq)
            todo.extend((inner, child) for child in self._children[seq])
        self._gone.update(found)
        return found

    def answers(self, step: Step, *, without_input: bool = False) -> bool:
        """Can a step answer a call?

        Args:
            step: the step.
            without_input: nothing is asked, so that an input that was not captured may be none.
        """
        bare = without_input and step.grade == "structure" and {r.code for r in step.reasons} == {INPUT_ABSENT}
        return (bare or step.grade in self._stubs) and step.outcome != "unknown"

    def compare_model(self, step: Step, live: Request) -> Likeness | None:
        """How a model call compares with a step; ``None`` where its messages were not captured."""
        recorded = self._request(step)
        return None if recorded is None else alike(recorded, live, self._shows(), cut=self._is_cut(step), goes_on=self.goes_on(step))

    def compare_tool(self, step: Step, live: str | None, signature: inspect.Signature | None) -> Likeness | None:
        """How a tool call compares with a step; ``None`` where its arguments were not captured."""
        if not isinstance(step.input, dict) or "arguments" not in step.input:
            return alike_arguments(None, live, signature) if live in (None, "{}") else None
        given = redacted(step.input["arguments"], self._redact)
        return alike_arguments(given, live, signature, cut=self._is_cut(step), goes_on=self.goes_on(step))

    def compare_embedding(self, step: Step, texts: list[str], model: str) -> Likeness | None:
        """How a call for embeddings compares with a step; ``None`` where the texts or a vector were not captured."""
        return alike_texts(step, texts, model, self._redact)

    def without_span(self, name: str, live: str | None, signature: inspect.Signature | None) -> Step | None:
        """The model call that asked for a tool call which was made, as a later one tells, and is in no span."""
        if all(reason.code != CALL_WITHOUT_SPAN for reason in self.run.grade_reasons):
            return None
        recorded = {step.call_id for step in self._of_kind["tool_call"]}
        for step in self._of_kind["model_call"]:
            for asked in asked_for(step.output):
                if asked.call_id in recorded or not same_tool(asked.name or "", name):
                    continue
                if alike_arguments(redacted(asked.arguments, self._redact), live, signature).equal:
                    return step
        return None

    def model_without_span(self, live: Request) -> Step | None:
        """The step whose messages go on from a model call with its answer, where no span is that call."""
        found = [(step, request) for step in self._of_kind["model_call"] if (request := self._request(step)) is not None]
        unread = len(found) < len(self._of_kind["model_call"])
        if not live.turns or unread or any(alike(request, live, self._shows()).equal for _, request in found):
            return None
        size = len(live.turns)
        for step, request in found:
            answered = request.turns[size : size + 1]
            if (
                answered
                and answered[0].role == "assistant"
                and alike(replace(request, turns=request.turns[:size]), live, self._shows()).equal
            ):
                return step
        return None

    def goes_on(self, step: Step) -> bool:
        """Whether the input of a step is cut, and only its beginning can be compared."""
        return step.seq in self._goes_on

    def _is_cut(self, step: Step) -> bool:
        return self._accept and step.grade == "incomplete"

    def _request(self, step: Step) -> Request | None:
        if step.seq not in self._requests:
            self._requests[step.seq] = recorded_request(step, self._redact)
        return self._requests[step.seq]

    def _shows(self) -> Shows:
        if self._shown is None:
            self._shown = shows(r for r in map(self._request, self._of_kind["model_call"]) if r is not None)
        return self._shown


class Pool:
    """The recorded runs that may answer one live run.

    Args:
        runs: the runs, the likeliest first.
        several: the live run may be several recorded ones, one after the other or at once: nothing names it.
    """

    def __init__(self, runs: Sequence[ForeignRun], *, several: bool) -> None:
        self._runs = list(runs)
        self._several = several
        self._bound: ForeignRun | None = None

    def model_call(self, live: Request, company: Company) -> Match | NoMatch:
        """Find the step of a model call."""
        return self._find("model_call", None, company, lambda run, step: run.compare_model(step, live))

    def tool_call(self, name: str, live: str | None, signature: inspect.Signature | None, company: Company) -> Match | NoMatch:
        """Find the step of a tool call.

        Args:
            name: of the tool.
            live: typed JSON text of its arguments by name.
            signature: of the tool.
            company: what it is near to.
        """
        return self._find("tool_call", name, company, lambda run, step: run.compare_tool(step, live, signature), bare=live in (None, "{}"))

    def embedding(self, texts: list[str], model: str, company: Company) -> Match | NoMatch:
        """Find the step of a call for embeddings."""
        return self._find("retrieval", None, company, lambda run, step: run.compare_embedding(step, texts, model))

    def owes(self, run_id: str, model: Step, later: Step) -> bool:
        """See :meth:`ForeignRun.owes`; the later model call may be another run's."""
        return any(run.owes(model, later) for run in self._runs if run.run.run_id == run_id)

    def without_span(self, name: str, live: str | None, signature: inspect.Signature | None) -> tuple[ForeignRun, Step] | None:
        """The recorded model call, and its run, that asked for a tool call which was made and is in no span."""
        found = ((run, run.without_span(name, live, signature)) for run in self._preferred(frozenset()))
        return next(((run, step) for run, step in found if step is not None), None)

    def model_without_span(self, live: Request) -> tuple[ForeignRun, Step] | None:
        """The recorded step, and its run, whose messages have the answer of a model call that is in no span."""
        found = ((run, run.model_without_span(live)) for run in self._preferred(frozenset()))
        return next(((run, step) for run, step in found if step is not None), None)

    def knows(self, kind: Kind, name: str) -> bool:
        """Is any call of this tool recorded, or any of a model?"""
        steps = (step for run in self._runs for step in run.of_kind(kind))
        return any(kind != "tool_call" or same_tool(step.name, name) for step in steps)

    def _find(
        self,
        kind: Kind,
        name: str | None,
        company: Company,
        compare: Callable[[ForeignRun, Step], Likeness | None],
        *,
        bare: bool = False,
    ) -> Match | NoMatch:
        nearest: list[NoMatch] = []
        runs = list(self._preferred(company.runs))
        for run in runs:
            closest: NoMatch | None = None
            for step in run.free(kind, name, company):
                likeness = compare(run, step)
                if likeness is not None and likeness.equal and not (run.goes_on(step) and closest is not None):
                    if not run.answers(step, without_input=bare):
                        return NoMatch(run=run, step=step)
                    ties = [(run, step), *_ties(run, step, runs, company)]
                    # A task's first call is rather the first of a run than the next of one that has begun.
                    for chosen, first in sorted(ties, key=lambda tie: tie[1].started_ns):
                        if chosen.take(first):
                            self._bound = chosen
                            return Match(run=chosen, step=first, left_out=likeness.left_out, by_chance=len(ties) > 1)
                elif closest is None or (closest.likeness and likeness and likeness.closeness > closest.likeness.closeness):
                    closest = NoMatch(run=run, step=step, likeness=likeness)
            if closest is not None:
                nearest.append(closest)
        if nearest:
            found = nearest[0] if self._bound is not None else max(nearest, key=_closeness)
            able = found.run is not None and found.step is not None and found.run.answers(found.step)
            return found if able else NoMatch(run=found.run, step=found.step)
        for run in runs:
            for step in run.spent(kind, name):
                likeness = compare(run, step)
                if likeness is not None and likeness.equal:
                    return NoMatch(run=run, used=step)
        return NoMatch(run=self._bound or next(iter(self._runs), None))

    def accept(self, missed: NoMatch) -> Match | None:
        """The step that a call missed answers it all the same, as what differs does not count; ``None`` where it has answered already."""
        if missed.run is None or missed.step is None or missed.likeness is None or not missed.run.take(missed.step):
            return None
        self._bound = missed.run
        return Match(run=missed.run, step=missed.step, left_out=missed.likeness.left_out)

    def _preferred(self, before: Collection[str]) -> Iterable[ForeignRun]:
        """The runs that answered before in the same task; the one that answered last; where the live run may be others too, the rest.

        Args:
            before: ids of the runs that answered before.
        """
        if self._bound is None:
            return self._runs
        others = [run for run in self._runs if run is not self._bound] if self._several else []
        found = [self._bound, *sorted(others, key=lambda run: not run.begun)]
        return sorted(found, key=lambda run: run.run.run_id not in before)


def _ties(chosen: ForeignRun, step: Step, runs: Sequence[ForeignRun], company: Company) -> list[tuple[ForeignRun, Step]]:
    """The steps that would answer a call as well as one of some run: nothing tells which of them it is."""
    run_id = chosen.run.run_id
    near = (run_id in company.runs, company.distance(run_id, step))
    return [
        (run, twin)
        for run in runs
        for twin in run.twins(chosen, step)
        if near == (run.run.run_id in company.runs, company.distance(run.run.run_id, twin))
    ]


def _closeness(missed: NoMatch) -> int:
    return 0 if missed.likeness is None else missed.likeness.closeness


class ForeignRecording:
    """All runs of others that a replay is fed from.

    Args:
        runs: the recorded runs, in the order of their start.
        focus: ids of the runs that were asked for, preferred where others fit as well.
        claims: shared with the other processes of the replay.
        accept_incomplete: see :class:`ForeignRun`; also ``redact``.
        redact: what is done to live texts before they are compared.
    """

    def __init__(
        self, runs: Iterable[Run], *, focus: Collection[str], claims: Claims, accept_incomplete: bool, redact: Callable[[str], str]
    ) -> None:
        made = [ForeignRun(run, accept_incomplete=accept_incomplete, redact=redact, claims=claims) for run in runs]
        self._runs = sorted(made, key=lambda r: r.run.run_id not in focus)

    def __bool__(self) -> bool:
        """Are there any?"""
        return bool(self._runs)

    def pool(self, name: str | None) -> Pool:
        """What may answer a live run.

        Args:
            name: of its agent; ``None`` for calls outside every agent run.
        """
        named = sorted(self._runs, key=lambda r: (r.run.agent_name != name, r.begun)) if name is not None else self._runs
        return Pool(named, several=name is None)

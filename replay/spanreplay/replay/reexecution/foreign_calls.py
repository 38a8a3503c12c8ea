"""Answers calls from runs that others recorded, or says what differs."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NoReturn

from spanreplay.boundary.call import Answer
from spanreplay.boundary.layers import leave_to_inner_layers
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.redaction import mask
from spanreplay.replay.isolation.callers import user_line
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.asking import Request, live_request
from spanreplay.replay.reading.embedded import given_texts
from spanreplay.replay.reading.likeness import Likeness
from spanreplay.replay.reexecution import differing, faults, turns
from spanreplay.replay.reexecution.before import Before
from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.diff import ValueDifference, shown
from spanreplay.replay.reexecution.foreign import ForeignRun, Match, NoMatch, Pool
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.replay.reexecution.given import embedding_answer, model_answer, tool_answer
from spanreplay.replay.reexecution.keeping import answered_from
from spanreplay.replay.reexecution.ledger import Difference, DifferenceKind, Ledger
from spanreplay.replay.reexecution.live import Live
from spanreplay.replay.reexecution.matched import Like, unable
from spanreplay.replay.reexecution.unmade import enter_unmade
from spanreplay.semconv import attributes as names

_NAMED: Final = 3
_PASSED: Final = frozenset({"agent", "handoff", "decision"})
"""Kinds that do nothing outside themselves."""
_CALLED: Final = {"tool_call": "call of this tool", "retrieval": "call for embeddings"}
_NO_VECTORS: Final = "it has not every text that was embedded and its vector"
_SPANS: Final = "record a span of every tool call, and export all of them"
_MODEL_SPANS: Final = "record a span of every call of a model, and export all of them: a sampler, a filter or an exporter lost it"


class ForeignCalls:
    """See the module's text. Not locked: the interceptor holds its own lock around every use.

    Args:
        ledger: what is matched is entered there.
        stop: enters a difference and gives what is to be raised.
        live: what of the replay is live.
        begun: told of each call that a recorded run answers, or is expected to.
        comparing: what inputs may differ in.
    """

    def __init__(
        self,
        ledger: Ledger,
        stop: Callable[[Difference], BaseException],
        live: Live | None = None,
        begun: Callable[[LiveStep, Run], None] = lambda step, run: None,
        comparing: Comparing = EXACT,
    ) -> None:
        self._comparing = comparing
        self._live = live
        self._begun = begun
        self._ledger = ledger
        self._stop = stop
        self._turns: dict[int, turns.Turns] = {}
        self._before = Before()

    def release(self) -> None:
        """Nobody waits for a turn any more."""
        for keeper in self._turns.values():
            keeper.release()

    def answer(self, step: LiveStep, pool: Pool) -> Answer | None:
        """Answer a call; ``None`` for one that runs itself.

        Raises:
            BaseException: the record cannot answer it.
        """
        call = step.call
        if call.kind in _PASSED or (call.kind == "io" and names.HTTP_REQUEST_METHOD not in call.attributes):
            return None
        if call.tool_below:
            # What a framework makes of a result or a failure is not what others record of the function: the function is answered.
            leave_to_inner_layers(step)
            return None
        asked = None if step.input is None else mask(step.input)
        request = live_request(asked, call.name) if call.kind == "model_call" and asked is not None else None
        found, ignored = self._let_differ(pool, self._matched(step, pool, asked, request))
        delay = None
        if self._live is not None:
            if found.run is not None:
                self._begun(step, found.run.run)
            course = self._live.course_of_others(step, found.run, found.step if isinstance(found, Match) else None)
            if course is not None and course.delay is None:
                return course.answer
            delay = None if course is None else course.delay
        if isinstance(found, NoMatch):
            self._miss(step, pool, found, asked, request)
        answer = self._answer(step, found.run, found.step)
        if answer is None:
            why = f"it ended as {found.step.outcome}, and what it gave is not told"
            self._refuse(step, found.run.run, found.step, "not_replayable", f"the record cannot answer it: {why}")
        run_id = found.run.run.run_id
        if call.kind == "model_call":
            self._before.answered(step, run_id, found.step)
        self._ledger.enter("run", run=run_id)
        facts: dict[str, Any] = {"not_compared": sorted(found.left_out), "by_chance": found.by_chance}
        if ignored:
            facts |= {"tolerated": True, **Like(by="tolerance", ignored=ignored).facts()}
        self._ledger.enter("used", run=run_id, step=found.step.seq, by="meaning", **facts)
        covered = found.run.cover(found.step)
        if covered:
            self._ledger.enter("covered", run=run_id, steps=covered)
        if step.session.sink is not None:
            step.learn(answered_from(found.run.run, found.step))
        enter_unmade(self._ledger, found.run.run, found.step, answer.error)
        return answer if delay is None else faults.late(answer, delay)

    def _matched(self, step: LiveStep, pool: Pool, asked: str | None, request: Request | None) -> Match | NoMatch:
        call, company = step.call, self._before.of(step, pool.owes)
        if call.kind == "tool_call":
            return pool.tool_call(call.name, asked, call.signature, company)
        if request is not None:
            return pool.model_call(request, company)
        if call.kind == "retrieval" and (texts := _embedded(asked)) is not None:
            return pool.embedding(texts, call.name, company)
        return NoMatch(run=None)

    def _let_differ(self, pool: Pool, found: Match | NoMatch) -> tuple[Match | NoMatch, tuple[ValueDifference, ...]]:
        """The step that a call missed by nothing that counts, and what that is."""
        if isinstance(found, NoMatch) and found.step is not None and found.likeness is not None:
            ignored = differing.let_differ(found.step, found.likeness.recorded, found.likeness.actual, self._comparing)
            accepted = None if ignored is None else pool.accept(found)
            if ignored is not None and accepted is not None:
                return accepted, ignored
        return found, ()

    def _answer(self, step: LiveStep, run: ForeignRun, found: Step) -> Answer | None:
        keeper = self._turns.get(id(run))
        if keeper is None:
            keeper = self._turns[id(run)] = turns.Turns(_ended_before(run.run), lambda: self._ledger.enter("relaxed"))
        duration_ns = 0 if found.ended_ns is None else max(0, found.ended_ns - found.started_ns)
        turn = keeper.turn(found.seq)
        if found.kind == "model_call":
            return model_answer(found, duration_ns=duration_ns, turn=turn)
        if found.kind == "retrieval":
            return embedding_answer(found, duration_ns=duration_ns, turn=turn)
        return tool_answer(found, step.call.annotation, streams=step.call.streams, duration_ns=duration_ns, turn=turn)

    # ---- differences --------------------------------------------------------------------------------------------

    def _miss(self, step: LiveStep, pool: Pool, missed: NoMatch, asked: str | None, request: Request | None) -> NoReturn:
        run, expected = None if missed.run is None else missed.run.run, missed.step
        # A recorded call of this tool that nothing asked for is the one that was made; else it may be in no span.
        unasked = expected is not None and missed.likeness is not None and expected.requested_by is None
        lost = None
        if step.call.kind == "tool_call" and not unasked:
            lost = pool.without_span(step.call.name, asked, step.call.signature)
        if lost is not None:
            detail = (
                f"trace {lost[1].trace_id} has no span of this call, though step {lost[1].seq} asked for it and its answer is in the "
                f"messages: {_SPANS}"
            )
            self._refuse(step, lost[0].run, None, "not_replayable", detail, asked)
        gone = None if request is None else pool.model_without_span(request)
        if gone is not None:
            trace, place = gone[1].trace_id, f"step {gone[1].seq} (span {gone[1].span_id})"
            detail = f"trace {trace} has no span of this call, though its answer is in the messages of {place}: {_MODEL_SPANS}"
            self._refuse(step, gone[0].run, None, "not_replayable", detail, asked)
        if missed.likeness is not None and expected is not None:
            self._differ(step, run, expected, missed.likeness)
        if expected is not None:
            bare = expected.kind == "retrieval" and expected.grade != "structure" and not expected.reasons
            why = f"the record cannot answer it: {_NO_VECTORS}" if bare else unable(expected)
            self._refuse(step, run, expected, "not_replayable", why)
        if missed.used is not None:
            detail = f"step {missed.used.seq} answered it already, and the record has it no second time"
            self._refuse(step, run, None, "already_used", detail, asked)
        detail = "all that is recorded of it has answered already"
        if request is not None and run is not None:
            detail += f"; if more was asked when it was recorded, its span is missing in trace {', '.join(run.trace_ids[:_NAMED])}"
        if not pool.knows(step.call.kind, step.call.name):
            detail = f"the record has no {_CALLED.get(step.call.kind) or step.call.kind.replace('_', ' ')}"
        self._refuse(step, run, None, "never_recorded", detail, asked)

    def _differ(self, step: LiveStep, run: Run | None, expected: Step, likeness: Likeness) -> NoReturn:
        run_id = None if run is None else run.run_id
        raise self._stop(differing.of_meaning(step, expected, run_id, likeness.recorded, likeness.actual, self._comparing)[0])

    def _refuse(
        self, step: LiveStep, run: Run | None, expected: Step | None, kind: DifferenceKind, detail: str, asked: str | None = None
    ) -> NoReturn:
        named = step.call if expected is None else expected
        raise self._stop(
            Difference(
                kind=kind,
                run_id=None if run is None else run.run_id,
                step=None if expected is None else expected.seq,
                name=f"{named.kind} {named.name}",
                actual=None if asked is None else shown(parsed(asked)),
                detail=detail,
                where=user_line(sys._getframe(1)),
            )
        )


def _embedded(asked: str | None) -> list[str] | None:
    document = parsed(asked)
    return given_texts(document["body"]) if isinstance(document, dict) and "body" in document else None


def _ended_before(run: Run) -> dict[int, frozenset[int]]:
    """For each call that ran beside others which one answer asked for too: the one of them that ended before it."""
    order: dict[int, frozenset[int]] = {}
    groups: dict[int, list[Step]] = {}
    for step in run.steps:
        if step.kind == "tool_call" and step.requested_by is not None and step.overlaps and step.ended_ns is not None:
            groups.setdefault(step.requested_by, []).append(step)
    for group in groups.values():
        group.sort(key=lambda s: s.ended_ns or 0)
        for earlier, step in pairwise(group):
            if earlier.seq in step.overlaps:
                order[step.seq] = frozenset({earlier.seq})
    return order

"""The ordered steps of a run, from its sorted spans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.model import Reason, Step
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reasons import CLOCK_SKEW, DOUBLED, MISSING_PARENT
from spanreplay.replay.rebuilding.after_end import after_end
from spanreplay.replay.rebuilding.asked import as_asked
from spanreplay.replay.rebuilding.assembly import Assembly
from spanreplay.replay.rebuilding.links import Links, Request, linked
from spanreplay.replay.rebuilding.order import Moment, corrected_starts, in_order
from spanreplay.replay.rebuilding.origin import OWN
from spanreplay.replay.rebuilding.overlap import Overlaps, overlapping
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.replay.rebuilding.retries import attempts
from spanreplay.replay.rebuilding.skew import skewed
from spanreplay.replay.rebuilding.ties import asked_in_turn, causes_of_ties
from spanreplay.replay.rebuilding.told import as_told
from spanreplay.replay.rebuilding.told_types import typed_as_told
from spanreplay.replay.rebuilding.tree import SpanKey
from spanreplay.replay.rebuilding.unanswered import failed_with_agent
from spanreplay.replay.showing import duration
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

_TRIED: Final = 8
"""Steps around a step that are tried as its parent."""
_COUNTED: Final = frozenset({a.PROCESS_ID, a.STEP_SEQ_START, a.STEP_SEQ_END})
"""Attributes of a span that its process counted."""
_DECISION_OUTCOMES: Mapping[str | None, OutcomeName] = {"allow": "ok", "deny": "rejected", "require_approval": "deferred"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The steps of a run, in order, and how they hang together."""

    steps: tuple[Step, ...]
    placed: Sequence[Placed]
    """One for each step."""
    links: Links
    overlaps: Overlaps[SpanKey]


def ordered(assembly: Assembly) -> Ordered:
    """All steps of a run in total order, with parents, requesters, attempts and overlaps."""
    moments = {moment.key: moment for moment in _moments(assembly)}
    shown = [*assembly.folded.steps, *assembly.decided]
    parents = {key: outer for key in shown if (outer := next(_outers(assembly, key), None)) is not None}
    starts = corrected_starts(moments)
    skew = skewed(assembly.folded.steps.values(), parents, starts)
    early, late = skew.early, skew.late
    moments |= _moved(late, moments, starts)
    causes = (*causes_of_ties(assembly, parents), *((answer, key) for key, answer in early.items()), *late.items())
    laid = _arranged(assembly, moments, parents, causes)
    if ties := tuple(asked_in_turn(laid.steps, laid.links, moments)):
        laid = _arranged(assembly, moments, parents, (*causes, *ties))
    seq, links = laid.seq, laid.links
    inside = ((moments[key], laid.parents.get(key)) for key in seq)
    beside = overlapping([moment if moment.parent == parent else replace(moment, parent=parent) for moment, parent in inside])
    steps = [_asked(step, links.answers.get(step.seq)) for step in laid.steps]
    if any(step.draft.perhaps_text is not None for step in steps):
        steps = typed_as_told(steps, links.call_ids)
    again = attempts(steps)
    made: list[Step] = []
    for step in steps:
        asking = early.get(step.key)
        attempt = again.get(step.seq)
        reasons = [*_reasons(assembly, step), *([links.reasons[step.seq]] if step.seq in links.reasons else [])]
        if asking is not None and links.requested_by.get(step.seq) == seq[asking]:
            reasons.append(_early(step, seq[asking], assembly.folded.steps[asking].start_ns))
        telling = late.get(step.key)
        if telling is not None and step.seq < seq[telling]:
            reasons.append(_late(step, seq[telling], assembly.folded.steps[telling].start_ns))
        if asking is None and telling is None and step.dialect != OWN and (reason := after_end(assembly.forest, step.key)) is not None:
            reasons.append(reason)
        made.append(
            _step(
                step,
                call_id=step.draft.call_id or links.call_ids.get(step.seq),
                requested_by=step.requested_by if step.requested_by is not None else links.requested_by.get(step.seq),
                attempt=step.draft.attempt if attempt is None else attempt.number,
                retry_of=step.retry_of if attempt is None else attempt.retry_of,
                overlaps=tuple(
                    seq[o]
                    for o in beside.beside.get(step.key, ())
                    if o not in (asking, telling) and step.key not in (early.get(o), late.get(o))
                ),
                reasons=tuple(replace(reason, step=step.seq) for reason in reasons),
            )
        )
    return Ordered(steps=tuple(made), placed=steps, links=links, overlaps=beside)


# ---- order -------------------------------------------------------------------------------------------------------


class _Arranged(NamedTuple):
    """The steps in one order, and what follows from it."""

    seq: dict[SpanKey, int]
    parents: Mapping[SpanKey, SpanKey]
    steps: list[Placed]
    links: Links


def _arranged(
    assembly: Assembly,
    moments: Mapping[SpanKey, Moment[SpanKey]],
    outers: Mapping[SpanKey, SpanKey],
    causes: Sequence[tuple[SpanKey, SpanKey]],
) -> _Arranged:
    shown = {*assembly.folded.steps, *assembly.decided}
    seq = {key: number for number, key in enumerate((key for key in in_order(moments.values(), causes) if key in shown), 1)}
    parents = dict(outers)
    for key in [key for key, outer in parents.items() if seq[outer] >= seq[key]]:  # nothing is inside what began later
        parents.pop(key)
        parents.update((key, outer) for outer in islice((o for o in _outers(assembly, key) if seq[o] < seq[key]), 1))
    steps = failed_with_agent(assembly, _told([_place(assembly, key, seq, parents) for key in seq]))
    return _Arranged(seq, parents, steps, linked(steps))


def _moments(assembly: Assembly) -> Iterator[Moment[SpanKey]]:
    clocks: dict[int, str] = {}  # by the resource itself: spans share it
    for key in assembly.group.keys:
        span = assembly.forest.spans[key]
        clock = clocks.get(id(span.resource)) or clocks.setdefault(id(span.resource), _clock(span))
        yield _moment(key, span, assembly.parents.get(key), assembly.draft(key), clock)
    for key, decided in assembly.decided.items():
        around = SpanKey(decided.trace_id, decided.span_id)
        yield Moment(key=key, parent=around, start_ns=decided.time_ns, end_ns=decided.time_ns, tie=key.span_id)


def _moment(key: SpanKey, span: SpanRecord, parent: SpanKey | None, draft: StepDraft | None, clock: str) -> Moment[SpanKey]:
    counted = None if _COUNTED.isdisjoint(span.attributes) else Fields(span.attributes)  # few are, and most spans are no step
    process = draft.process if draft is not None else counted.identifier(a.PROCESS_ID) if counted else None
    return Moment(
        key=key,
        parent=parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        process=process,
        seq_start=counted.integer(a.STEP_SEQ_START) if counted else None,
        seq_end=counted.integer(a.STEP_SEQ_END) if counted else None,
        clock=clock,
        tie=f"{key.span_id}{key.trace_id}",
    )


def _moved(
    late: Mapping[SpanKey, SpanKey], moments: Mapping[SpanKey, Moment[SpanKey]], starts: Mapping[SpanKey, int]
) -> dict[SpanKey, Moment[SpanKey]]:
    """The calls that began too late, and what is inside them, as if they had ended when the model was told their results."""
    inside: dict[SpanKey | None, list[SpanKey]] = {}
    for key, moment in moments.items() if late else ():
        inside.setdefault(moment.parent, []).append(key)
    found: dict[SpanKey, Moment[SpanKey]] = {}
    shifts: dict[SpanKey, int] = {}
    for call, telling in late.items():
        began, ended = moments[call].start_ns, moments[call].end_ns
        behind = starts[call] + (0 if ended is None else ended - began) - starts[telling]
        shifts[telling] = max(shifts.get(telling, 0), behind)
    for call, telling in late.items():
        shift = shifts[telling]
        waiting = [call]
        while waiting:
            key = waiting.pop()
            moment = moments[key]
            end = None if moment.end_ns is None else moment.end_ns - shift
            found[key] = replace(moment, start_ns=moment.start_ns - shift, end_ns=end)
            waiting += (one for one in inside.get(key, ()) if one not in found)
    return found


def _clock(span: SpanRecord) -> str:
    resource = Fields(span.resource.attributes)
    return "/".join(resource.identifier(name) or "" for name in (a.HOST_NAME, a.SERVICE_NAME, a.PROCESS_PID))


def _late(call: Placed, telling: int, started_ns: int) -> Reason:
    after = duration(started_ns, call.started_ns)
    detail = f"by the clock it began {after} after step {telling}, which was told its result: clocks differ, and it is put before that step"
    return Reason(code=CLOCK_SKEW, detail=detail)


def _early(call: Placed, answer: int, started_ns: int) -> Reason:
    early = duration(call.started_ns, started_ns)
    detail = f"by the clock it began {early} before step {answer}, whose answer asks for it: clocks differ, and it is put after that step"
    return Reason(code=CLOCK_SKEW, detail=detail)


def _outers(assembly: Assembly, key: SpanKey) -> Iterator[SpanKey]:
    """The steps inside which a step may have run, best first: the one it names, the one it was put into, the nearest around it."""
    folded = assembly.folded
    if key in assembly.decided:
        decided = assembly.decided[key]
        span: SpanKey | None = SpanKey(decided.trace_id, decided.span_id)
    else:
        span = assembly.span_named(folded.steps[key].draft.parent_span, key.trace_id)
    if span is not None:
        if span == assembly.root:
            return
        outer = assembly.step_at(span)
        if outer is not None and outer != key:
            yield outer
        if key in assembly.decided:
            return
    parent = assembly.parents.get(key)
    if parent is not None and parent != assembly.forest.parents.get(key):
        outer = assembly.step_at(parent)
        if outer is not None and outer != key:
            yield outer
    step: SpanKey | None = key
    for _ in range(_TRIED):
        step = folded.outer(step) if step is not None else None
        if step is None or step not in folded.steps:
            return
        yield step


# ---- what only other steps tell ----------------------------------------------------------------------------------


def _told(steps: Sequence[Placed]) -> list[Placed]:
    told = as_told([step.draft for step in steps])
    return typed_as_told([step if step.draft is draft else replace(step, draft=draft) for step, draft in zip(steps, told, strict=True)])


def _asked(step: Placed, request: Request | None) -> Placed:
    draft = step.draft if request is None else as_asked(step.draft, request.asked)
    return step if draft is step.draft else replace(step, draft=draft)


# ---- steps -------------------------------------------------------------------------------------------------------


def _place(assembly: Assembly, key: SpanKey, seq: Mapping[SpanKey, int], parents: Mapping[SpanKey, SpanKey]) -> Placed:
    outer = parents.get(key)
    parent_seq = None if outer is None else seq[outer]
    if key in assembly.decided:
        return _place_decision(assembly, key, seq[key], parent_seq)
    candidate = assembly.folded.steps[key]
    draft = candidate.draft
    decided = assembly.decided_for.get(key)
    if decided is not None and draft.decision is None:
        draft = replace(draft, decision=decided.record)
    return Placed(
        seq=seq[key],
        parent_seq=parent_seq,
        key=key,
        span=key,
        draft=draft,
        dialect=candidate.dialect,
        agent=draft.agent or assembly.agent_of(key),
        started_ns=candidate.start_ns,
        ended_ns=candidate.end_ns,
        requested_by=_named(assembly, draft.requested_by_span, key, seq),
        retry_of=_named(assembly, draft.retry_of_span, key, seq),
        wrapper=assembly.folded.wrapped.get(key),
    )


def _named(assembly: Assembly, span_id: str | None, near: SpanKey, seq: Mapping[SpanKey, int]) -> int | None:
    key = assembly.span_named(span_id, near.trace_id)
    return None if key is None else seq.get(assembly.folded.step_of(key))


def _place_decision(assembly: Assembly, key: SpanKey, seq: int, parent_seq: int | None) -> Placed:
    decided = assembly.decided[key]
    around = SpanKey(decided.trace_id, decided.span_id)
    draft = StepDraft(
        kind="decision",
        name=decided.tool or a.GEN_AI_TOOL_CALL_DECISION_EVENT,
        grade="semantic",
        outcome=_DECISION_OUTCOMES.get(decided.outcome, "unknown"),
        call_id=decided.call_id,
        decision=decided.record,
    )
    return Placed(
        seq=seq,
        parent_seq=parent_seq,
        key=key,
        span=around,
        draft=draft,
        dialect=assembly.readings[around].dialect or "gen_ai" if around in assembly.readings else "gen_ai",
        agent=assembly.agent_of(around),
        started_ns=decided.time_ns,
        ended_ns=decided.time_ns,
    )


def _reasons(assembly: Assembly, step: Placed) -> Iterator[Reason]:
    yield from step.draft.reasons
    copies = assembly.forest.copies.get(step.key)
    if copies:
        yield Reason(code=DOUBLED, detail=f"its span came under another id too (span {copies[0].span_id}), alike in all else; counted once")
    missing = assembly.forest.orphans.get(step.key)
    if missing is not None:
        yield Reason(code=MISSING_PARENT, detail=f"its parent, span {missing}, is not here; kept under the run")
    if step.key in assembly.placing.reasons:
        yield assembly.placing.reasons[step.key]


def _step(
    step: Placed,
    *,
    call_id: str | None,
    requested_by: int | None,
    attempt: int,
    retry_of: int | None,
    overlaps: tuple[int, ...],
    reasons: tuple[Reason, ...],
) -> Step:
    draft = step.draft
    return Step(
        seq=step.seq,
        kind=draft.kind,
        name=draft.name,
        call_id=call_id,
        trace_id=step.span.trace_id,
        span_id=step.span.span_id,
        parent_seq=step.parent_seq,
        requested_by=requested_by,
        attempt=attempt,
        retry_of=retry_of,
        agent=step.agent,
        input=draft.input,
        output=draft.output,
        outcome=draft.outcome,
        error=draft.error,
        usage=draft.usage,
        effect=draft.effect,
        action_id=draft.action_id,
        decision=draft.decision,
        target=draft.target,
        resources=draft.resources,
        versions=draft.versions,
        started_ns=step.started_ns,
        ended_ns=step.ended_ns,
        overlaps=overlaps,
        grade=draft.grade,
        reasons=reasons,
        dialect=step.dialect,
        conversation_id=draft.session_id,
        every_setting=draft.every_setting,
        path=draft.path,
        process=draft.process,
        seq_fork=draft.seq_fork,
        clock_reads=draft.clock_reads,
        orders=draft.orders,
        passed=draft.passed,
        seq_start=draft.seq_start,
        seq_end=draft.seq_end,
        turn=draft.turn,
        typed_input=draft.typed_input,
        typed_result=draft.typed_result,
        typed_error=draft.typed_error,
        typed_items=draft.typed_items,
        requested_in=draft.requested_in,
        answered_from=draft.answered_from,
        stands_for=draft.stands_for,
        changed=draft.changed,
        typed_left=draft.typed_left,
        typed_sent=draft.typed_sent,
        injected=draft.injected,
        wire=draft.wire,
    )

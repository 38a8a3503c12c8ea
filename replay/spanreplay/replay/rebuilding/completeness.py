"""Is the record of a run whole? What is missing or cut, by span and field, and what to change so that the next one is whole.

A gap is evidence that something was there and is not: a value cut on its way, attributes that a limit dropped, a span that others name and
nobody has, a call without an end. What was only rounded or rewritten is no gap; the fidelity report of the source tells it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.replay.inputs.limits import Limits
from spanreplay.replay.inputs.source_losses import LOSSES
from spanreplay.replay.inputs.survey import Survey, advice_for, texts_of
from spanreplay.replay.model import Json, Reason, Run, Step
from spanreplay.replay.reasons import (
    ANSWER_WITHOUT_SPAN,
    AS_ASKED,
    AS_TOLD,
    CALL_NOT_RUN,
    CALL_WITHOUT_SPAN,
    CONTENT_ELSEWHERE,
    CUT,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    EFFECT_UNKNOWN,
    EMPTY_MESSAGE,
    INPUT_ABSENT,
    LOG_WITHOUT_SPAN,
    MISSING_PARENT,
    NEVER_ENDED,
    OUTPUT_ABSENT,
    RECORDS_DROPPED,
    SOURCE_LOSS,
    UNREADABLE,
    WIRE_INCOMPLETE,
)
from spanreplay.replay.rebuilding.lost_answers import Given, lost_answers
from spanreplay.replay.rebuilding.lost_between import lost_between
from spanreplay.replay.rebuilding.origin import told_by_others
from spanreplay.replay.rebuilding.tree import SpanKey
from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import Record, SpanRecord

DROPPED_LINKS: Final = "dropped-links"
NOTHING_RECORDED: Final = "nothing-recorded"
REMOTE_PARENT: Final = 0x200
"""Span flag: the parent is known to be in another process (``SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK``, opentelemetry-proto)."""

_OF_STEPS: Final = frozenset(
    {CUT, NEVER_ENDED, EFFECT_UNKNOWN, WIRE_INCOMPLETE, INPUT_ABSENT, OUTPUT_ABSENT, CONTENT_ELSEWHERE, EMPTY_MESSAGE}
)
_OF_RUNS: Final = frozenset({RECORDS_DROPPED, SOURCE_LOSS, UNREADABLE, LOG_WITHOUT_SPAN, CALL_WITHOUT_SPAN})
_PASSED_THROUGH: Final = frozenset({"agent", "handoff", "decision", "human"})
"""Kinds that a replay never answers: that nobody captured their content is no gap."""
_CAPTURE: Final = "switch content capture on where it is recorded (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT or the like)"
_LEFT_OUT: Final = "content is captured, and the instrumentation left out that of this call: use a newer version of it, or add another"
_IN_LOGS: Final = f"import the log records too, where instrumentations in the GenAI conventions may write the content; else {_CAPTURE}"
_LIMIT: Final = "raise OTEL_SPAN_{}_COUNT_LIMIT where it is recorded (empty means no limit)"
_ADVICE: Final[Mapping[str, str]] = {
    INPUT_ABSENT: _CAPTURE,
    OUTPUT_ABSENT: _CAPTURE,
    EMPTY_MESSAGE: "use an instrumentation, or a newer version of it, that keeps messages of several parts, such as those with a picture",
    CONTENT_ELSEWHERE: "keep the uploaded files with the trace",
    NEVER_ENDED: "the process died or was not flushed: shut the tracer provider down at exit",
    EFFECT_UNKNOWN: "look at what it acts on before it is done again",
    MISSING_PARENT: "export every span of a trace: sample whole traces only, filter no spans in the Collector, one back end for all",
    LOG_WITHOUT_SPAN: "export the spans with the logs",
    ANSWER_WITHOUT_SPAN: "record a span of every call of a model, and export all of them: a sampler, a filter or an exporter lost it",
    DROPPED_ATTRIBUTES: _LIMIT.format("ATTRIBUTE"),
    DROPPED_EVENTS: _LIMIT.format("EVENT"),
    DROPPED_LINKS: _LIMIT.format("LINK"),
    NOTHING_RECORDED: "install spanreplay for the interpreter that runs the agent; spanreplay doctor -- CMD says what it would record",
}
_MASKED: Final = "redaction.masked.count"
"""On a span of which a Collector's redaction processor has masked something (its ``summary: info``)."""
_MASK: Final = "****"
_TRIMMED: Final = (" bytes in the replay copy", "; the replay copy has them")
_REPLAY_COPY: Final = "a Collector masked or trimmed it for people to look at, as gateway.yaml does; import its replay copy instead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Something of a run that is missing or cut."""

    code: str
    detail: str
    run_id: str
    step: int | None = None
    """``seq`` of the step, where the span is one."""
    trace_id: str | None = None
    span_id: str | None = None
    span_name: str | None = None
    field: str | None = None
    """Attribute; ``EVENT/ATTRIBUTE`` for one of an event."""
    limit: int | None = None
    """Bytes at which the value was cut."""
    advice: str = ""

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {
            "code": self.code,
            "detail": self.detail,
            "step": self.step,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "span": self.span_name,
            "field": self.field,
            "limit": self.limit,
            "advice": self.advice,
        }


def gaps(runs: Sequence[Run], records: Iterable[Record]) -> dict[str, list[Gap]]:
    """What is missing or cut, by run id; a run that is whole has an empty list.

    Args:
        runs: rebuilt from the records.
        records: at least every span of the runs' traces.
    """
    spans = {SpanKey(r.trace_id, r.span_id): r for r in records if isinstance(r, SpanRecord)}
    survey = Survey()
    for span in spans.values():
        survey.see(span)
    limits = survey.limits()
    steps = {SpanKey(step.trace_id, step.span_id): (run, step.seq) for run in runs for step in run.steps}
    of_trace = {trace: run for run in reversed(runs) for trace in run.trace_ids}
    found: dict[str, list[Gap]] = {run.run_id: list(_of_run(run, spans)) for run in runs}
    given = Given()
    for each in runs:
        given.add(each)
    for each in runs:
        found[each.run_id] += _lost(each, given, spans)
    for each, step, reason in lost_between(runs, given):
        found[each.run_id].append(_gap(each, step, reason, spans))
    told = {(gap.trace_id, gap.span_id, gap.field) for listed in found.values() for gap in listed}
    others = {key for run in runs for key in _told(run)}
    for key, span in spans.items():
        if key in others:
            continue
        run, seq = steps.get(key, (of_trace.get(key.trace_id), None))
        if run is not None:
            more = _of_span(run, seq, span, spans, limits)
            found[run.run_id] += (gap for gap in more if gap.field is None or (*key, gap.field) not in told)
    reported = {key.trace_id for key, span in spans.items() if PROCESS_ID in span.attributes}
    for run in runs:
        if run.is_command and not run.steps and reported.isdisjoint(run.trace_ids):
            detail = "nothing was recorded: no Python process of the command reported in"
            found[run.run_id].append(Gap(code=NOTHING_RECORDED, detail=detail, run_id=run.run_id, advice=_ADVICE[NOTHING_RECORDED]))
    return {run_id: _once(listed) for run_id, listed in found.items()}


def _lost(run: Run, given: Given, spans: Mapping[SpanKey, SpanRecord]) -> Iterator[Gap]:
    for step, reason in lost_answers(run, given):
        yield _gap(run, step, reason, spans)


def _told(run: Run) -> Iterator[SpanKey]:
    """The spans of steps that no replay of the run waits for: what they lack, it does not."""
    told = told_by_others(run)
    return (SpanKey(step.trace_id, step.span_id) for step in run.steps if step.seq in told)


def _of_run(run: Run, spans: Mapping[SpanKey, SpanRecord]) -> Iterator[Gap]:
    for reason in run.grade_reasons:
        if reason.step is None and reason.code in _OF_RUNS:
            yield Gap(code=reason.code, detail=reason.detail, run_id=run.run_id, advice=_ADVICE.get(reason.code, ""))
    last = max((step.seq for step in run.steps if step.kind == "model_call"), default=-1)
    told = told_by_others(run)
    written = _written(run, spans)
    for step in run.steps:
        if step.seq in told:
            continue
        for reason in step.reasons:
            absent = reason.code in (INPUT_ABSENT, OUTPUT_ABSENT)
            stops = reason.code == CALL_NOT_RUN and step.seq >= last
            if (reason.code in _OF_STEPS or stops) and not (absent and step.kind in _PASSED_THROUGH):
                yield _gap(run, step, reason, spans, written)


def _gap(run: Run, step: Step, reason: Reason, spans: Mapping[SpanKey, SpanRecord], written: Collection[tuple[str, str, str]] = ()) -> Gap:
    span = spans.get(SpanKey(step.trace_id, step.span_id))
    scope = "" if span is None else span.scope.name
    advice = _LEFT_OUT if (scope, step.kind, reason.code) in written else _advice(reason, step, span)
    return Gap(
        code=reason.code,
        detail=reason.detail,
        run_id=run.run_id,
        step=step.seq,
        trace_id=step.trace_id,
        span_id=step.span_id,
        span_name=step.name if span is None else span.name,
        field=reason.field,
        limit=reason.size,
        advice=advice,
    )


def _written(run: Run, spans: Mapping[SpanKey, SpanRecord]) -> set[tuple[str, str, str]]:
    """What is recorded of a run: the scope that wrote it, the kind of the step, and the code of its absence."""
    found: set[tuple[str, str, str]] = set()
    for step in run.steps:
        span = spans.get(SpanKey(step.trace_id, step.span_id))
        if span is not None and all(reason.code not in (AS_TOLD, AS_ASKED) for reason in step.reasons):
            sides = ((INPUT_ABSENT, step.input), (OUTPUT_ABSENT, step.output))
            found.update((span.scope.name, step.kind, code) for code, view in sides if view is not None)
    return found


def _advice(reason: Reason, step: Step, span: SpanRecord | None) -> str:
    if reason.code == CUT and span is not None and reason.field is not None and _of_a_view(span, reason.field):
        return _REPLAY_COPY
    if reason.code == CUT and reason.size is not None:
        return advice_for(reason.size)
    if reason.code in (INPUT_ABSENT, OUTPUT_ABSENT) and step.kind == "model_call" and step.dialect == "gen_ai":
        return _IN_LOGS
    return _ADVICE.get(reason.code, "")


def _of_a_view(span: SpanRecord, name: str) -> bool:
    """Whether a value bears the mark of a Collector's redaction processor, or of the shipped gateway's ``transform/trim``."""
    value = span.attributes.get(name)
    if not isinstance(value, str):
        return False
    return (_MASKED in span.attributes and _MASK in value) or any(mark in value for mark in _TRIMMED)


def _of_span(
    run: Run,
    seq: int | None,
    span: SpanRecord,
    spans: Mapping[SpanKey, SpanRecord],
    limits: Limits,
) -> Iterator[Gap]:
    where: dict[str, Any] = {
        "run_id": run.run_id,
        "step": seq,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "span_name": span.name,
    }
    for text in texts_of(span):
        reached = limits.reached(text.value, text.size)
        if text.broken or reached is not None:
            how = "stops in the middle" if text.broken else "has just the size at which others end"
            size, unit = reached or (text.size, "bytes")
            detail = f"{text.name} {how}: {size} {unit} are left"
            yield Gap(code=CUT, detail=detail, field=text.name, limit=size, advice=advice_for(size), **where)
    for code, count, what in (
        (DROPPED_ATTRIBUTES, span.dropped_attributes, "attributes"),
        (DROPPED_EVENTS, span.dropped_events, "events"),
        (DROPPED_LINKS, span.dropped_links, "links"),
    ):
        if count:
            yield Gap(code=code, detail=dropped(count, what), advice=_ADVICE[code], **where)
    if span.end_ns is None and seq is None:
        yield Gap(code=NEVER_ENDED, detail="started, and no end was recorded", advice=_ADVICE[NEVER_ENDED], **where)
    parent = span.parent_span_id
    if parent is not None and SpanKey(span.trace_id, parent) not in spans and not span.flags & REMOTE_PARENT:
        yield Gap(code=MISSING_PARENT, detail=f"its parent, span {parent}, is not here", advice=_ADVICE[MISSING_PARENT], **where)


def dropped(count: int, what: str) -> str:
    """For people: how many attributes, events or links the SDK that recorded a span dropped."""
    return f"{count} {what} were dropped where it was recorded"


def _once(listed: Iterable[Gap]) -> list[Gap]:
    return sorted(dict.fromkeys(listed), key=lambda gap: (gap.step is None, gap.step or 0))


def losses(fidelity: Iterable[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """The entries of a source's fidelity report that say that something of the input is missing."""
    return [entry for entry in fidelity if entry.get("code") in LOSSES]

"""Which spans make up which run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanreplay.replay.model import Reason
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import OWN, Dialect, StepDraft
from spanreplay.replay.reading.drafting import filled, lacks
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.rejoined import rejoined
from spanreplay.replay.reasons import UNREADABLE
from spanreplay.replay.rebuilding.at_limit import cut_contents, limits_of
from spanreplay.replay.rebuilding.gathering import gathered
from spanreplay.replay.rebuilding.tree import Forest, SpanKey
from spanreplay.semconv.attributes import RUN_ID
from spanreplay.spans.record import LogRecord, SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the dialects made of one span."""

    dialect: str | None = None
    draft: StepDraft | None = None
    fault: Reason | None = None
    """Why a claimed span could not be read."""


_NOTHING: Final = Reading()
"""Of a span that no dialect claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The spans of one run, in order of appearance."""

    run_id: str
    keys: tuple[SpanKey, ...]
    named: bool
    """The spans say which run they belong to; else a trace is taken for a run."""
    joined: str | None = None
    """Why spans of several traces are one run, where that was asked for."""


def read_spans(forest: Forest) -> Mapping[SpanKey, Reading]:
    """Every span, read by the dialects that claim it when it is asked for.

    A span that no dialect can read is kept as it is: it never costs the others.
    """
    return _Readings(forest)


class _Readings(Mapping[SpanKey, Reading]):
    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._told = gathered(forest)
        self._limits = limits_of(forest.spans.values())
        self._known: dict[SpanKey, Reading] = {}

    def __getitem__(self, key: SpanKey) -> Reading:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._read(key)
        return known

    def __iter__(self) -> Iterator[SpanKey]:
        return iter(self._forest.spans)

    def __len__(self) -> int:
        return len(self._forest.spans)

    def _read(self, key: SpanKey) -> Reading:
        span = self._forest.spans[key]
        seen, logs, part = self._told.get(key) or (span, self._forest.logs.get(key, ()), False)
        reading = _NOTHING if part else _reading(seen, logs)
        if not self._limits or reading.draft is None:
            return reading
        return _as_cut(reading, cut_contents(span, reading.draft, self._limits))


def _reading(span: SpanRecord, logs: Sequence[LogRecord]) -> Reading:
    span = rejoined(span)
    full, cut = with_content(span, logs) if span.events or logs else (span, ())
    claimed = claimants(full)
    if not claimed:
        return _NOTHING
    first, *others = claimed
    reading = _read_as(first, full, logs)
    for other in others if first.PRIORITY > OWN else ():
        if reading.draft is None or not lacks(reading.draft):
            break
        more = _read_as(other, full, logs).draft
        if more is not None and more.kind == reading.draft.kind:
            reading = replace(reading, draft=filled(reading.draft, more))
    return _as_cut(reading, cut)


def _as_cut(reading: Reading, cut: Sequence[Reason]) -> Reading:
    if not cut or reading.draft is None:
        return reading
    return replace(reading, draft=replace(reading.draft, grade="incomplete", reasons=(*reading.draft.reasons, *cut)))


def _read_as(dialect: Dialect, span: SpanRecord, logs: Sequence[LogRecord]) -> Reading:
    try:
        return Reading(dialect=dialect.NAME, draft=dialect.read(span, logs))
    except Exception as error:  # noqa: BLE001 — a reader of other people's data may be wrong about it in any way
        detail = f"span {span.span_id} ({span.name}) could not be read as {dialect.NAME}: {type(error).__name__}: {error}"
        return Reading(dialect=dialect.NAME, fault=Reason(code=UNREADABLE, detail=detail))


def group(forest: Forest, readings: Mapping[SpanKey, Reading]) -> list[Group]:
    """All spans, each in exactly one run, the runs in order of appearance.

    Spans that name a run belong to it, in whatever trace or process they are. Others belong to the run of the nearest span around them
    that names one, to the only run of their trace, or, in a trace without named runs, to the run that the trace is.
    """
    naming = ((key, span) for key, span in forest.spans.items() if RUN_ID in span.attributes)
    named = {key: _kept(run) for key, span in naming if (run := Fields(span.attributes).identifier(RUN_ID)) is not None}
    of_trace: dict[str, dict[str, None]] = {}
    for key, run in named.items():
        of_trace.setdefault(key.trace_id, {})[run] = None
    inherited = _inherited(forest, named)
    members: dict[tuple[str, bool], list[SpanKey]] = {}
    left: dict[str, list[SpanKey]] = {}
    for key in forest.spans:
        runs = of_trace.get(key.trace_id, {})
        if key in inherited:
            members.setdefault((inherited[key], True), []).append(key)
        elif len(runs) == 1:
            members.setdefault((next(iter(runs)), True), []).append(key)
        elif not runs:
            members.setdefault((key.trace_id, False), []).append(key)
        else:
            left.setdefault(key.trace_id, []).append(key)
    for trace_id, keys in left.items():
        drafts = [readings[key].draft for key in keys]
        if any(draft is not None and draft.run is None for draft in drafts):
            members.setdefault((trace_id, False), []).extend(keys)
        else:  # only what is around several runs: shown with the first of them
            members[next(iter(of_trace[trace_id])), True].extend(keys)
    return [Group(run_id=run, keys=tuple(keys), named=own) for (run, own), keys in members.items()]


def _kept(run_id: str) -> str:
    """An id that the store takes: without lone surrogates."""
    return run_id if run_id.isascii() else run_id.encode("utf-8", "replace").decode()


def _inherited(forest: Forest, named: Mapping[SpanKey, str]) -> dict[SpanKey, str]:
    runs = dict(named)
    nothing: set[SpanKey] = set()
    for start in forest.spans:
        walked: list[SpanKey] = []
        here: SpanKey | None = start
        while here is not None and here not in runs and here not in nothing:
            walked.append(here)
            here = forest.parents.get(here)
        if here is not None and here in runs:
            runs.update(dict.fromkeys(walked, runs[here]))
        else:
            nothing.update(walked)
    return runs

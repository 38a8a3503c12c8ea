"""Calls of a model that two instrumentations told in traces of their own, so that each is a step of two runs.

Two instrumentors, or two tracer providers, without a common context write one call twice, and nothing around both says so. What they say
does: the same was asked and answered (or the answer has one id) by one model, in two traces, one lasting over the other. It is only told,
never joined by itself: the runs stay as they are.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reading.naming import same_model
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.same_call import said
from spanreplay.replay.rebuilding.tree import SpanKey
from spanreplay.replay.showing import short_id
from spanreplay.semconv.attributes import GEN_AI_RESPONSE_ID
from spanreplay.spans.record import Record, SpanRecord

SAME_CALLS: Final = "same-calls"
_COMPARED: Final = 16
"""Calls that say the same and are compared with a further one."""
_ADVICE: Final = (
    "give both instrumentations one tracer provider, so that one trace has both and each call counts once, or turn one of them off"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SameCalls:
    """Two runs that hold records of the same calls."""

    runs: tuple[str, str]
    calls: int
    """How many."""
    advice: str = _ADVICE

    @property
    def detail(self) -> str:
        """For people."""
        one, other = map(short_id, self.runs)
        calls = "1 call of a model is" if self.calls == 1 else f"{self.calls} calls of a model are"
        return f"{calls} in run {one} and in run {other}: two instrumentations told them, each in a trace of its own"

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {"code": SAME_CALLS, "detail": self.detail, "runs": list(self.runs), "calls": self.calls, "advice": self.advice}


@dataclass(frozen=True, slots=True)
class _Call:
    run: str
    step: Step
    recorder: tuple[str, str]
    response_id: str | None

    def is_told_by(self, other: "_Call") -> bool:
        """Whether the other may be a record of the same call, as far as both say the same."""
        if self.run == other.run or self.step.trace_id == other.step.trace_id or not same_model(self.step.name, other.step.name):
            return False
        if self.response_id is not None and other.response_id is not None:
            return self.response_id == other.response_id and (_lasts_over(self.step, other.step) or _lasts_over(other.step, self.step))
        return self.recorder != other.recorder and (_lasts_over(self.step, other.step) or _lasts_over(other.step, self.step))


def same_calls(runs: Sequence[Run], records: Iterable[Record]) -> list[SameCalls]:
    """The pairs of runs that hold the same calls, in order of the runs.

    Args:
        runs: rebuilt from the records.
        records: at least every span of the runs' traces.
    """
    if len(runs) < 2:
        return []
    spans = {SpanKey(r.trace_id, r.span_id): r for r in records if isinstance(r, SpanRecord)}
    alike: dict[Hashable, list[_Call]] = {}
    found: dict[tuple[str, str], int] = {}
    for run in runs:
        for step in run.steps:
            says = _says(step) if step.kind == "model_call" else None
            if says is None:
                continue
            span = spans.get(SpanKey(step.trace_id, step.span_id))
            call = _Call(
                run.run_id,
                step,
                (step.dialect, "" if span is None else span.scope.name),
                None if span is None else Fields(span.attributes).identifier(GEN_AI_RESPONSE_ID),
            )
            known = alike.setdefault(says, [])
            twin = next((other for other in known[-_COMPARED:] if call.is_told_by(other)), None)
            if twin is not None:
                pair = (twin.run, call.run)
                found[pair] = found.get(pair, 0) + 1
            known.append(call)
    return [SameCalls(runs=pair, calls=count) for pair, count in found.items()]


def _says(step: Step) -> Hashable | None:
    """What was asked last and what was answered; ``None`` where the answer says nothing."""
    words, calls = tuple(said(step.output)), tuple(_asked(step.output))
    if not words and not calls:
        return None
    return tuple(said(step.input)[-1:]), words, calls


def _asked(output: Json) -> Iterator[tuple[str | None, str | None]]:
    return ((asked.call_id, asked.name) for asked in asked_for(output))


def _lasts_over(outer: Step, inner: Step) -> bool:
    ends = NEVER if outer.ended_ns is None else outer.ended_ns
    return outer.started_ns <= inner.started_ns and inner.ended_ns is not None and inner.ended_ns <= ends

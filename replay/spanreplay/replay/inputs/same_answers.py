"""Answers of a model that an input has in two traces at one time: two instrumentations told one call, each in a trace of its own.

An answer has an id of its provider's. A cache, or a recorded server, gives one again later; that is another call.
"""

from typing import Final

from spanreplay.replay.inputs.survey import Finding
from spanreplay.semconv.attributes import GEN_AI_RESPONSE_ID
from spanreplay.spans.record import Record, SpanRecord

SAME_ANSWER: Final = "same-answer"
_REMEMBERED: Final = 100_000
_ADVICE: Final = "give both instrumentations one tracer provider, or turn one of them off; spanreplay verify names the runs"


class SameAnswers:
    """Sees every record of an input once. Memory is bounded: of a very large input the first answers are compared."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int, int]] = {}
        self._spans = 0

    def see(self, record: Record) -> None:
        """Looks at one record."""
        answer = record.attributes.get(GEN_AI_RESPONSE_ID)
        if type(answer) is not str or not isinstance(record, SpanRecord) or record.end_ns is None:
            return
        known = self._known.get(answer)
        if known is None:
            if answer and len(self._known) < _REMEMBERED:
                self._known[answer] = record.trace_id, record.start_ns, record.end_ns
            return
        trace_id, start, end = known
        if trace_id != record.trace_id and max(start, record.start_ns) < min(end, record.end_ns):
            self._spans += 1

    def findings(self) -> list[Finding]:
        """What was seen."""
        if not self._spans:
            return []
        detail = "tells of a call that another trace here tells of too: two instrumentations, each in a trace of its own"
        return [Finding(code=SAME_ANSWER, detail=detail, advice=_ADVICE, spans=self._spans)]

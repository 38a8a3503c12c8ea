"""Steps that began after what they are inside of had ended, by the clock: clocks differ, or the program went on without waiting.

Where ids or results contradict the clock, the step is moved (:mod:`spanreplay.replay.rebuilding.skew`). Where nothing does, it keeps the
place that the clock gives it, and says that this is all there is.
"""

from typing import Final

from spanreplay.replay.model import Reason
from spanreplay.replay.reasons import AFTER_END
from spanreplay.replay.rebuilding.tree import Forest, SpanKey
from spanreplay.replay.showing import duration
from spanreplay.spans.record import KIND_PRODUCER

_OUTWARDS: Final = 16
"""Spans around a step that are looked at."""


def after_end(forest: Forest, key: SpanKey) -> Reason | None:
    """What to say of a step that began after a span around it had ended; nothing of one that was sent to a queue."""
    span = forest.spans.get(key)
    around = forest.parents.get(key)
    for _ in range(_OUTWARDS):
        if span is None or around is None:
            return None
        outer = forest.spans[around]
        if outer.kind == KIND_PRODUCER:
            return None
        if outer.end_ns is not None and outer.start_ns < outer.end_ns < span.start_ns:
            after = duration(outer.end_ns, span.start_ns)
            detail = f"it began {after} after span {outer.span_id} ({outer.name}) around it had ended: its place is by the clock alone"
            return Reason(code=AFTER_END, detail=detail)
        around = forest.parents.get(around)
    return None

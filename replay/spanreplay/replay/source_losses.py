"""What an input says or shows that it has lost, by the traces that the loss touches.

Where the trace is known, it is that one; a loss of unknown place may be of any trace in the same file, so it is of all of them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from spanreplay.replay.model import Reason
from spanreplay.replay.reasons import SOURCE_LOSS

LOSSES: Final = frozenset(
    {
        "rejected",
        "document-cut",
        "attribute-dropped",
        "event-dropped",
        "link-dropped",
        "resource-dropped",
        "text-replaced",
        "trace-partial",
        "pages-missing",
        "jaeger-error",
        "trace-absent",
    }
)
"""Codes of a fidelity report that say that something is missing, not only rewritten; what each record shows itself is a gap of its own."""

TOLD: Final = 20
"""Losses of a trace that are told one by one."""

Losses: TypeAlias = Mapping[str, Iterable[str]]
"""Trace id to what was lost of it, each for people."""


class SourceLosses:
    """Gathers them while an input is read, file by file. Memory grows with the traces of a file, not with their records."""

    def __init__(self) -> None:
        self.of_traces: dict[str, dict[str, None]] = {}
        """Trace id to what was lost of it, in the order of the input; complete once the input has been read to its end."""
        self._traces: set[bytes] = set()
        self._everywhere: dict[str, None] = {}

    def see(self, trace_id: str | None) -> None:
        """A record of this trace was read from the file."""
        if trace_id:
            self._traces.add(bytes.fromhex(trace_id))

    def add(self, detail: str, trace_id: str | None = None) -> None:
        """Something was lost, of the trace or of any that the file has."""
        told = self._everywhere if trace_id is None else self.of_traces.setdefault(trace_id, {})
        if len(told) < TOLD:
            told.setdefault(detail)

    def end_of_file(self) -> None:
        """The file is read; what follows is of another one."""
        if self._everywhere:
            for trace in self._traces:
                for detail in self._everywhere:
                    self.add(detail, trace.hex())
        self._traces.clear()
        self._everywhere.clear()


def loss_reasons(trace_ids: Iterable[str], losses: Losses) -> list[Reason]:
    """The reasons for a run of these traces to be incomplete."""
    details = dict.fromkeys(detail for trace_id in dict.fromkeys(trace_ids) for detail in losses.get(trace_id, ()))
    return [Reason(code=SOURCE_LOSS, detail=f"lost before it came here: {detail}") for detail in details]

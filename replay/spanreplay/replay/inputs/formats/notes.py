"""What a format has lost of each span, gathered while the span is read and told once it is kept."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from spanreplay.replay.inputs.report import ReadReport

Table: TypeAlias = Mapping[str, tuple[str, str]]
"""By code: what was lost, as the end of a sentence about spans, and what to change so that it is not; empty where nothing can be done."""


class Notes:
    """The losses of one span after the other, for the fidelity list of a report."""

    def __init__(self, report: ReadReport, table: Table, always: Sequence[str] = ()) -> None:
        """Begins with no span.

        Args:
            report: Gets the notes.
            table: The words for each code.
            always: Codes that hold for every span of the format.
        """
        self._report = report
        self._table = table
        self._always = tuple(always)
        self._found: dict[str, str] = {}
        self.spans = 0
        """How many were kept."""

    def of(self, code: str, is_so: bool = True, *, detail: str = "") -> None:
        """One loss of the span that is being read, with words of its own where ``detail`` is given."""
        if is_so:
            self._found.setdefault(code, detail)

    def forget(self) -> None:
        """The span was left out."""
        self._found.clear()

    def kept(self) -> None:
        """The span was kept: what it lost goes into the report."""
        self.spans += 1
        for code in (*self._always, *self._found):
            words, advice = self._table[code]
            self._report.note(code, self._found.get(code) or words, advice=advice)
        self._found.clear()

"""Records of others into batches for the database: ordinary spans as rows at once, everything else as journal records."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord
from spanreplay.store.encoding import digest_of, text_bytes
from spanreplay.store.form import Form, log_form, resource_form, resource_text, scope_form, span_form
from spanreplay.store.journal_reader import TYPE
from spanreplay.store.known_spans import known_digests, known_traces
from spanreplay.store.loading import Batch, content_record, put_spans, resource_record
from spanreplay.store.merging import Effect
from spanreplay.store.pieces import SHORTEST, Splitter
from spanreplay.store.record_row import Origin, RecordRows, origin_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

_MEMO_OBJECTS: Final = 1024
_RECORD_BYTES: Final = 512
"""What a record counts beside its long content."""

Key = tuple[str, str]
FormOf = Callable[[Record], tuple[Form, str | None]]


class Gained(NamedTuple):
    """A record that a batch has brought into the database."""

    record: Record
    row: tuple[Any, ...]
    """Of a span; of a log record its digest alone."""
    bytes: int
    """Of its long content."""


class RecordBatch(Batch):
    """Records gathered for one transaction.

    Args:
        form_of: the journal record of a span, and the process that recorded it, for a span whose row will not do.
    """

    def __init__(self, form_of: FormOf) -> None:
        super().__init__()
        self.gained: list[Gained] = []
        """What was unknown and is in the database now; complete once the batch is loaded."""
        self.met: set[str] = set()
        """Traces that the database knew something of before."""
        self.unsettled: set[str] = set()
        """Traces of which something is in the database that is not just what was given: it was put together, or differs."""
        self._form_of = form_of
        self._rows: dict[Key, Gained] = {}
        self._log_records: dict[str, Gained] = {}
        self._repeated = 0

    def add_row(self, row: tuple[Any, ...], span: SpanRecord, content_bytes: int) -> None:
        """Takes a span whose row is made."""
        self.size += 1
        key = row[0], row[1]
        known = self._rows.get(key)
        if known is None:
            if key in self._spans:
                self._add_form(span)
            else:
                self._rows[key] = Gained(span, row, content_bytes)
        elif known.row[-1] == row[-1]:
            self._repeated += 1
        else:
            del self._rows[key]
            self._add_form(known.record)
            self._add_form(span)

    def add_log(self, record: Form, log: LogRecord, content_bytes: int) -> None:
        """Takes a log record."""
        digest = self.add(record, None)
        if digest is not None:
            self._log_records[digest] = Gained(log, (digest,), content_bytes)

    def _add_form(self, record: Record) -> None:
        self.add(*self._form_of(record))

    def load(self, connection: "Connection", generation: int) -> "Counter[Effect]":
        """Writes it all; see :meth:`spanreplay.store.loading.Batch.load`."""
        self.met = known_traces(connection, {trace_id for trace_id, _ in (*self._rows, *self._spans)} | self._log_traces())
        return super().load(connection, generation)

    def _log_traces(self) -> set[str]:
        return {log.record.trace_id for log in self._log_records.values() if log.record.trace_id is not None}

    def _load_spans(self, connection: "Connection", effects: "Counter[Effect]") -> set[str]:
        effects["same"] += self._repeated
        known = known_digests(connection, [key for key in self._rows if key[0] in self.met])
        for key, digests in known.items():
            gained = self._rows.pop(key)
            if gained.row[-1] in digests:
                effects["same"] += 1
            else:
                self._add_form(gained.record)
        rows = list(self._rows.values())
        effects["new"] += len(rows)
        put_spans(connection, [gained.row for gained in rows])
        self.gained += rows
        self.unsettled = {trace_id for trace_id, _ in self._spans}
        return {trace_id for trace_id, _ in self._rows} | super()._load_spans(connection, effects)

    def _load_logs(self, connection: "Connection", effects: "Counter[Effect]") -> dict[str, str | None]:
        new = super()._load_logs(connection, effects)
        self.gained += [self._log_records[digest] for digest in new]
        return new


class Importer:
    """Fills batches from records.

    Args:
        origin: who delivers them, kept with each row.
        batch_records: when a batch is full.
        batch_bytes: when a batch is full, counting content.
    """

    def __init__(self, origin: str, *, batch_records: int, batch_bytes: int) -> None:
        self._origin = origin
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._bytes = 0
        self._splitter = Splitter()
        self._rows = RecordRows(origin, self._keep)
        self._batch = RecordBatch(self._form)
        self._resources: dict[int, tuple[Resource, str | None, Form]] = {}
        self._scopes: dict[int, tuple[Scope, Form]] = {}
        self._origins: dict[tuple[int, int], tuple[Resource, Scope, Origin]] = {}
        self.refused = 0
        """Records that have no form at all: nested too deeply, or with fields of the wrong type."""

    def batches(self, records: Iterable[Record]) -> Iterator[tuple[RecordBatch, bool]]:
        """Batches, each with whether it is the last; that one may be empty.

        Where the records end in an error, the last batch is given before the error is raised: what was read is kept.
        """
        count = 0
        try:
            for record in records:
                count += 1
                try:
                    self._add(record)
                except (ValueError, TypeError, AttributeError, RecursionError):
                    self.refused += 1
                else:
                    self._bytes += _RECORD_BYTES
                if count >= self._batch_records or self._bytes >= self._batch_bytes:
                    yield self._batch, False
                    self._batch, self._bytes, count = RecordBatch(self._form), 0, 0
                    self._resources.clear()
                    self._scopes.clear()
                    self._origins.clear()
        except Exception:
            yield self._batch, True
            raise
        yield self._batch, True

    def _add(self, record: Record) -> None:
        before = self._bytes
        if isinstance(record, SpanRecord):
            row = self._rows.row(record, self._origin_of(record))
            if row is not None:
                self._batch.add_row(row, record, self._bytes - before)
                return
        form, process = self._form(record)
        if isinstance(record, LogRecord):
            self._batch.add_log(form, record, self._bytes - before)
        else:
            self._batch.add(form, process)

    def _form(self, record: Record) -> tuple[Form, str | None]:
        resource, scope = self._resource(record.resource)[0], self._scope(record.scope)
        if isinstance(record, LogRecord):
            return {TYPE: "log", "origin": self._origin, **log_form(record, resource, scope, self._keep)}, None
        if not isinstance(record, SpanRecord):
            raise TypeError(type(record).__name__)
        process = record.attributes.get(PROCESS_ID)
        form = {TYPE: "span", "origin": self._origin, **span_form(record, resource, scope, self._keep)}
        return form, process if isinstance(process, str) else None

    def _keep(self, content: str | bytes) -> str:
        data, clean = text_bytes(content) if isinstance(content, str) else (content, False)
        digest = digest_of(data)
        if clean and isinstance(content, str):
            piece = self._splitter.split(content, digest, len(data)) if len(data) >= SHORTEST else None
            if piece is None:
                self._batch.add_text(digest, len(data), content)
            else:
                self._batch.add_piece(piece)
        else:
            self._batch.add(content_record(digest, data), None)
        self._bytes += len(data)
        return digest

    def _origin_of(self, record: Record) -> Origin:
        key = id(record.resource), id(record.scope)
        known = self._origins.get(key)
        if known is not None:
            return known[2]
        made = origin_of(*self._resource(record.resource), self._scope(record.scope))
        if len(self._origins) >= _MEMO_OBJECTS:
            self._origins.clear()
        self._origins[key] = record.resource, record.scope, made
        return made

    def _resource(self, resource: Resource) -> tuple[str | None, Form]:
        known = self._resources.get(id(resource))
        if known is not None:
            return known[1], known[2]
        form = resource_form(resource, self._keep)
        digest = None
        if form:
            text = resource_text(form)
            digest = digest_of(text.encode("ascii"))
            self._batch.add(resource_record(digest, text), None)
        if len(self._resources) >= _MEMO_OBJECTS:
            self._resources.clear()
        self._resources[id(resource)] = (resource, digest, form)
        return digest, form

    def _scope(self, scope: Scope) -> Form:
        known = self._scopes.get(id(scope))
        if known is not None:
            return known[1]
        if len(self._scopes) >= _MEMO_OBJECTS:
            self._scopes.clear()
        form = scope_form(scope, self._keep)
        self._scopes[id(scope)] = (scope, form)
        return form

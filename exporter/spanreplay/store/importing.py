"""Turns records of others into journal records, with their content beside them, so that there is one way in."""

from collections.abc import Iterable, Iterator

from spanreplay.semconv.attributes import PROCESS_ID
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord
from spanreplay.store.encoding import BLOB_BYTES, digest_of, text_bytes
from spanreplay.store.form import Form, log_form, resource_form, resource_text, scope_form, span_form
from spanreplay.store.journal_reader import TYPE
from spanreplay.store.loading import Batch, content_record, resource_record

_MEMO_OBJECTS = 1024


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
        self._batch = Batch()
        self._resources: dict[int, tuple[Resource, str | None, Form]] = {}
        self._scopes: dict[int, tuple[Scope, Form]] = {}
        self.refused = 0
        """Records that have no form at all: nested too deeply, or with fields of the wrong type."""

    def batches(self, records: Iterable[Record]) -> Iterator[tuple[Batch, int]]:
        """Batches, each with the number of records in it."""
        count = 0
        for record in records:
            count += 1
            try:
                form, process = self._form(record)
            except (ValueError, TypeError, AttributeError, RecursionError):
                self.refused += 1
            else:
                self._batch.add(form, process)
                self._bytes += BLOB_BYTES
            if count >= self._batch_records or self._bytes >= self._batch_bytes:
                yield self._batch, count
                self._batch, self._bytes, count = Batch(), 0, 0
                self._resources.clear()
                self._scopes.clear()
        if count:
            yield self._batch, count

    def _form(self, record: Record) -> tuple[Form, str | None]:
        resource, scope = self._resource(record.resource), self._scope(record.scope)
        if isinstance(record, LogRecord):
            return {TYPE: "log", "origin": self._origin, **log_form(record, resource, scope, self._keep)}, None
        if not isinstance(record, SpanRecord):
            raise TypeError(type(record).__name__)
        process = record.attributes.get(PROCESS_ID)
        form = {TYPE: "span", "origin": self._origin, **span_form(record, resource, scope, self._keep)}
        return form, process if isinstance(process, str) else None

    def _keep(self, content: str | bytes) -> str:
        data = content if isinstance(content, bytes) else text_bytes(content)[0]
        digest = digest_of(data)
        self._batch.add(content_record(digest, data), None)
        self._bytes += len(data)
        return digest

    def _resource(self, resource: Resource) -> str | None:
        known = self._resources.get(id(resource))
        if known is not None:
            return known[1]
        form = resource_form(resource, self._keep)
        digest = None
        if form:
            text = resource_text(form)
            digest = digest_of(text.encode("ascii"))
            self._batch.add(resource_record(digest, text), None)
        if len(self._resources) >= _MEMO_OBJECTS:
            self._resources.clear()
        self._resources[id(resource)] = (resource, digest, form)
        return digest

    def _scope(self, scope: Scope) -> Form:
        known = self._scopes.get(id(scope))
        if known is not None:
            return known[1]
        if len(self._scopes) >= _MEMO_OBJECTS:
            self._scopes.clear()
        form = scope_form(scope, self._keep)
        self._scopes[id(scope)] = (scope, form)
        return form

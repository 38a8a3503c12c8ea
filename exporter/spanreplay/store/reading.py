"""Spans and logs out of the database, as they were written."""

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from spanreplay.spans.record import LogRecord, Resource, SpanRecord
from spanreplay.store.blobs import load_content
from spanreplay.store.encoding import blob_refs, digest_of, to_sorted_json
from spanreplay.store.errors import DamagedStoreError
from spanreplay.store.extents import stretches
from spanreplay.store.form import RESOURCE, Form, FormReader
from spanreplay.store.late import whole
from spanreplay.store.span_rows import COLUMNS, HOT_INTEGERS, HOT_TEXTS, digest_found, version_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


_COLUMNS: Final = ", ".join(
    ["seq_start", *(column for column in COLUMNS if column not in {*HOT_TEXTS, *HOT_INTEGERS, "service", "complete"})]
)
"""What a span is made of again; the others are there for those who ask in SQL. And what spans are sorted by."""
_SPANS: Final = f"SELECT {_COLUMNS} FROM spans WHERE (started OR end_ns IS NOT NULL) AND start_ns BETWEEN $1 AND $2"  # noqa: S608 - our names
_RESTORE: Final = "Restore runs.duckdb from a copy, or import the run again into a new store."


def load_spans(connection: "Connection", trace_ids: Sequence[str], damaged: list[str] | None = None) -> list[SpanRecord]:
    """The current version of every span of these traces, by trace and start.

    Args:
        connection: may read.
        trace_ids: of these traces.
        damaged: where given, what is not what was written is left out and named here, instead of an error.
    """
    rows: list[dict[str, Any]] = []
    for traces, first_ns, last_ns in stretches(connection, trace_ids):
        # Named one by one, DuckDB looks for them while it reads, and reads nothing else of rows that are not theirs.
        among = ", ".join(f"${number}" for number in range(3, 3 + len(traces)))
        statement = f"{_SPANS} AND trace_id IN ({among})"
        rows += _select(connection, statement, [first_ns, last_ns, *traces])
    rows.sort(key=lambda row: (row["trace_id"], row["start_ns"], row["seq_start"] is None, row["seq_start"] or 0, row["span_id"]))
    return _read_spans(connection, rows, damaged)


def load_other_versions(connection: "Connection", trace_ids: Sequence[str]) -> list[SpanRecord]:
    """The less full versions of spans of these traces, where there are any."""
    rows = _select(
        connection, "SELECT * FROM span_versions WHERE trace_id IN (SELECT unnest($1)) ORDER BY trace_id, start_ns, span_id", [[*trace_ids]]
    )
    return _read_spans(connection, rows)


def imported_versions(connection: "Connection", trace_ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Trace id, span id and run id of the versions that were imported and are not current."""
    rows = _select(
        connection,
        "SELECT DISTINCT trace_id, span_id, run_id FROM span_versions WHERE trace_id IN (SELECT unnest($1))"
        " AND origin NOT IN ('recorder', 'exporter') ORDER BY trace_id, span_id, run_id",
        [[*trace_ids]],
    )
    return [(row["trace_id"], row["span_id"], row["run_id"]) for row in rows]


def load_logs(connection: "Connection", trace_ids: Sequence[str], damaged: list[str] | None = None) -> list[LogRecord]:
    """The log records of these traces, by trace and time; ``damaged`` as for :func:`load_spans`."""
    rows = _select(
        connection,
        "SELECT record, digest FROM logs WHERE trace_id IN (SELECT unnest($1)) ORDER BY trace_id, time_ns, digest",
        [[*trace_ids]],
    )
    with _damage_named("log records"):
        check = _checker(connection)

        def read(row: dict[str, Any]) -> Form:
            form: Form = json.loads(row["record"])
            return check("a log record", form, row["digest"], digest_of(to_sorted_json(form).encode("ascii")))

        forms = _undamaged(rows, read, damaged)
        reader = _reader(connection, forms, damaged)
        return [reader.log(form) for form in forms]


def _undamaged(rows: Iterable[dict[str, Any]], read: Callable[[dict[str, Any]], Form], damaged: list[str] | None) -> list[Form]:
    forms = []
    for row in rows:
        try:
            with _damage_named("records"):
                forms.append(read(row))
        except DamagedStoreError as error:
            if damaged is None:
                raise
            damaged.append(str(error).removesuffix(f" {_RESTORE}"))
    return forms


@contextlib.contextmanager
def _damage_named(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedStoreError(f"{what} in the store are not what was written ({error}). {_RESTORE}") from error


def _select(connection: "Connection", statement: str, parameters: Sequence[Any]) -> Iterator[dict[str, Any]]:
    result = connection.execute(statement, parameters)
    columns = [column[0] for column in result.description or ()]
    return (dict(zip(columns, row, strict=True)) for row in result.fetchall())


def _read_spans(connection: "Connection", rows: Iterable[dict[str, Any]], damaged: list[str] | None = None) -> list[SpanRecord]:
    with _damage_named("spans"):
        check = _checker(connection)

        def read(row: dict[str, Any]) -> Form:
            version = version_of(row, current=True)
            found = digest_found(version, row["attributes"])
            return check(f"span {row['span_id']} of trace {row['trace_id']}", version.form, row["digest"], found)

        forms = _undamaged(rows, read, damaged)
        reader = _reader(connection, forms, damaged)
        return [reader.span(form) for form in forms]


def digests_hold(connection: "Connection") -> bool:
    """Whether every digest is that of its row; a store that an older version has written to does not promise it."""
    return connection.execute("SELECT 1 FROM meta WHERE key = 'digests' AND value = 'exact'").fetchall() != []


def _checker(connection: "Connection") -> Callable[[str, Form, str | None, str], Form]:
    """Gives back a form that is what its digest says: texts that are too short to be kept by their own digests are verified so."""
    exact = cache(lambda: digests_hold(connection))  # asked only where one differs, which hardly ever is

    def check(what: str, form: Form, digest: str | None, found: str) -> Form:
        if digest != found and exact():
            raise DamagedStoreError(f"{what} has been changed: its digest is {digest}, and what is there has {found}. {_RESTORE}")
        return form

    return check


def _reader(connection: "Connection", forms: Sequence[Form], damaged: list[str] | None = None) -> FormReader:
    """A reader that has all content and resources of these forms at hand."""
    wanted: set[str] = set()
    for form in forms:
        wanted |= blob_refs(form)
    digests = {form[RESOURCE] for form in forms if RESOURCE in form}
    content = load_content(connection, wanted | digests, damaged)
    resource_forms = {digest: json.loads(whole(content[digest])) for digest in digests if digest in content}
    inner = {ref for form in resource_forms.values() for ref in blob_refs(form)} - content.keys()
    content.update(load_content(connection, inner, damaged))
    reader = FormReader(content, {})
    resources = {digest: reader.resource(form) for digest, form in resource_forms.items()}
    missing = Resource(dropped_attributes=1)
    return FormReader(content, {digest: resources.get(digest, missing) for digest in digests})

"""Loads records into the database: the one way in, for journals and for imports."""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from spanreplay.store.appending import append, clean
from spanreplay.store.blobs import key_of, select_blobs, take_out_whole
from spanreplay.store.encoding import Json, digest_of, to_readable_json, to_sorted_json
from spanreplay.store.extents import widen
from spanreplay.store.form import ATTRIBUTES, BODY, DROPPED, EVENT, RESOURCE, SEVERITY, SPAN, TIME, TRACE, Form, check_form
from spanreplay.store.journal_reader import LOST, TYPE
from spanreplay.store.known_spans import Key, delete_spans, known_versions, places_of
from spanreplay.store.merging import RECORDER, Effect, apply, choose
from spanreplay.store.pieces import SHORTEST, Piece, Splitter
from spanreplay.store.plain_spans import PlainSpan
from spanreplay.store.span_rows import COLUMNS, Version, row_of, service_of, version_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection

RESOURCE_MEDIA: Final = "application/vnd.spanreplay.resource+json"
TEXT_MEDIA: Final = "text/plain"
BYTES_MEDIA: Final = "application/octet-stream"

CONTENT_TYPES: Final = frozenset({"resource", "blob", "pieces", "open", "close", "span", "patch", "log"})
"""Types of journal records that bring rows; the others are about the journal itself."""

_BIG: Final = 2**63
_SERVICES: Final = 1_024
_services: Final[dict[str, str | None]] = {}
"""What resources name as their service, by digest, whichever store they are in: spans that come later refer to the same ones."""
_Given = tuple[Form | PlainSpan, str | None]
"""What is said of a span, and the random id of the process that says it."""
_Blob = tuple[str, int, str, str | None, bytes | None, str | None, int | None]


def is_id(value: object) -> bool:
    """Whether this can be the id of a trace or a span in the store: lower-case hex, as a rule; anything printable, at least."""
    return isinstance(value, str) and 0 < len(value) <= 128 and value.isascii() and value.isprintable()


class Batch:
    """Records gathered for one transaction.

    Args:
        splitter: divides long texts that come whole; without, they stay so.
    """

    def __init__(self, splitter: Splitter | None = None) -> None:
        self._splitter = splitter
        self.size = 0
        """Records in it."""
        self.rejected = 0
        """Records that no row can be made of."""
        self.rows = 0
        """How many it has brought into the table that got the most of them, once it is loaded."""
        self._spans: dict[Key, list[_Given]] = {}
        self._logs: dict[str, tuple[Form, str]] = {}
        self._blobs: dict[str, _Blob] = {}
        self._waiting: list[str] = []
        """Content that came since the last record: it stands before the one that refers to it."""
        self._by_trace: dict[str | None, list[str]] = {}
        """Content of each trace. What lies together is read together, and has more in common that compression can make use of."""

    def add(self, record: Form, process: str | None) -> str | None:
        """Takes one journal record.

        Args:
            record: one of :data:`CONTENT_TYPES`.
            process: random id of the process that wrote it, if known.

        Returns:
            The digest of a log record.
        """
        self.size += 1
        kind = record[TYPE]
        try:
            if kind in ("blob", "resource", "pieces"):
                self._add_content(_blob_of(record))
            elif kind == "log":
                content = _log_content(record)
                digest = digest_of(to_sorted_json(content).encode("ascii"))
                self._logs[digest] = (content, record.get("origin", RECORDER))
                self._belongs_to(content.get(TRACE))
                return digest
            else:
                check_form(record)
                if DROPPED in record:
                    _check_dropped(record[DROPPED])
                key = record[TRACE], record[SPAN]
                known = self._spans.get(key)
                if known is None:
                    _check_ids(record, TRACE, SPAN)
                    known = self._spans[key] = []
                known.append((record, process))
                self._belongs_to(key[0])
        except (KeyError, TypeError, ValueError):
            self.rejected += 1
        return None

    def add_plain(self, span: PlainSpan, process: str | None) -> None:
        """Takes a record of a span with nothing out of the ordinary; see :meth:`add`."""
        self.size += 1
        key = span.key
        known = self._spans.get(key)
        if known is None:
            if not (is_id(key[0]) and is_id(key[1])):
                self.rejected += 1
                return
            known = self._spans[key] = []
        known.append((span, process))
        self._belongs_to(key[0])

    def _belongs_to(self, trace_id: str | None) -> None:
        if self._waiting:
            self._by_trace.setdefault(trace_id, []).extend(self._waiting)
            self._waiting = []

    def _put(self, blob: _Blob) -> None:
        if blob[0] not in self._blobs:
            self._waiting.append(blob[0])
        self._blobs[blob[0]] = blob

    def _add_content(self, blob: _Blob) -> None:
        digest, size, media, text, *_ = blob
        if self._splitter is not None and text is not None and size >= SHORTEST and media == TEXT_MEDIA:
            piece = self._splitter.split(text, digest, size)
            if piece is not None:
                self.add_piece(piece)
                return
        self._put(blob)

    @property
    def content_bytes(self) -> int:
        """Bytes of the long content in it."""
        return sum(blob[1] for blob in self._blobs.values())

    def add_text(self, digest: str, size: int, text: str) -> None:
        """Takes content that is valid UTF-8, of ``size`` bytes."""
        self._put((digest, size, TEXT_MEDIA, text, None, None, key_of(digest)))

    def add_piece(self, piece: Piece) -> None:
        """Takes content and the pieces that it is made of."""
        if piece.digest not in self._blobs:
            for inner in piece.inner:
                self.add_piece(inner)
            parts = None if piece.parts is None else to_readable_json(piece.parts)
            self._put((piece.digest, piece.size, TEXT_MEDIA, piece.text, None, parts, key_of(piece.digest)))

    def load(self, connection: "Connection", generation: int) -> Counter[Effect]:
        """Writes it all, inside the caller's transaction.

        Args:
            connection: in a transaction.
            generation: larger in every later transaction; marks the traces touched as stale.

        Returns:
            How many records (spans and logs) were new, the same, or changed something.
        """
        self._load_blobs(connection)
        effects: Counter[Effect] = Counter()
        touched = self._load_spans(connection, effects)
        touched.update(trace_id for trace_id in self._load_logs(connection, effects).values() if trace_id is not None)
        mark_stale(connection, touched, generation)
        return effects

    # ---- spans ------------------------------------------------------------------------------------------------------

    def _load_spans(self, connection: "Connection", effects: "Counter[Effect]") -> set[str]:
        places = places_of(connection, list(self._spans))
        known = known_versions(connection, places)
        changed: dict[Key, list[Version] | _Plain] = {}
        replaced: list[Key] = []
        repeated = 0
        for key, records in self._spans.items():
            versions = known.get(key, [])
            was_known = bool(versions)
            if not was_known and (plain := _plain_of(records)) is not None:
                changed[key] = plain
                repeated += len(records) - 1
                continue
            outcomes: list[Effect] = [
                apply(versions, record.form() if isinstance(record, PlainSpan) else record, process) for record, process in records
            ]
            effects.update(outcomes)
            if any(outcome != "same" for outcome in outcomes):
                changed[key] = versions
                if was_known:
                    replaced.append(key)
        effects["changed"] += repeated
        delete_spans(connection, replaced)
        services = self._services(connection, _resources_of(changed.values()))
        current: list[tuple[Any, ...]] = []
        others: list[tuple[Any, ...]] = []
        for found in changed.values():
            if isinstance(found, tuple):
                effects["new"] += 1
                span, process = found
                current.append(span.row(process, services.get(span.resource or "")))
                continue
            best = choose(found)
            for version in found:
                row = row_of(version, services.get(version.form.get(RESOURCE, "")))
                (current if version is best else others).append(row)
        order = {trace_id: place for place, trace_id in enumerate(dict.fromkeys(trace_id for trace_id, _ in changed))}
        current.sort(key=lambda row: order[row[0]])  # what is read together lies together, as its content does
        put_spans(connection, current, others, unknown=not places)
        self.rows = max(self.rows, len(current))
        return {trace_id for trace_id, _ in changed}

    def _services(self, connection: "Connection", wanted: set[str]) -> dict[str, str]:
        texts = {digest: self._blobs[digest][3] for digest in wanted if digest in self._blobs}
        missing = [digest for digest in wanted if digest not in texts and digest not in _services]
        if missing:
            texts.update(select_blobs(connection, missing, "text"))
        found = {digest: service_in(text) for digest, text in texts.items() if text}
        if len(_services) >= _SERVICES:
            _services.clear()
        _services.update((digest, service) for digest, service in found.items() if digest_of((texts[digest] or "").encode()) == digest)
        return {digest: service for digest in wanted if (service := found.get(digest) or _services.get(digest)) is not None}

    # ---- logs and content -------------------------------------------------------------------------------------------

    def _load_logs(self, connection: "Connection", effects: "Counter[Effect]") -> dict[str, str | None]:
        """Gives the traces of the new ones by digest."""
        if not self._logs:
            return {}
        found = connection.execute("SELECT digest FROM logs WHERE digest IN (SELECT unnest($1))", [list(self._logs)]).fetchall()
        known = {digest for (digest,) in found}
        effects["same"] += len(known)
        new = [(digest, content, origin) for digest, (content, origin) in self._logs.items() if digest not in known]
        effects["new"] += len(new)
        append(connection, "logs", [log_row(*log) for log in new], LOG_COLUMNS, _clean_log)
        return {digest: content.get(TRACE) for digest, content, _ in new}

    def _load_blobs(self, connection: "Connection") -> None:
        if not self._blobs:
            return
        keys = {digest: blob[-1] for digest, blob in self._blobs.items()}
        known = {digest for (digest,) in select_blobs(connection, keys, "digest", keys)}
        known -= take_out_whole(connection, {digest: (blob[3], blob[5]) for digest, blob in self._blobs.items()}, known)
        in_order = chain(chain.from_iterable(self._by_trace.values()), self._waiting)
        new = [self._blobs[digest] for digest in in_order if digest not in known]
        append(connection, "blobs", new, BLOB_COLUMNS)
        self.rows = max(self.rows, len(new))


_Plain = tuple[PlainSpan, str | None]


def _plain_of(records: Sequence[_Given]) -> _Plain | None:
    """All that is said of a span and who says it, where that is one record, or a start that the other one repeats."""
    last, process = records[-1]
    if not isinstance(last, PlainSpan):
        return None
    if len(records) > 1:
        first, starter = records[0]
        if len(records) > 2 or process is None or process != starter or not isinstance(first, PlainSpan) or not first.begins(last):
            return None
    return last, process


def _resources_of(spans: Iterable[list[Version] | _Plain]) -> set[str]:
    found: set[str] = set()
    for span in spans:
        if not isinstance(span, tuple):
            found.update(version.form[RESOURCE] for version in span if RESOURCE in version.form)
        elif span[0].resource is not None:
            found.add(span[0].resource)
    return found


LOG_COLUMNS: Final = ("trace_id", "span_id", "time_ns", "event_name", "severity", "body", "record", "origin", "digest")
BLOB_COLUMNS: Final = ("digest", "bytes", "media", "text", "data", "parts", "key")


def put_spans(
    connection: "Connection", current: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]] = (), *, unknown: bool = False
) -> None:
    """Adds rows of spans, inside the caller's transaction: the one way that they get in.

    Args:
        connection: in a transaction.
        current: the current versions.
        others: the other ones.
        unknown: nothing is there of any of their traces.
    """
    append(connection, "spans", current, COLUMNS, _clean_span)
    append(connection, "span_versions", others, COLUMNS, _clean_span)
    widen(connection, [*current, *others], unknown=unknown)


def _clean_span(row: tuple[Any, ...]) -> tuple[Any, ...]:
    cleaned = clean(row)
    if cleaned == row:
        return row
    version = version_of(dict(zip(COLUMNS, cleaned, strict=True)), current=True)
    version.known_digest = None
    return *cleaned[:-1], version.digest


def _clean_log(row: tuple[Any, ...]) -> tuple[Any, ...]:
    cleaned = dict(zip(LOG_COLUMNS, clean(row), strict=True))
    return *(cleaned[column] for column in LOG_COLUMNS[:-1]), digest_of(to_sorted_json(json.loads(cleaned["record"])).encode("ascii"))


def mark_stale(connection: "Connection", trace_ids: set[str], generation: int) -> None:
    """The runs of these traces are to be derived again, inside the caller's transaction."""
    if trace_ids:
        connection.execute("DELETE FROM stale WHERE trace_id IN (SELECT unnest($1))", [list(trace_ids)]).fetchall()
        append(connection, "stale", [(trace_id, generation) for trace_id in sorted(trace_ids)], ("trace_id", "generation"))


def _blob_of(record: Form) -> _Blob:
    digest = record["d"]
    key = key_of(digest)
    if key is None and not is_id(digest):
        raise ValueError(digest)
    if record[TYPE] == "resource":
        text = record["json"]
        return digest, len(text.encode()), RESOURCE_MEDIA, text, None, None, key
    if record[TYPE] == "pieces":
        parts, size = record["parts"], record["n"]
        if type(parts) is not list or len(parts) % 2 == 0 or not all(type(part) is str for part in parts):
            raise ValueError(digest)
        if type(size) is not int or not 0 <= size < _BIG:
            raise ValueError(size)
        return digest, size, TEXT_MEDIA, None, None, to_readable_json(parts), key
    if "text" in record:
        text, size = record["text"], record.get("n")
        return digest, size if type(size) is int else len(text.encode()), TEXT_MEDIA, text, None, None, key
    data = record["data"] if isinstance(record["data"], bytes) else b64decode(record["data"], validate=True)
    try:
        return digest, len(data), TEXT_MEDIA, data.decode(), None, None, key
    except UnicodeDecodeError:
        return digest, len(data), BYTES_MEDIA, None, data, None, key


def service_in(resource_text: str) -> str | None:
    """The service that the JSON of a resource names."""
    try:
        return service_of(json.loads(resource_text).get(ATTRIBUTES, {}))
    except ValueError:
        return None


def _log_content(record: Form) -> Form:
    content = {key: value for key, value in record.items() if key not in (TYPE, LOST, "origin")}
    if record.get(LOST):
        content[DROPPED] = content.get(DROPPED, 0) + record[LOST]
    check_form(content)
    _check_ids(content, *(key for key in (TRACE, SPAN) if key in content))
    if type(content[TIME]) is not int:
        raise ValueError(TIME)
    return content


def _check_ids(form: Form, *keys: str) -> None:
    for key in keys:
        if not is_id(form.get(key)):
            raise ValueError(key)


def _check_dropped(counts: Sequence[Json]) -> None:
    if len(counts) != 3 or not all(type(count) is int for count in counts):
        raise ValueError(DROPPED)


def log_row(digest: str, content: Form, origin: str) -> tuple[Any, ...]:
    """The row of a log record, in the order of :data:`LOG_COLUMNS`."""
    time_ns, severity = content[TIME], content.get(SEVERITY, 0)
    return (
        content.get(TRACE),
        content.get(SPAN),
        time_ns if 0 <= time_ns < _BIG else None,
        _plain(content.get(EVENT)),
        severity if abs(severity) < 2**15 else None,
        to_readable_json(content[BODY]) if BODY in content else None,
        to_readable_json(content),
        origin,
        digest,
    )


def _plain(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def content_record(digest: str, data: bytes) -> Form:
    """The record that brings content."""
    return {TYPE: "blob", "d": digest, "data": data}


def resource_record(digest: str, text: str) -> Form:
    """The record that brings a resource."""
    return {TYPE: "resource", "d": digest, "json": text}

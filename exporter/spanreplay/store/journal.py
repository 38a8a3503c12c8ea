r"""The journal: what a process writes down at once, in a file of its own, so that a kill loses nothing.

``<store>/journal/<host>-<pid>-<random>.journal``, mode 0600, opened at the first record. A line is ``<crc32, 8 hex digits> <JSON>\n``, the
checksum being of the JSON's bytes, and each line is one ``write`` on an append-only descriptor. The JSON is an object with the record's type
under ``t``; :mod:`spanreplay.store.form` has the keys of spans and logs.

=============  ===============================================================================================================
``process``    first line: ``v`` (journal version, 1), host, pid, process, started, argv, python, versions, forked_from, ``locks`` (the writer holds a
               ``flock`` on the file while it lives)
``resource``   ``d`` and ``json``: a resource, once, before it is referred to
``blob``       ``d`` and ``text``, or ``data`` in base64: content, once, before it is referred to
``open``       a span has started: a span without its end
``close``      the rest of a span opened before: end, status, and what is new in attributes, events, links
``span``       a whole span of somebody else, with ``origin``
``patch``      additions to a span written before
``log``        a log record
``drop``       ``n`` records could not be written before this one, and ``why``: reasons with counts
``end``        the process has closed its journal
=============  ===============================================================================================================

Whoever calls a writer is an agent at work: nothing here raises. What cannot be written is counted, and said once a minute through ``logging``.
"""

import contextlib
import errno
import logging
import os
import secrets
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal
from zlib import crc32

from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value
from spanreplay.store.encoding import ContentLostError, Json, digest_of, encode_map, encode_text, text_bytes, to_json
from spanreplay.store.folder import JOURNAL_SUFFIX, JOURNALS, make_folder
from spanreplay.store.form import (
    ATTRIBUTES,
    DROPPED,
    END,
    EVENTS,
    LINKS,
    MESSAGE,
    NAME,
    SPAN,
    STATUS,
    TRACE,
    Form,
    event_form,
    link_form,
    log_form,
    resource_form,
    resource_text,
    scope_form,
    span_form,
)
from spanreplay.store.journal_reader import JOURNAL_VERSION, LOST, TYPE
from spanreplay.store.process import ProcessInfo, current_process

_log: Final = logging.getLogger("spanreplay.journal")
_SEEN_SPANS: Final = 32_768
_SEEN_DIGESTS: Final = 32_768
_MEMO_TEXTS: Final = 4_096
_MEMO_CHARACTERS: Final = 16_000_000
_MEMO_OBJECTS: Final = 256
_REOPEN_SECONDS: Final = 1.0
_COMPLAIN_SECONDS: Final = 60.0
_sync_file: Final = getattr(os, "fdatasync", os.fsync)


class JournalWriter:
    """Writes one process's journal. Thread-safe; a forked child goes on in a file of its own.

    Args:
        store: the store's folder, made when the first record is written.
        durability: ``process``: a record is with the operating system when the call returns, so the death of the process loses nothing;
            ``disk``: it is on the disk.
        process: who writes.
    """

    def __init__(self, store: Path, *, durability: Literal["process", "disk"] = "process", process: ProcessInfo) -> None:
        self.store = store
        self.dropped = 0
        """Records that could not be written, in this process."""
        self._durable = durability == "disk"
        self._process = process
        self._lock = threading.RLock()
        self._untold: dict[str, int] = {}
        self._complained_at = -_COMPLAIN_SECONDS
        self._start_file()
        _writers.add(self)

    def _start_file(self) -> None:
        self._descriptor: int | None = None
        self._torn = False
        self._retry_at = 0.0
        self._open_error: OSError | None = None
        self._spans: dict[str, None] = {}
        self._digests: dict[str, None] = {}
        self._memo: dict[str, str] = {}
        self._memo_characters = 0
        self._resources: dict[int, tuple[Resource, str | None]] = {}
        self._scopes: dict[int, tuple[Scope, Form]] = {}

    @property
    def process(self) -> ProcessInfo:
        """Who writes; another one in a forked child."""
        return self._process

    # ---- records ----------------------------------------------------------------------------------------------------

    def open_span(self, record: SpanRecord) -> None:
        """A span has started: ``record`` has what is known at the start, and no end."""
        self._span("open", record, None)

    def write_span(self, record: SpanRecord, origin: str) -> None:
        """A whole span.

        Args:
            record: the span.
            origin: who made it: ``recorder``, ``exporter``, ``import`` or ``receiver``.
        """
        self._span("span", record, origin)

    def close_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        end_ns: int,
        status: int,
        status_message: str,
        attributes: Mapping[str, Value],
        events: tuple[EventRecord, ...] = (),
        links: tuple[LinkRecord, ...] = (),
        name: str | None = None,
        dropped: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        """The rest of a span opened before; only what is new. An attribute given again has its new value.

        Args:
            trace_id: of the span.
            span_id: of the span.
            end_ns: when it ended.
            status: 0 unset, 1 ok, 2 error.
            status_message: beside an error.
            attributes: new or changed ones.
            events: new ones.
            links: new ones.
            name: if it has changed since the start.
            dropped: attributes, events and links that the SDK dropped.
        """
        try:
            with self._lock:
                form: Form = {TYPE: "close", TRACE: trace_id, SPAN: span_id, END: end_ns}
                if status:
                    form[STATUS] = status
                if status_message:
                    form[MESSAGE] = encode_text(status_message, self._keep)
                if name is not None:
                    form[NAME] = encode_text(name, self._keep)
                if dropped != (0, 0, 0):
                    form[DROPPED] = list(dropped)
                self._put(self._with_additions(form, attributes, events, links))
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    def patch_span(
        self,
        trace_id: str,
        span_id: str,
        *,
        attributes: Mapping[str, Value],
        events: Sequence[EventRecord] = (),
        links: Sequence[LinkRecord] = (),
    ) -> None:
        """Adds attributes, events and links to a span written before."""
        try:
            with self._lock:
                self._put(self._with_additions({TYPE: "patch", TRACE: trace_id, SPAN: span_id}, attributes, events, links))
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    def write_log(self, record: LogRecord) -> None:
        """A log record."""
        try:
            with self._lock:
                form: Form = {TYPE: "log"}
                form.update(log_form(record, self._resource(record.resource), self._scope(record.scope), self._keep))
                self._put(form)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    def sync(self) -> None:
        """Everything written so far is on the disk when this returns, unless the disk says no, which counts as a drop."""
        try:
            with self._lock:
                if self._descriptor is not None:
                    _sync_file(self._descriptor)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    def seen(self, trace_id: str, span_id: str) -> bool:
        """Whether this process has written that span, among the last 32768 it wrote."""
        return trace_id + span_id in self._spans

    def close(self) -> None:
        """Ends the journal. A later record starts a new file."""
        try:
            with self._lock:
                if self._descriptor is not None:
                    self._put({TYPE: "end"})
                    self._release()
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _span(self, kind: str, record: SpanRecord, origin: str | None) -> None:
        try:
            with self._lock:
                form: Form = {TYPE: kind}
                if origin is not None:
                    form["origin"] = origin
                attributes = self._attributes(record.attributes, form)
                form.update(span_form(record, self._resource(record.resource), self._scope(record.scope), self._keep, attributes))
                if self._put(form):
                    self._spans[record.trace_id + record.span_id] = None
                    if len(self._spans) > _SEEN_SPANS:
                        del self._spans[next(iter(self._spans))]
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._drop(error)

    def _with_additions(
        self, form: Form, attributes: Mapping[str, Value], events: Sequence[EventRecord], links: Sequence[LinkRecord]
    ) -> Form:
        if attributes:
            form[ATTRIBUTES] = self._attributes(attributes, form)
        if events:
            form[EVENTS] = [event_form(event, self._keep) for event in events]
        if links:
            form[LINKS] = [link_form(link, self._keep) for link in links]
        return form

    def _attributes(self, attributes: Mapping[str, Value], form: Form) -> Json:
        """All attributes that can be kept; the span is worth more than the one that cannot."""
        try:
            return encode_map(attributes, self._keep)
        except Exception:  # noqa: BLE001 - found out below which attribute it is
            kept: dict[str, Value] = {}
        for key, value in attributes.items():
            try:
                encode_map({key: value}, self._keep)
            except Exception as error:  # noqa: BLE001 - any value may come from anywhere
                form[LOST] = form.get(LOST, 0) + 1
                if not isinstance(error, ContentLostError):  # its blob line has been counted
                    self._drop(error)
            else:
                kept[key] = value
        return encode_map(kept, self._keep)

    def _keep(self, content: str | bytes) -> str:
        if isinstance(content, bytes):
            return self._keep_bytes(content, digest_of(content), None)
        memo = self._memo
        digest = memo.pop(content, None)
        if digest is None:
            data, clean = text_bytes(content)
            digest = self._keep_bytes(data, digest_of(data), content if clean else None)
            self._memo_characters += len(content)
        memo[content] = digest
        while self._memo_characters > _MEMO_CHARACTERS or len(memo) > _MEMO_TEXTS:
            oldest = next(iter(memo))
            del memo[oldest]
            self._memo_characters -= len(oldest)
        return digest

    def _keep_bytes(self, data: bytes, digest: str, text: str | None) -> str:
        if digest not in self._digests:
            form = {TYPE: "blob", "d": digest}
            if text is None:
                form["data"] = b64encode(data).decode("ascii")
            else:
                form["text"] = text
            self._put_once(digest, form)
        return digest

    def _put_once(self, digest: str, form: Form) -> None:
        if not self._put(form):
            raise ContentLostError(digest)
        self._digests[digest] = None
        if len(self._digests) > _SEEN_DIGESTS:
            del self._digests[next(iter(self._digests))]

    def _resource(self, resource: Resource) -> str | None:
        known = self._resources.get(id(resource))
        if known is not None and known[0] is resource:
            return known[1]
        form = resource_form(resource, self._keep)
        digest = None
        if form:
            text = resource_text(form)
            digest = digest_of(text.encode("ascii"))
            if digest not in self._digests:
                self._put_once(digest, {TYPE: "resource", "d": digest, "json": text})
        if len(self._resources) >= _MEMO_OBJECTS:
            self._resources.clear()
        self._resources[id(resource)] = (resource, digest)
        return digest

    def _scope(self, scope: Scope) -> Form:
        known = self._scopes.get(id(scope))
        if known is not None and known[0] is scope:
            return known[1]
        form = scope_form(scope, self._keep)
        if len(self._scopes) >= _MEMO_OBJECTS:
            self._scopes.clear()
        self._scopes[id(scope)] = (scope, form)
        return form

    # ---- the file ---------------------------------------------------------------------------------------------------

    def _put(self, form: Form) -> bool:
        """Writes one line; ``False``, and a count, if it did not get there whole."""
        data = to_json(form).encode("ascii")
        descriptor = self._descriptor
        try:
            if descriptor is None:
                descriptor = self._open()
            self._write(descriptor, data)
        except OSError as error:
            self._drop(error)
            return False
        if self._untold:
            self._tell(descriptor)
        return True

    def _tell(self, descriptor: int) -> None:
        try:
            self._write(descriptor, to_json({TYPE: "drop", "n": sum(self._untold.values()), "why": self._untold}).encode("ascii"))
            self._untold = {}
        except OSError:
            return  # told after a later record

    def _write(self, descriptor: int, data: bytes) -> None:
        line = b"%s%08x %s\n" % (b"\n" if self._torn else b"", crc32(data), data)
        written = os.write(descriptor, line)
        if written != len(line):
            # The next record starts on a line of its own, else this one's stump would spoil it too.
            self._torn = self._torn or written > 0
            raise OSError(errno.ENOSPC, "the record did not fit")
        self._torn = False
        if self._durable:
            _sync_file(descriptor)

    def _open(self) -> int:
        if self._open_error is not None and time.monotonic() < self._retry_at:
            raise self._open_error
        try:
            make_folder(self.store)
            descriptor = self._create()
        except OSError as error:
            self._open_error = error
            self._retry_at = time.monotonic() + _REOPEN_SECONDS
            raise
        self._descriptor = descriptor
        return descriptor

    def _create(self) -> int:
        process = self._process
        host = "".join(letter if letter.isalnum() else "-" for letter in process.host)[:64]
        path = self.store / JOURNALS / f"{host}-{process.pid}-{secrets.token_hex(8)}{JOURNAL_SUFFIX}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            form = _process_form(process)
            if _hold(descriptor):
                form["locks"] = True
            self._torn = False
            self._write(descriptor, to_json(form).encode("ascii"))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _release(self) -> None:
        descriptor = self._descriptor
        self._start_file()
        if descriptor is not None:
            os.close(descriptor)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        with contextlib.suppress(OSError):
            self._release()
        self.dropped, self._untold = 0, {}
        self._process = current_process()

    def _drop(self, error: BaseException) -> None:
        self.dropped += 1
        reason = errno.errorcode.get(error.errno or 0, "OSError") if isinstance(error, OSError) else type(error).__name__
        self._untold[reason] = self._untold.get(reason, 0) + 1
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAIN_SECONDS:
            self._complained_at = now
            _log.warning("spanreplay: %d record(s) could not be kept in %s, the last because of: %s", self.dropped, self.store, error)


def _hold(descriptor: int) -> bool:
    """Locks the file for as long as it is open, which tells a compactor anywhere on this machine that its writer lives."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _process_form(process: ProcessInfo) -> Form:
    form: Form = {
        TYPE: "process",
        "v": JOURNAL_VERSION,
        "host": process.host,
        "pid": process.pid,
        "process": process.process_id,
        "started": process.started_ns,
        "argv": list(process.argv),
        "python": process.python,
        "versions": dict(process.versions),
    }
    if process.forked_from is not None:
        form["forked_from"] = process.forked_from
    return form


_writers: "weakref.WeakSet[JournalWriter]" = weakref.WeakSet()
_shared: dict[str, JournalWriter] = {}
_shared_lock = threading.Lock()


def get_writer(store: Path) -> JournalWriter:
    """The one writer of that store in this process, so that nothing is written twice."""
    key = str(Path(store).absolute())
    writer = _shared.get(key)
    if writer is None:
        with _shared_lock:
            writer = _shared.get(key)
            if writer is None:
                writer = _shared[key] = JournalWriter(Path(key), process=current_process())
    return writer


def _after_fork_in_child() -> None:
    global _shared_lock  # noqa: PLW0603 - another thread may have held it when the process forked
    _shared_lock = threading.Lock()
    for writer in list(_writers):
        writer._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

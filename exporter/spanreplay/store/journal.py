r"""The journal: what a process writes down at once, in a file of its own, so that a kill loses nothing.

``<store>/journal/<host>-<pid>-<random>.journal``, mode 0600, opened at the first record. A line is ``<crc32, 8 hex digits> <JSON>\n``, the
checksum being of what follows it, and each line is one ``write`` on an append-only descriptor. The JSON is an object with the type of the
record under ``t``; :mod:`spanreplay.store.form` has the keys of spans and logs, :mod:`spanreplay.store.encoding` the form of values.

=============  ================================================================================================================
``process``    first line: ``v`` (journal version, 3; 1 has no ``text``, 2 no ``with``), host, pid, process, started, argv, python,
               versions, forked_from, and ``locks`` (true: the writer holds a ``flock`` on the file for as long as it lives)
``resource``   ``d`` and ``json``: a resource, once, before it is referred to
``blob``       ``d`` and ``text``, or ``data`` in base64: content, once, before it is referred to
``text``       the same, of a long text without line feeds, which follows the JSON as it is, in UTF-8; from version 2 on
``with``       a record with long texts that are new, see :mod:`spanreplay.store.brought`; from version 3 on
``pieces``     ``d``, its length in bytes ``n``, and ``parts``: a text in pieces, see :mod:`spanreplay.store.pieces`, after all its pieces
``open``       a span has started: a span without its end
``close``      the rest of a span opened before: end, status, and what is new in attributes, events, links
``span``       a whole span of somebody else, with ``origin``
``patch``      additions to a span written before
``log``        a log record
``drop``       ``n`` records before this one could not be written, and ``why``: reasons with counts; the second line of a file is
               one with ``spare`` in place of ``n``, see :mod:`spanreplay.store.spare_line`
``end``        the process has closed its journal
=============  ================================================================================================================

Whoever calls a writer is an agent at work: nothing here raises. What cannot be written is counted, and said once a minute through
``logging``.
"""

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary.call import StepStarted
from spanreplay.content.redaction import Redactor
from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord, Value
from spanreplay.store.encoding import Json, encode_text, to_json
from spanreplay.store.flushing import Flusher, before_leaving
from spanreplay.store.form import DROPPED, END, MESSAGE, NAME, SPAN, STATUS, TRACE, Form, log_form, span_form
from spanreplay.store.journal_file import Durability, JournalFile
from spanreplay.store.journal_lines import JournalLines
from spanreplay.store.journal_reader import LOST, TYPE
from spanreplay.store.latest import Latest
from spanreplay.store.process import ProcessInfo, current_process
from spanreplay.store.record_text import OPEN, close_line, ids_of, origin_head, plain_line, span_line, step_line, step_record

_SEEN_SPANS: Final = 32_768
_LEAVING_SECONDS: Final = 1.0
_NOTHING: Final[Json] = {}
_NONE_DROPPED: Final = (0, 0, 0)
_PLAIN: Final = origin_head("recorder")


class JournalWriter:
    """Writes one process's journal. Thread-safe; a forked child goes on in a file of its own.

    Args:
        store: the store's folder, made when the first record is written.
        durability: when a record is safe; see :data:`~spanreplay.store.journal_file.Durability`.
        process: who writes.
    """

    def __init__(self, store: Path, *, durability: Durability = "process", process: ProcessInfo) -> None:
        self.store = store
        self._durability: Durability = durability
        self._begin(process)
        _writers.add(self)
        if durability == "batch":
            before_leaving(_flush_all)

    def _begin(self, process: ProcessInfo) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._process = process
        self._file = JournalFile(self.store, process, durability=self._durability)
        self._flusher = Flusher(self) if self._durability == "batch" else None
        self._lines = JournalLines(self._file, self._flusher)
        self._spans = Latest(_SEEN_SPANS)

    @property
    def process(self) -> ProcessInfo:
        """Who writes; another one in a forked child."""
        return self._process

    @property
    def file(self) -> str | None:
        """Name of the file that was written last."""
        return self._file.name

    @property
    def dropped(self) -> int:
        """Records that could not be written, in this process."""
        return self._file.dropped

    @property
    def last_error(self) -> BaseException | None:
        """Why a record was dropped last; an ``OSError`` where the file did not take it."""
        return self._file.last_error

    # ---- records ----------------------------------------------------------------------------------------------------

    def open_span(self, record: SpanRecord) -> None:
        """A span has started: ``record`` has what is known at the start, and no end."""
        self._span(OPEN, {TYPE: "open"}, record)

    def open_step(self, step: StepStarted, *, kind: int, resource: Resource, scope: Scope) -> None:
        """A step has started: as :meth:`open_span`, without a record in between."""
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()

                def line() -> str | None:
                    attributes = lines.attribute_text.text(step.attributes)
                    return step_line(step, kind, lines.content.resource(resource), lines.content.scope(scope)[1], attributes)

                if lines.put_joined(line):
                    self._spans.add(step.trace_id + step.span_id)
                    return
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)
            return
        self.open_span(step_record(step, kind=kind, resource=resource, scope=scope))

    def write_span(self, record: SpanRecord, origin: str) -> None:
        """A whole span.

        Args:
            record: the span.
            origin: who made it: ``recorder``, ``exporter``, ``import`` or ``receiver``.
        """
        self._span(origin_head(origin), {TYPE: "span", "origin": origin}, record)

    def open_plain(self, place: str, run: str, resource: Resource, scope: Scope) -> bool:
        """A span of somebody else has started: as :meth:`open_span`, without a record in between. Gives ``True``.

        Args:
            place: what :func:`~spanreplay.store.record_text.plain_place` gave.
            run: members of the attributes' JSON that say which run it is of; ``""`` for none.
            resource: of the span.
            scope: of the span.
        """
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()
                self._file.put(plain_line(OPEN, place, run, lines.content.origin(resource, scope)))
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)
        return True

    def write_plain(
        self, place: str, run: str, attributes: Mapping[str, Any], redactor: Redactor | None, resource: Resource, scope: Scope
    ) -> bool:
        """A whole span of somebody else that has nothing but attributes: as :meth:`write_span`, without a record in between.

        Args:
            place: what :func:`~spanreplay.store.record_text.plain_place` and :func:`~spanreplay.store.record_text.plain_end` gave.
            run: as for :meth:`open_plain`.
            attributes: as they were given.
            redactor: knows what is a secret; ``None``: nothing is.
            resource: of the span.
            scope: of the span.

        Returns:
            ``False`` where nothing was written: there is a secret in it, or something that only :meth:`write_span` can write or can count.
        """
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()

                def line() -> str | None:
                    members = lines.attribute_text.clean(attributes, redactor)
                    if members is None:
                        return None
                    if run:
                        members.insert(0, run)
                    return plain_line(_PLAIN, place, ",".join(members), lines.content.origin(resource, scope))

                if not lines.put_joined(line):
                    return False
                self._spans.add(ids_of(place))
                return True
        except Exception:  # noqa: BLE001 - telemetry never breaks the agent
            return False

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
        dropped: tuple[int, int, int] = _NONE_DROPPED,
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
            dropped: attributes, events and links that the SDK has dropped since the start.
        """
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()
                if not (events or links or status_message or name is not None or dropped != _NONE_DROPPED):

                    def line() -> str:
                        text = lines.attribute_text.text(attributes) if attributes else ""
                        return close_line(trace_id, span_id, end_ns, status, text)

                    if lines.put_joined(line):
                        return
                form: Form = {TYPE: "close", TRACE: trace_id, SPAN: span_id, END: end_ns}
                if status:
                    form[STATUS] = status
                if status_message:
                    form[MESSAGE] = encode_text(status_message, lines.keep)
                if name is not None:
                    form[NAME] = encode_text(name, lines.keep)
                if dropped != _NONE_DROPPED:
                    form[DROPPED] = list(dropped)
                lines.put_additions(form, attributes, events, links)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

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
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()
                lines.put_additions({TYPE: "patch", TRACE: trace_id, SPAN: span_id}, attributes, events, links)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

    def write_log(self, record: LogRecord, origin: str | None = None) -> None:
        """A log record.

        Args:
            record: the log record.
            origin: who made it, as for :meth:`write_span`; ``recorder`` where it is not said.
        """
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()
                form: Form = {TYPE: "log"} if origin is None else {TYPE: "log", "origin": origin}
                attributes = lines.attributes(record.attributes, form)
                form.update(
                    log_form(record, lines.content.resource(record.resource), lines.content.scope(record.scope)[0], lines.keep, _NOTHING)
                )
                lines.put(form, attributes)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

    def tell_lost(self, records: int) -> None:
        """Says of this process that so many records never came here, as what makes them has failed: all its runs lack something."""
        try:
            with self._lock:
                self._lines.look()
                self._file.put(to_json({TYPE: "drop", "n": records, "why": {"recorder": records}}))
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error, records)

    def sync(self) -> None:
        """Everything written so far is on the disk when this returns, unless the disk says no, which counts as a drop."""
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                self._lines.look(at_once=True)
                self._file.sync()
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

    def flush(self) -> None:
        """Everything gathered so far is with the operating system when this returns."""
        with self._lock:
            self._file.flush()

    def seen(self, trace_id: str, span_id: str) -> bool:
        """Whether this process has written that span, among the last 32768 it wrote."""
        return trace_id + span_id in self._spans

    def close(self) -> None:
        """Ends the journal. A later record starts a new file."""
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                self._lines.look(at_once=True)
                self._lines.end()
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _span(self, head: str, form: Form, record: SpanRecord) -> None:
        try:
            if os.getpid() != self._pid:  # forked by C code, which runs no hooks of Python
                self._after_fork()
            with self._lock:
                lines = self._lines
                lines.look()
                attributes = lines.attributes(record.attributes, form)
                resource, (scope, scope_text) = lines.content.resource(record.resource), lines.content.scope(record.scope)
                line = None if LOST in form else span_line(head, record, resource, scope_text, attributes)
                if line is None:
                    form.update(span_form(record, resource, scope, lines.keep, _NOTHING))
                if lines.put(form, attributes) if line is None else self._file.put(line):
                    self._spans.add(record.trace_id + record.span_id)
        except Exception as error:  # noqa: BLE001 - telemetry never breaks the agent
            self._file.drop(error)

    def _after_fork(self) -> None:
        self._file.close()
        self._begin(current_process())


_writers: "weakref.WeakSet[JournalWriter]" = weakref.WeakSet()
_shared: dict[str, JournalWriter] = {}
_shared_lock = threading.Lock()


def get_writer(store: Path, *, durability: Durability = "process") -> JournalWriter:
    """The one writer of that store in this process, so that nothing is written twice.

    Args:
        store: the store's folder.
        durability: see :class:`JournalWriter`; who asks first decides.
    """
    key = str(Path(store).absolute())
    writer = _shared.get(key)
    if writer is None:
        with _shared_lock:
            writer = _shared.get(key)
            if writer is None:
                writer = _shared[key] = JournalWriter(Path(key), durability=durability, process=current_process())
    return writer


def _flush_all() -> None:
    """What this process has gathered is written; what a thread is writing just now is waited for, but not for ever."""
    for writer in list(_writers):
        if writer._flusher is not None and writer._pid == os.getpid() and writer._lock.acquire(timeout=_LEAVING_SECONDS):
            try:
                writer._file.flush()
            finally:
                writer._lock.release()


def _after_fork_in_child() -> None:
    global _shared_lock  # noqa: PLW0603 - another thread may have held it when the process forked
    _shared_lock = threading.Lock()
    for writer in list(_writers):
        writer._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

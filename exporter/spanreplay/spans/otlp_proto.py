"""OTLP in its protobuf encoding, with the message classes of ``opentelemetry-proto``.

``TracesData`` and ``ExportTraceServiceRequest`` are the same bytes, as are ``LogsData`` and ``ExportLogsServiceRequest``
(opentelemetry-proto 1.11.0). Which of the two a message is, it does not say: the wire types of its first record tell.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from spanreplay.spans._anyvalue import Fault
from spanreplay.spans._groups import consecutive
from spanreplay.spans._heads import Heads
from spanreplay.spans._proto_reader import read_attributes, read_log, read_span
from spanreplay.spans._proto_writer import clean, write_log, write_resource, write_scope, write_span
from spanreplay.spans._utf8 import repaired
from spanreplay.spans._wire import LEN, RECORDS, RESOURCE_GROUPS, SCHEMA_URL, SCOPE_GROUPS, Field, Signal, fields, signal
from spanreplay.spans.errors import REJECTED, RESOURCE_DROPPED, SIGNAL_SKIPPED, TEXT_REPLACED, FormatError, Problem, Problems, ignore, join
from spanreplay.spans.record import LogRecord, Record, Resource, Scope, SpanRecord

__all__ = ["Heads", "check_whole", "decode", "encode", "encode_logs"]

_R = TypeVar("_R", SpanRecord, LogRecord)
_M = TypeVar("_M", bound=Message)

_CUT: Final = "the end of the data"


def check_whole(data: bytes) -> None:
    """Looks at the groups of a message, not at its records: a request whose groups are cut or damaged is refused before anything is kept.

    Raises:
        FormatError: The bytes are no such message, or end too early; ``where`` is the place.
    """
    waiting = [(field, f"resource group {index}", 1) for index, field in enumerate(_groups(memoryview(data), "", (RESOURCE_GROUPS,)))]
    while waiting:
        field, path, depth = waiting.pop()
        for index, inner in enumerate(_groups(field.payload, path, SCOPE_GROUPS if depth == 1 else ())):
            waiting.append((inner, f"{path}, scope group {index}", 2))


def _groups(data: memoryview, path: str, numbers: tuple[int, ...]) -> list[Field]:
    found = []
    try:
        for field in fields(data):
            if not field.complete:
                raise FormatError(f"byte {field.at}", "a whole message", _CUT)  # noqa: TRY301
            if field.number in numbers:
                if field.wire != LEN:
                    raise FormatError(f"byte {field.at}", "a message", f"wire type {field.wire}")  # noqa: TRY301
                found.append(field)
    except FormatError as error:
        raise FormatError(f"{path} {error.where}".strip(), error.expected, error.found) from None
    return found


def decode(
    data: bytes, where: str = "", problems: Problems = ignore, *, kind: Signal | None = None, heads: Heads | None = None
) -> Iterator[Record]:
    """Reads the spans or log records of one message, in its order.

    Each record is parsed alone: one that is damaged, or half of which is cut off, is told to ``problems`` and left out.

    Args:
        data: ``TracesData``, ``LogsData`` or an export request of traces or logs.
        where: Names the message in problems and errors.
        problems: Told about everything left out or altered, before the next record is given.
        kind: ``spans`` or ``logs`` where that is known, as it is of a request; else the message is looked at.
        heads: The resources and scopes of messages before this one.

    Raises:
        FormatError: The bytes are no such message. Never after the first record.
    """
    prefix = f"{where}: " if where else ""
    view = memoryview(data)
    try:
        kind = kind or signal(view)
    except FormatError as error:
        raise FormatError(f"{prefix}{error.where}", error.expected, error.found) from None
    if kind == "other":
        problems(Problem(code=SIGNAL_SKIPPED, where=where, expected="traces or logs", found="another OTLP message, such as metrics"))
        return
    groups = [field for field in _walk(view, where, problems) if field.number == RESOURCE_GROUPS and field.wire == LEN]
    for index, group in enumerate(groups):
        name = "resource_logs" if kind == "logs" else "resource_spans"
        yield from _decode_group(group, kind, f"{prefix}{name}[{index}]", problems, heads or Heads())


def _walk(data: memoryview, path: str, problems: Problems) -> Iterator[Field]:
    try:
        for field in fields(data):
            if field.number == 0:
                problems(Problem(code=REJECTED, where=path, expected="a whole message", found=_CUT))
                return
            yield field
    except FormatError as error:
        place = f"{path} {error.where}".strip()
        problems(Problem(code=REJECTED, where=place, expected=error.expected, found=error.found))


def _decode_group(group: Field, kind: Signal, path: str, problems: Problems, heads: Heads) -> Iterator[Record]:
    parts = list(_walk(group.payload, path, problems))
    raw, schema_url = _head(parts, f"{path}.resource", problems)
    resource = heads.resources.get(_as_written(raw, schema_url), partial(_read_resource, raw, schema_url, f"{path}.resource"), problems)
    scopes = [field for field in parts if field.number in SCOPE_GROUPS and field.wire == LEN]
    for index, scoped in enumerate(scopes):
        place = f"{path}.{'scope_logs' if kind == 'logs' else 'scope_spans'}[{index}]"
        members = list(_walk(scoped.payload, place, problems))
        raw, schema_url = _head(members, f"{place}.scope", problems)
        scope = heads.scopes.get(_as_written(raw, schema_url), partial(_read_scope, raw, schema_url, f"{place}.scope"), problems)
        records = [field for field in members if field.number == RECORDS and field.wire == LEN]
        for number, field in enumerate(records):
            record = _decode_record(
                field, kind, resource, scope, f"{place}.{kind if kind == 'spans' else 'log_records'}[{number}]", problems
            )
            if record is not None:
                yield record


def _head(parts: list[Field], path: str, problems: Problems) -> tuple[bytes, str]:
    """The serialised resource or scope (field 1) of a group, and its schema url."""
    raw, schema_url = b"", ""
    for field in parts:
        if field.wire != LEN or field.number not in (1, SCHEMA_URL):
            continue
        if not field.complete:
            problems(Problem(code=RESOURCE_DROPPED, where=path, expected="a whole message", found=_CUT))
        elif field.number == 1:
            raw = bytes(field.payload)
        else:
            schema_url = bytes(field.payload).decode("utf-8", "replace")
    return raw, schema_url


def _as_written(raw: bytes, schema_url: str) -> bytes:
    return len(raw).to_bytes(4, "big") + raw + schema_url.encode()


def _read_resource(raw: bytes, schema_url: str, path: str, problems: Problems) -> Resource:
    faults: list[Fault] = []
    try:
        message = _parsed(ResourceMessage, raw, faults)
    except DecodeError as error:
        problems(Problem(code=RESOURCE_DROPPED, where=path, expected="a Resource message", found=_reason(error)))
        return Resource(schema_url=schema_url)
    attributes = read_attributes(message.attributes, faults)
    _tell(faults, path, problems)
    return Resource(attributes=attributes, schema_url=schema_url, dropped_attributes=message.dropped_attributes_count)


def _read_scope(raw: bytes, schema_url: str, path: str, problems: Problems) -> Scope:
    faults: list[Fault] = []
    try:
        message = _parsed(InstrumentationScope, raw, faults)
    except DecodeError as error:
        problems(Problem(code=RESOURCE_DROPPED, where=path, expected="an InstrumentationScope message", found=_reason(error)))
        return Scope(schema_url=schema_url)
    attributes = read_attributes(message.attributes, faults)
    _tell(faults, path, problems)
    return Scope(
        name=message.name,
        version=message.version,
        attributes=attributes,
        schema_url=schema_url,
        dropped_attributes=message.dropped_attributes_count,
    )


def _decode_record(field: Field, kind: Signal, resource: Resource, scope: Scope, path: str, problems: Problems) -> Record | None:
    faults: list[Fault] = []
    record: Record
    try:
        if not field.complete:
            raise FormatError("", "a whole message", _CUT)  # noqa: TRY301
        if kind == "logs":
            record = read_log(_parsed(LogMessage, bytes(field.payload), faults), resource, scope, faults)
        else:
            record = read_span(_parsed(SpanMessage, bytes(field.payload), faults), resource, scope, faults)
    except FormatError as error:
        problems(Problem(code=REJECTED, where=join(path, error.where), expected=error.expected, found=error.found))
        return None
    except DecodeError as error:
        problems(Problem(code=REJECTED, where=path, expected="a Span or LogRecord message", found=_reason(error)))
        return None
    if faults:
        _tell(faults, path, problems, record)
    return record


def _parsed(message: type[_M], raw: bytes, faults: list[Fault]) -> _M:
    try:
        return message.FromString(raw)
    except DecodeError:
        mended = repaired(raw, message.DESCRIPTOR)
        if mended is None:
            raise
        faults.append((TEXT_REPLACED, "", "UTF-8 text", "bytes that are none, such as half a character"))
        return message.FromString(mended)


def _reason(error: DecodeError) -> str:
    return str(error).rpartition(": ")[2] or "a damaged one"


def _tell(faults: list[Fault], path: str, problems: Problems, record: Record | None = None) -> None:
    trace_id, span_id = (record.trace_id, record.span_id) if record else (None, None)
    for code, place, expected, found in faults:
        problems(Problem(code=code, where=join(path, place), expected=expected, found=found, trace_id=trace_id, span_id=span_id))
    faults.clear()


def encode(spans: Iterable[SpanRecord], problems: Problems = ignore) -> bytes:
    """Gives the spans as one ``TracesData`` message, which is also the body of an ``ExportTraceServiceRequest``.

    Neighbours of equal resource and scope share a group, so the order is kept. What protobuf cannot hold is altered and told to
    ``problems``: a lone surrogate becomes U+FFFD, an integer beyond 64 bits its decimal text, nesting beyond 30 levels JSON text. A span
    whose ids are no hex, or whose numbers do not fit their fields, is left out (``rejected``).
    """
    message = TracesData()
    for resource, scopes in consecutive(spans):
        group = message.resource_spans.add(schema_url=clean(resource.schema_url))
        write_resource(resource, group.resource, [])
        for scope, members in scopes:
            scoped = group.scope_spans.add(schema_url=clean(scope.schema_url))
            write_scope(scope, scoped.scope, [])
            _write_all(members, "span", scoped.spans, write_span, problems)
    return message.SerializeToString()


def encode_logs(logs: Iterable[LogRecord], problems: Problems = ignore) -> bytes:
    """Gives the log records as one ``LogsData`` message, which is also the body of an ``ExportLogsServiceRequest``; see :func:`encode`."""
    message = LogsData()
    for resource, scopes in consecutive(logs):
        group = message.resource_logs.add(schema_url=clean(resource.schema_url))
        write_resource(resource, group.resource, [])
        for scope, members in scopes:
            scoped = group.scope_logs.add(schema_url=clean(scope.schema_url))
            write_scope(scope, scoped.scope, [])
            _write_all(members, "log record", scoped.log_records, write_log, problems)
    return message.SerializeToString()


def _write_all(records: list[_R], what: str, out: Any, write: Callable[[_R, Any, list[Fault]], None], problems: Problems) -> None:
    for record in records:
        faults: list[Fault] = []
        name = f"{what} {record.span_id or ''}".strip()
        try:
            write(record, out.add(), faults)
        except FormatError as error:
            del out[-1]
            problems(Problem(code=REJECTED, where=f"{name} {error.where}".strip(), expected=error.expected, found=error.found))
            continue
        _tell(faults, name, problems, record)

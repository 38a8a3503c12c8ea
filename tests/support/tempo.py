"""A stand-in for Tempo 3.0: takes OTLP over HTTP, limits it as its configuration says, and answers as its documentation shows.

What it does to spans: texts longer than ``distributor.max_attribute_bytes`` (2048 unless said otherwise) are cut at that byte, in the
middle of a character too; spans beyond ``overrides.defaults.global.max_bytes_per_trace`` (5,000,000) are refused, and the trace is answered
as a part; once in a block (``in_blocks``), spans have no flags and no schema urls; a trace larger than
``server.grpc_server_max_send_msg_size`` (16 MiB) is not given. Searches find what their TraceQL says (:mod:`support.traceql`).
Answers are JSON as Go's ``jsonpb`` writes it: ids in base64, enums by name, no defaults.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from recordings.servers import Loopback, Reply
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import SpanRecord, Value
from support import traceql

_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATUSES = ("UNSET", "OK", "ERROR")


class Tempo(Loopback):
    """``with Tempo(config) as tempo``: send to ``tempo.url``, fetch from ``tempo+{tempo.url}/TRACEID``.

    Attributes:
        asked: path and query of every request for something.
        shows_its_configuration: whether ``/status/config`` answers.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, version_1: bool = False, in_blocks: bool = False) -> None:
        super().__init__(self._respond)
        given = config or {}
        self._longest = self._cluster_longest = given.get("distributor", {}).get("max_attribute_bytes", 2048)
        self._largest = given.get("overrides", {}).get("defaults", {}).get("global", {}).get("max_bytes_per_trace", 5_000_000)
        ingestion = given.get("overrides", {}).get("defaults", {}).get("ingestion", {})
        self._longest = ingestion.get("max_attribute_bytes") or self._longest
        self._ingestion = {"burst_size_bytes": 30_000_000, "max_attribute_bytes": 0, **ingestion}
        self._largest_answer = given.get("server", {}).get("grpc_server_max_send_msg_size", 16 << 20)
        self._version_1 = version_1
        self._in_blocks = in_blocks
        self.shows_its_configuration = True
        self._traces: dict[str, dict[str, SpanRecord]] = {}
        self._sizes: dict[str, int] = {}
        self._partial: set[str] = set()
        self.asked: list[tuple[str, dict[str, list[str]]]] = []

    def _respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        url = urlsplit(path)
        if method == "POST":
            assert url.path == "/v1/traces"
            for record in otlp_proto.decode(body):
                assert isinstance(record, SpanRecord)
                self._keep(record)
            return 200, "application/x-protobuf", b""
        query = parse_qs(url.query)
        self.asked.append((url.path, query))
        assert headers.get("accept") in ("application/json", "*/*"), "as protobuf, half a character could not be read"
        return self._get(url.path, query)

    def _get(self, path: str, query: Mapping[str, list[str]]) -> Reply:
        *before, last = path.strip("/").split("/")
        if path == "/ready":
            return 200, "text/plain", b"ready\n"
        if path == "/api/status/buildinfo":
            return _json({"version": "3.0.0", "revision": "0123abc", "branch": "HEAD", "goVersion": "go1.26"})
        if path == "/status/config" and self.shows_its_configuration:
            server = f"server:\n    http_listen_port: 3200\n    grpc_server_max_send_msg_size: {self._largest_answer}\n"
            distributor = f"distributor:\n    receivers: {{}}\n    max_attribute_bytes: {self._cluster_longest}\n"
            ingestion = "        ingestion:\n" + "".join(f"            {name}: {value}\n" for name, value in self._ingestion.items())
            overall = f"        global:\n            max_bytes_per_trace: {self._largest}\n"
            return 200, "text/plain", f"target: all\n{server}{distributor}overrides:\n    defaults:\n{ingestion}{overall}".encode()
        if path == "/api/search":
            search = traceql.parse(query["q"][0])
            found = [trace for trace, spans in self._traces.items() if any(map(search, spans.values()))]
            listed = [{"traceID": trace.lstrip("0"), "rootServiceName": "shop", "rootTraceName": "run"} for trace in found]
            return _json({"traces": listed, "metrics": {}})
        if before[:1] != ["api"] or before[-1] != "traces" or last not in self._traces or (before[1] == "v2" and self._version_1):
            return 404, "text/plain", b"trace not found"
        document = _as_go_writes(otlp_json.encode(list(self._traces[last].values())))
        if self._sizes[last] > self._largest_answer:
            return 500, "text/plain", f"response larger than the max ({self._sizes[last]} vs {self._largest_answer})".encode()
        if before[1] != "v2":
            return _json({"batches": document["resourceSpans"]})
        partial = {"status": "PARTIAL", "message": "trace exceeds max size"} if last in self._partial else {}
        return _json({"trace": document, "metrics": {"inspectedBytes": "1"}, **partial})

    def _keep(self, span: SpanRecord) -> None:
        size = self._sizes.get(span.trace_id, 0) + len(otlp_proto.encode([span]))
        if 0 < self._largest < size:
            self._partial.add(span.trace_id)
            return
        self._sizes[span.trace_id] = size
        resource = replace(span.resource, attributes=self._cut(span.resource.attributes))
        events = tuple(replace(event, attributes=self._cut(event.attributes)) for event in span.events)
        kept = replace(span, attributes=self._cut(span.attributes), resource=resource, events=events)
        self._traces.setdefault(span.trace_id, {})[span.span_id] = in_a_block(kept) if self._in_blocks else kept

    def _cut(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {name: self._shortened(value) if isinstance(value, str) else value for name, value in attributes.items()}

    def _shortened(self, text: str) -> str:
        data = text.encode()
        # Go's JSON puts U+FFFD for each byte of half a character.
        return data[: self._longest].decode("utf-8", "replace") if 0 < self._longest < len(data) else text


def in_a_block(span: SpanRecord) -> SpanRecord:
    """What the schema of Tempo's blocks has a place for (``tempodb/encoding/vparquet5/schema.go``)."""
    links = tuple(replace(link, flags=0) for link in span.links)
    return replace(span, flags=0, links=links, resource=replace(span.resource, schema_url=""), scope=replace(span.scope, schema_url=""))


def _json(document: object) -> Reply:
    return 200, "application/json", json.dumps(document, ensure_ascii=False).encode()


def _as_go_writes(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        # Of a oneof, what is set is written, empty or not.
        return {name: _as_go_writes(inner, name) for name, inner in value.items() if inner != "" or name == "stringValue"}
    if isinstance(value, list):
        return [_as_go_writes(item) for item in value]
    if key in ("traceId", "spanId", "parentSpanId"):
        return base64.b64encode(bytes.fromhex(value)).decode()
    if key == "kind":
        return f"SPAN_KIND_{_KINDS[value]}"
    if key == "code":
        return f"STATUS_CODE_{_STATUSES[value]}"
    return value

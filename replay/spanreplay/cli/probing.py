"""What is at an endpoint, and whether it would cut, refuse or lose what agents say: asked without leaving a span there.

The size of a message is tried out with requests that hold a field which OTLP does not know, and no span: receivers read over it.
"""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from spanreplay.cli.collector_metrics import Metrics
from spanreplay.cli.collector_metrics import read as metrics
from spanreplay.cli.sending import Address, address_of

if TYPE_CHECKING:
    import requests

    from spanreplay.replay.inputs.remote import Access

MIB: Final = 1 << 20
WANTED: Final = 64 * MIB
"""What the OTLP specification (1.11) recommends to take in one message."""
SIZES: Final = (64, 20, 4)
"""MiB: what is wanted, and what Collectors take by default over HTTP and gRPC."""
TEMPO_LIMIT: Final = 2048
"""Bytes of an attribute, unless Tempo is configured."""

_UNKNOWN_FIELD: Final = b"\x7a"
"""Field 15, length-delimited; an export request has field 1 only."""
_NO_MESSAGE: Final = b"\x0a\xff"
"""Field 1 with half a length."""
_EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_JAEGER_VERSION: Final = re.compile(r'"gitVersion"\s*:\s*"([^"]{1,40})"')
_TEMPO_LIMITS: Final = (
    ("distributor", "max_attribute_bytes", "cuts attributes at {} bytes", "distributor.max_attribute_bytes: 0"),
    ("overrides", "max_attribute_bytes", "cuts attributes at {} bytes", "overrides.defaults.ingestion.max_attribute_bytes: 0"),
    (
        "overrides",
        "max_bytes_per_trace",
        "refuses spans of a trace beyond {} bytes",
        "overrides.defaults.global.max_bytes_per_trace: 1073741824",
    ),
    ("overrides", "burst_size_bytes", "refuses messages of more than {} bytes", "overrides.defaults.ingestion.burst_size_bytes: 134217728"),
    (
        "server",
        "grpc_server_max_send_msg_size",
        "cannot give a trace of more than {} bytes",
        "server.grpc_server_max_send_msg_size: 104857600, and what stands beside it in the shipped tempo.yaml",
    ),
)
"""Section and name of what limits content in the configuration, what it does, and the line that ends it; 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    what: str
    ok: bool
    detail: str
    advice: str = ""
    """The line to change; empty where all is well."""


@dataclass(slots=True, kw_only=True)
class Examined:
    """What is at an endpoint."""

    endpoint: str
    kind: str | None = None
    """``otlp-http``, ``otlp-grpc``, ``collector`` (its metrics), ``jaeger``, ``tempo``, ``spanreplay``; ``None``: nothing of these."""
    version: str | None = None
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing has to be changed."""
        return all(check.ok for check in self.checks)

    def note(self, what: str, ok: bool, detail: str, advice: str = "") -> None:
        """Adds a check."""
        self.checks.append(Check(what=what, ok=ok, detail=detail, advice=advice))


def examine(endpoint: str, access: "Access") -> Examined:
    """Looks at an endpoint: the query address of Jaeger or Tempo, the metrics of a Collector, or where OTLP is sent.

    Args:
        endpoint: a URL; ``grpc://HOST:4317`` for OTLP over gRPC.
        access: how to be let in.

    Raises:
        NoEndpoint: it is none.
    """
    address = address_of(endpoint)
    found = Examined(endpoint=endpoint)
    if address.grpc:
        _grpc(found, address, access)
        return found
    session = _session(access)
    parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1/traces').removesuffix('/metrics')}"
    with session:
        try:
            _over_http(found, session, base, address.text, access)
        except OSError as error:  # requests' exceptions are some
            found.checks.clear()
            found.note("reachable", False, f"no answer: {_short(error)}", "start it, or give another --endpoint")
    return found


def _session(access: "Access") -> "requests.Session":
    import requests

    session = requests.Session()
    session.trust_env = False
    session.headers.update(access.headers)
    if access.bearer is not None:
        session.headers["Authorization"] = f"Bearer {access.bearer}"
    elif access.basic is not None:
        session.auth = access.basic
    if access.tenant is not None:
        session.headers.update({"X-Scope-OrgID": access.tenant, "x-tenant": access.tenant})
    if access.ca is not None:
        session.verify = str(access.ca)
    if access.cert is not None:
        session.cert = (str(access.cert), str(access.key)) if access.key is not None else str(access.cert)
    return session


def _over_http(found: Examined, session: "requests.Session", base: str, otlp: str, access: "Access") -> None:
    build = _json(session, f"{base}/api/status/buildinfo", access)
    if isinstance(build.get("version"), str):
        found.kind, found.version = "tempo", build["version"]
        found.note("reachable", True, f"Tempo {found.version}")
        _tempo(found, session, base, access)
        return
    services = _json(session, f"{base}/api/v3/services", access)
    if services.keys() <= {"services"} and services is not _NOTHING:
        page = _text(session, f"{base}/", access)
        version = _JAEGER_VERSION.search(page)
        found.kind, found.version = "jaeger", version[1] if version else None
        names = services.get("services") or []
        found.note("reachable", True, f"Jaeger{f' {found.version}' if found.version else ''}, {len(names)} services with traces")
        found.note("content", True, "Jaeger cuts nothing; what its OTLP port takes is told by --endpoint http://HOST:4318")
        return
    said = metrics(_text(session, f"{base}/metrics", access))
    if said is not None:
        _collector(found, said)
        return
    _sizes(found, "otlp-http", lambda body: _posted(session, otlp, body, access), "http: {max_request_body_size: 67108864}")
    if found.kind is not None:
        _own(found, session, base, access)


def _collector(found: Examined, said: Metrics) -> None:
    found.kind, found.version = "collector", said.version
    found.note("reachable", True, f"metrics of a Collector{f' {said.version}' if said.version else ''}")
    advice = "its log says why; retry_on_failure: {max_elapsed_time: 0} and sending_queue: {block_on_overflow: true} keep what can be kept"
    for exporter, count in said.lost.items():
        found.note("lost", False, f"{exporter} has given up {count} spans since it was started", advice)
    if not said.lost:
        found.note(
            "lost", True, "no exporter has given up a span since it was started; what it takes is told by --endpoint http://HOST:4318"
        )


def _own(found: Examined, session: "requests.Session", base: str, access: "Access") -> None:
    """``spanreplay serve`` says what it is, and whether it can keep what it is sent."""
    health = _json(session, f"{base}/healthz", access, statuses=(200, 503))
    if health.get("service") == "spanreplay":
        found.kind, found.version = "spanreplay", str(health.get("version"))
        failing = health.get("status") != "ok"
        what = f"spanreplay serve {found.version}"
        if failing:
            found.note("store", False, f"{what}: cannot keep what it is sent: {health.get('reason')}", "free or mend the disk of its store")
        else:
            found.note("store", True, f"{what}: cuts nothing, keeps everything in its store")


_NOTHING: Final[Mapping[str, Any]] = {}


def _json(session: "requests.Session", url: str, access: "Access", statuses: tuple[int, ...] = (200,)) -> Mapping[str, Any]:
    try:
        found = json.loads(_text(session, url, access, statuses))
    except ValueError:
        return _NOTHING
    return found if isinstance(found, dict) else _NOTHING


def _text(session: "requests.Session", url: str, access: "Access", statuses: tuple[int, ...] = (200,)) -> str:
    with session.get(url, timeout=access.timeout_s, allow_redirects=False, stream=True) as answer:
        body = answer.raw.read(MIB, decode_content=True)
        return body.decode("utf-8", "replace") if answer.status_code in statuses else ""


def _tempo(found: Examined, session: "requests.Session", base: str, access: "Access") -> None:
    config = _text(session, f"{base}/status/config", access)
    if _setting(config, "distributor", "max_attribute_bytes") is None:
        advice = "in Tempo set distributor.max_attribute_bytes: 0"
        found.note("content", False, f"it does not show its configuration; by default it cuts attributes at {TEMPO_LIMIT} bytes", advice)
        return
    for section, name, does, line in _TEMPO_LIMITS:
        limit = _setting(config, section, name)
        if limit is not None and 0 < limit < WANTED:
            found.note("content" if name == "max_attribute_bytes" else "size", False, does.format(limit), f"in Tempo set {line}")
    if found.ok:
        found.note("content", True, "cuts no attributes, unless a tenant has a limit of its own")
        found.note("otlp", True, "what its OTLP port takes is told by --endpoint http://HOST:4318")


def _setting(config: str, section: str, name: str) -> int | None:
    """A number in what ``/status/config`` shows: YAML, defaults included, limits of single tenants not."""
    lines = iter(config.splitlines())
    wanted = re.compile(rf"[ \t]+{name}:[ \t]*(\d{{1,19}})[ \t]*$")
    for line in lines:
        if line == f"{section}:":
            break
    for line in lines:
        if line[:1] not in (" ", "\t"):
            break
        if value := wanted.match(line):
            return int(value[1])
    return None


def _posted(session: "requests.Session", url: str, body: bytes, access: "Access") -> str | None:
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    answer = session.post(url, data=gzip.compress(body, 1), headers=headers, timeout=access.timeout_s, allow_redirects=False)
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.reason}"
    if answer.headers.get("Content-Type", "").startswith("application/x-protobuf") or body == _NO_MESSAGE:
        return None
    # Health pages and the like answer everything alike; a receiver refuses what is no message.
    accepted = _posted(session, url, _NO_MESSAGE, access) is None
    return "whatever it is sent, it answers 200" if accepted else None


def _grpc(found: Examined, address: Address, access: "Access") -> None:
    import grpc

    options = [("grpc.max_send_message_length", WANTED + MIB)]
    zipped = grpc.Compression.Gzip
    if address.secure:
        trusted = grpc.ssl_channel_credentials(access.ca.read_bytes() if access.ca is not None else None)
        channel = grpc.secure_channel(address.text, trusted, options=options, compression=zipped)
    else:
        channel = grpc.insecure_channel(address.text, options=options, compression=zipped)
    bearer = () if access.bearer is None else (("authorization", f"Bearer {access.bearer}"),)
    metadata = (*((name.lower(), value) for name, value in access.headers.items()), *bearer)
    with channel:
        export: Any = channel.unary_unary(_EXPORT)

        def sent(body: bytes) -> str | None:
            try:
                export(body, timeout=access.timeout_s, metadata=metadata)
            except grpc.RpcError as error:
                return f"{error.code().name}: {error.details()}"
            return None

        _sizes(found, "otlp-grpc", sent, "grpc: {max_recv_msg_size_mib: 64}")


def _sizes(found: Examined, kind: str, send: Any, line: str) -> None:
    """Sends nothing, in ever smaller messages, until one is taken."""
    refused = send(b"")
    if refused is not None:
        found.note("reachable", False, f"takes no OTLP: {refused}", "give the query address of Jaeger or Tempo, or an OTLP endpoint")
        return
    found.kind = kind
    found.note("reachable", True, f"takes OTLP over {kind.removeprefix('otlp-').replace('http', 'HTTP').replace('grpc', 'gRPC')}")
    taken = next((size for size in SIZES if send(_padding(size * MIB - 64)) is None), None)
    if taken == SIZES[0]:
        found.note("message size", True, f"takes messages of {taken} MiB")
        return
    less = f"takes messages of {taken} MiB, not of {SIZES[0]}" if taken else f"takes no messages of {SIZES[-1]} MiB"
    found.note("message size", False, less, f"in the receiver set otlp: protocols: {line}")


def _padding(size: int) -> bytes:
    length, rest = bytearray(), size
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return _UNKNOWN_FIELD + bytes(length) + bytes(size)


def _short(error: BaseException) -> str:
    inner: BaseException = error
    while inner.args and isinstance(inner.args[0], BaseException):
        inner = inner.args[0]
    return re.sub(r"^(<[^>]*>|\w+\([^)]*\)): ", "", str(getattr(inner, "reason", inner)))

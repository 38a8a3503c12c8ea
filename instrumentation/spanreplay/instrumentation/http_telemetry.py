"""Requests that report on the program instead of doing its work: never a step, and never sent by a replay."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry import context as otel_context

from spanreplay.boundary.session import Session
from spanreplay.instrumentation.http_body import header
from spanreplay.instrumentation.http_request import Head

OTLP_PATHS: Final = ("/v1/traces", "/v1/logs", "/v1/metrics", "/v1development/profiles")
"""Where OTLP over HTTP is sent, under any prefix (OTLP specification, "OTLP/HTTP Request")."""
OTLP_TYPES: Final = frozenset({"application/x-protobuf", "application/json"})

_SUPPRESSED: Final = tuple(
    key for key in (getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", None), "suppress_instrumentation") if key is not None
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a vendor's client library reports to."""

    host: str
    """The host, or the end of it; empty for any host."""
    paths: tuple[str, ...] = ()
    """Beginnings of the path; empty for any path."""
    content_type: str = ""
    """Beginning of the content type; empty for any."""
    request: re.Pattern[str] | None = None
    """What method and path are together; ``None`` for any."""
    agent: str = ""
    """Beginning of the ``User-Agent``, of a library that reports to hosts of its users' own; empty for any."""

    def is_at(self, method: str, host: str, path: str) -> bool:
        """Is this one of its hosts, and a request that reports to it as far as method and path tell?"""
        return (
            (not self.host or host == self.host or host.endswith("." + self.host))
            and (not self.paths or path.startswith(self.paths))
            and (self.request is None or self.request.fullmatch(f"{method} {path}") is not None)
        )

    def takes(self, head: Head) -> bool:
        """Does this request, of which method and path are known to, report to it?"""
        return head.content_type.lower().startswith(self.content_type) and header(head.headers, "user-agent").startswith(self.agent)


_TO_LANGSMITH: Final = re.compile(
    r"(?:GET .*/info|POST .*/(?:runs(?:/batch|/multipart)?|otel/.*|feedback(?:/.*)?)|PATCH .*/(?:runs|feedback)/[^/]+)"
)
"""Runs are also read at these paths, which is work: ``GET /runs/ID``, ``POST /runs/query``."""

VENDORS: Final[tuple[Destination, ...]] = (
    Destination("api.openai.com", ("/v1/traces/ingest",)),
    Destination("smith.langchain.com", request=_TO_LANGSMITH),
    Destination("", request=_TO_LANGSMITH, agent="langsmith-py/"),  # hosted anywhere
    Destination("", ("/api/public/ingestion", "/api/public/otel")),  # Langfuse, hosted anywhere
    Destination("posthog.com", ("/batch", "/capture", "/e/", "/i/v0/e", "/track", "/engage")),
    Destination("ingest.sentry.io"),
    Destination("ingest.us.sentry.io"),
    Destination("ingest.de.sentry.io"),
    Destination("", ("/api/",), "application/x-sentry-envelope"),
    Destination("telemetry.crewai.com"),
    Destination("os-api.agno.com", ("/telemetry/",)),
    Destination("trace.wandb.ai", ("/call/", "/obj/create", "/table/create", "/file/create", "/otel")),
    Destination("api.segment.io"),
    Destination("api.mixpanel.com", ("/track", "/engage", "/import")),
    Destination("amplitude.com", ("/2/httpapi", "/batch")),
    Destination("datadoghq.com", ("/api/intake/", "/api/v2/logs", "/api/v2/series", "/api/v2/llmobs", "/v1/input")),
    Destination("api.honeycomb.io", ("/1/batch", "/1/events")),
    Destination("api.braintrust.dev", ("/logs3", "/otel")),
    Destination("mlflow-telemetry.io"),
    Destination("agentops.ai", ("/v2/", "/v3/", "/v4/")),
    Destination("huggingface.co", ("/api/telemetry",)),
    Destination("telemetry.scarf.sh"),
)
"""Paths are those that report; the same hosts also serve prompts, flags and data sets, which are part of the agent's work."""


def is_suppressed() -> bool:
    """Did the caller ask, the OpenTelemetry way, that this request is not observed?

    Exporters do; and instrumentation that has made its own span of a model call, so that the client below makes no second one.
    """
    current = otel_context.get_current()
    return any(current.get(key) for key in _SUPPRESSED)


def is_telemetry(head: Head) -> bool:
    """Is this an OTLP export or a vendor's own telemetry?"""
    path = head.path
    if head.method in ("POST", "PUT") and path.rstrip("/").endswith(OTLP_PATHS):
        return head.content_type.partition(";")[0].strip().lower() in OTLP_TYPES
    return any(vendor.takes(head) for vendor in _vendors_at(head.method, head.host, path))


@lru_cache(maxsize=256)
def _vendors_at(method: str, host: str, path: str) -> tuple[Destination, ...]:
    return tuple(vendor for vendor in VENDORS if vendor.is_at(method, host.lower(), path))


# ---- what a replay dropped ----------------------------------------------------------------------------------------

_dropped: Final[WeakKeyDictionary[Session, Counter[str]]] = WeakKeyDictionary()


def drop(session: Session, head: Head) -> None:
    """Count a request that a replay answered with an empty 200 instead of sending it."""
    _dropped.setdefault(session, Counter())[head.authority] += 1


def dropped(session: Session) -> Mapping[str, int]:
    """How many telemetry requests the session has dropped, by host (and port, unless it is the scheme's own)."""
    return dict(_dropped.get(session, ()))

"""What each road loses of a span, attribute by attribute, against what was recorded; and the fidelity report says just that."""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from backends.running import Jaeger, Peers, get, until
from spanreplay.cli.sending import address_of, send
from spanreplay.replay.inputs.remote import Access, open_remote
from spanreplay.replay.inputs.source import Opened, open_source
from spanreplay.spans.record import EventRecord, LinkRecord, Resource, Scope, SpanRecord
from support.command_line import CommandLine

TRACE: Final = "ab" * 16
ROOT: Final = f"{1:016x}"
NOW: Final = time.time_ns() // 1_000_000 * 1_000_000 - 10**9
LINKED: Final = LinkRecord(trace_id="cd" * 16, span_id="ef" * 8)

FEATURES: Final[Mapping[str, Mapping[str, Any]]] = {
    "root": {},
    "client": {"kind": 3},
    "kind unspecified": {"kind": 0},
    "ok": {"status": 1},
    "error": {"status": 2, "status_message": "no room"},
    "integers": {"attributes": {"large": 2**53 + 1, "below": -5}},
    "floats": {"attributes": {"whole": 1.0, "part": 0.1}},
    "texts": {"attributes": {"said": 'ä — 𝄞 "\\" \n', "empty": "", "json": '{"a": [1]}'}},
    "bytes": {"attributes": {"raw": b"\x00\xff"}},
    "nothing": {"attributes": {"nothing": None}},
    "list": {"attributes": {"list": ("a", "b")}},
    "map": {"attributes": {"map": {"x": 1, "y": {"z": 1.0}}}},
    "names of Jaeger": {"attributes": {"error": "mine", "span.kind": "x"}},
    "events": {"events": (EventRecord(name="b", time_ns=NOW + 5000), EventRecord(name="a", time_ns=NOW + 6000, attributes={"k": 1}))},
    "an event's event": {"events": (EventRecord(name="hidden", time_ns=NOW + 5000, attributes={"event": "x"}),)},
    "link": {"links": (LINKED,)},
    "link with more": {"links": (dataclasses.replace(LINKED, attributes={"why": "retry"}, trace_state="a=b", flags=1),)},
    "trace state": {"trace_state": "v=1"},
    "flags": {"flags": 0x301},
    "dropped": {"dropped_attributes": 2, "dropped_events": 1, "dropped_links": 3},
    "scope": {"scope": Scope(name="s", version="1", attributes={"a": 1}, schema_url="https://example.org/scope")},
    "resource": {"resource": Resource(attributes={"service.name": "losses", "a": 2}, schema_url="https://example.org/resource")},
}
"""Each span has one thing that a road may lose."""

SPANS: Final = [
    SpanRecord(
        **{
            "trace_id": TRACE,
            "span_id": f"{number:016x}",
            "parent_span_id": None if number == 1 else ROOT,
            "name": name,
            "kind": 1,
            "start_ns": NOW + 1_000 * number + 123,
            "end_ns": NOW + 1_000_000 + 1_000 * number + 456,  # after its parent: Jaeger remarks on that
            "resource": Resource(attributes={"service.name": "losses"}),
            "scope": Scope(name="s", version="1"),
            **features,
        }
    )
    for number, (name, features) in enumerate(FEATURES.items(), 1)
]


def differences(recorded: Any, found: Any, path: str = "") -> Iterator[str]:
    """Paths at which two records differ; ``1`` is not ``1.0``."""
    if dataclasses.is_dataclass(recorded) and type(recorded) is type(found):
        for each in dataclasses.fields(recorded):
            yield from differences(getattr(recorded, each.name), getattr(found, each.name), f"{path}.{each.name}".lstrip("."))
    elif isinstance(recorded, dict) and isinstance(found, dict):
        for key in recorded | found:
            yield from differences(recorded.get(key, ...), found.get(key, ...), f"{path}.{key}")
    elif isinstance(recorded, tuple) and isinstance(found, tuple) and len(recorded) == len(found):
        for one, other in zip(recorded, found, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif type(recorded) is not type(found) or recorded != found:
        yield path


@dataclass(frozen=True, slots=True)
class Loss:
    """One entry of the fidelity report, and where it shows."""

    code: str
    shows: frozenset[str]
    """Paths of differences that it explains."""
    of_all: bool
    """Said of every span, since nothing in the answer tells which had it."""


SDK: Final = [Loss(f"dropped-{what}", frozenset(), False) for what in ("attributes", "events", "links")]
"""Lost before any of this; the counts tell, where they come through."""
V3: Final = [Loss("schema-urls-lost", frozenset({"scope.schema_url", "resource.schema_url"}), True), *SDK]
LEGACY: Final = [
    Loss("time-us", frozenset({"start_ns", "end_ns"}), True),
    Loss(
        "dropped-counts-lost",
        frozenset({"flags", "dropped_attributes", "dropped_events", "dropped_links", "attributes.nothing"}),
        True,
    ),
    Loss("scope-attributes-lost", frozenset({"scope.attributes.a", "scope.schema_url", "resource.schema_url"}), True),
    Loss("values-flattened", frozenset({"attributes.list", "attributes.map"}), False),
    Loss("link-attributes-lost", frozenset({"links[].trace_state", "links[].flags", "links[].attributes.why"}), False),
]
UNTOLD: Final = frozenset({"events[].name", "events[].attributes.event"})
"""An event's own attribute ``event`` takes the place of its name in Jaeger's JSON, and nothing shows that it did."""


def check(opened: Opened, losses: Sequence[Loss], untold: frozenset[str] = frozenset(), *, recorded: Sequence[SpanRecord] = SPANS) -> None:
    found = {record.span_id: record for record in opened.records}
    assert len(found) == len(recorded)
    lost = {span.name: set(differences(span, found[span.span_id])) for span in recorded}
    explained = {path for loss in losses for path in loss.shows}
    assert set().union(*lost.values()) == explained | untold
    for loss in losses:
        if loss.shows:
            assert any(loss.shows & paths for paths in lost.values()), loss.code
    told = {str(entry["code"]): entry["spans"] for entry in opened.report.fidelity}
    assert set(told) == {loss.code for loss in losses}
    for loss in losses:
        if loss.of_all:
            assert told[loss.code] == len(SPANS)


def stored(peers: Peers) -> tuple[Jaeger, str]:
    """The spans in a Jaeger, and the path of a Collector's file with them."""
    jaeger = peers.jaeger()
    collector = peers.collector("dev", view=jaeger.http)
    send(SPANS, address=address_of(collector.grpc), headers={}, timeout_s=30)
    until("every span in Jaeger", lambda: len(jaeger.spans(TRACE)) == len(SPANS) or None)
    return jaeger, str(collector.traces)


def test_what_is_lost_is_what_the_report_says(peers: Peers, spanreplay: CommandLine) -> None:
    jaeger, file = stored(peers)
    legacy = spanreplay.folder / "legacy.json"
    legacy.write_bytes(get(f"{jaeger.query}/api/traces/{TRACE}?raw=true") or b"")
    check(open_source(file), SDK)
    check(open_remote(f"jaeger+{jaeger.query}/{TRACE}", Access()), V3)
    check(open_source(str(legacy)), LEGACY, UNTOLD)

    # Somebody asks for it adjusted: Jaeger changes what it has in memory.
    assert get(f"{jaeger.query}/api/v3/traces/{TRACE}")
    adjusted = open_remote(f"jaeger+{jaeger.query}/{TRACE}", Access())
    check(adjusted, [*V3, Loss("backend-attributes", frozenset(), False), Loss("events-sorted", frozenset(), False)])

"""A Tempo that somebody has, with the shipped ``tempo.yaml``: runs are found there by TraceQL, come back whole, and replay equal.

It runs where ``SPANREPLAY_TEMPO`` is the URL of its API, such as ``http://127.0.0.1:3200``, and ``SPANREPLAY_TEMPO_OTLP`` that of its OTLP
over HTTP, if it is not port 24318 of this machine. Nothing builds, fetches or starts a Tempo, whose licence is the AGPL: take one that you
have. What is sent has new ids each time, and stays there.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acceptance.commands import assert_equal, runs_of
from backends.running import Peers, until
from backends.test_losses import SDK, SPANS, check
from backends.test_round_trips import INSTRUMENT, TRIP, desk_sending_to
from backends.test_tempo import EXAMPLES, TEMPO
from spanreplay.cli.sending import address_of, send
from spanreplay.replay.inputs.remote import Access, open_remote
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import Opened
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine

API = os.environ.get("SPANREPLAY_TEMPO", "").rstrip("/")
OTLP = os.environ.get("SPANREPLAY_TEMPO_OTLP", "http://127.0.0.1:24318")

pytestmark = pytest.mark.skipif(not API, reason="SPANREPLAY_TEMPO=http://127.0.0.1:3200 runs it at a Tempo with the shipped tempo.yaml")


def fetched(trace: str, spans: int) -> Opened:
    """A trace, once Tempo gives all of it."""

    def look() -> Opened | None:
        try:
            opened = open_remote(f"tempo+{API}/{trace}", Access())
        except UnreadableSource:
            return None
        return opened if len(list(opened.records)) == spans else None

    until(f"{spans} spans of {trace} in Tempo", look)
    return open_remote(f"tempo+{API}/{trace}", Access())


def test_it_is_well(spanreplay: CommandLine) -> None:
    done = spanreplay("doctor", "--endpoint", API, "--endpoint", OTLP)
    assert done.code == 0, done


def test_the_demos_agent_is_found_comes_back_and_replays_equal(peers: Peers, spanreplay: CommandLine, tmp_path: Path) -> None:
    collector = peers.collector("dev", view=OTLP)
    desk = desk_sending_to(collector, tmp_path / "desk", "full")
    (outbox := desk.root / "outbox").mkdir()
    command = [sys.executable, str(TRIP), str(outbox)]
    recorded = desk.record([INSTRUMENT, *command])
    assert recorded.code == 0, recorded
    (run,) = runs_of(desk.store)
    (trace,) = run.trace_ids
    fetched(trace, len(run.steps) + 1)

    of_this_run = {"support": "trip-planner", "conv-7": "demo", "7d1f0e2c9b8a…": run.run_id}
    for example in EXAMPLES:
        query = example
        for there, here in of_this_run.items():
            query = query.replace(f'"{there}"', f'"{here}"')
        listed = until(query, lambda query=query: _found(spanreplay, query))  # type: ignore[misc]
        assert run.run_id in listed, query

    store = desk.root / "imported"
    assert desk.spanreplay("import", f"tempo+{API}/{trace}", store=store).code == 0
    assert desk.spanreplay("verify", store=store).code == 0
    (back,) = runs_of(store)
    assert back.grade == "exact"
    assert_equal(recorded, desk.replay(command, store=store))
    assert len(list(outbox.iterdir())) == 1, "the e-mail went out once, when it was recorded"


def _found(spanreplay: CommandLine, query: str) -> list[str] | None:
    done = spanreplay("show", f"tempo+{API}/?q={query}&since=10m&limit=100", "--json")
    return [run["run_id"] for run in done.json["runs"]] if done.code == 0 else None


def test_large_texts_of_every_width_come_back_uncut(peers: Peers) -> None:
    trace = os.urandom(16).hex()
    texts = ["x" * shift + character * 3000 for shift in range(4) for character in ("ä", "—", "𝄞", '"')] + ["ß— 𝄞 \n" * 200_000]
    spans = [
        replace(span, trace_id=trace, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps([text], ensure_ascii=False)})
        for span, text in zip(SPANS, texts, strict=False)
    ]
    assert send(spans, address=address_of(peers.collector("dev", view=OTLP).http), headers={}, timeout_s=60).rejected == 0
    kept = {record.span_id: record for record in fetched(trace, len(spans)).records if isinstance(record, SpanRecord)}
    assert {span_id: span.attributes for span_id, span in kept.items()} == {span.span_id: span.attributes for span in spans}


def test_what_is_lost_is_what_the_report_says() -> None:
    """Nothing while it is in memory; then what blocks have no place for."""
    trace = os.urandom(16).hex()
    sent = [replace(span, trace_id=trace) for span in SPANS]
    send(sent, address=address_of(OTLP), headers={}, timeout_s=30)
    in_a_block = all(isinstance(record, SpanRecord) and not record.flags for record in fetched(trace, len(sent)).records)
    losses = [TEMPO, *SDK] if in_a_block else SDK
    check(fetched(trace, len(sent)), losses, recorded=sent)

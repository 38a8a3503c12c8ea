"""Large spans on the replay road, whole; and on the view road short, but never broken: JSON stays JSON, no character is split."""

import json
from typing import Any, Final

import pytest

from backends.running import Jaeger, Peers, until
from fixtures.runs.spans import TRACE, agent, chat, tool
from spanreplay.cli.sending import address_of, send
from spanreplay.replay.inputs.remote import Access, open_remote
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.size import FULL

LARGE: Final = 20_000_000 if FULL else 5_000_000
"""Bytes of one span: more than the 4 MiB that gRPC takes by default in either case."""
MANY: Final = 500 if FULL else 40
EACH: Final = 200_000
LIMIT: Final = 2000

MESSAGES: Final = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES)
JSON_TEXTS: Final = (*MESSAGES, a.GEN_AI_SYSTEM_INSTRUCTIONS, a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT, "input.value")


def said(text: str) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def kept(path: Any) -> dict[str, SpanRecord]:
    return {record.span_id: record for record in open_source(str(path)).records if isinstance(record, SpanRecord)}


def texts(found: dict[str, Any]) -> dict[str, str]:
    """The texts among the attributes of a span as Jaeger gives it."""
    return {each["key"]: each["value"]["stringValue"] for each in found["attributes"] if "stringValue" in each["value"]}


def viewed(jaeger: Jaeger, spans: list[SpanRecord]) -> dict[str, dict[str, str]]:
    """Span id to what can be looked at of it."""
    until("the view", lambda: len(jaeger.spans(TRACE)) == len(spans) or None)
    return {span_id: texts(found) for span_id, found in jaeger.spans(TRACE).items()}


@pytest.mark.parametrize("over", ["http", "grpc"])
def test_a_span_of_many_megabytes(over: str, peers: Peers) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    spans = [agent(1), chat(2, 1, attributes={a.GEN_AI_INPUT_MESSAGES: said("é— 𝄞 \n" * (LARGE // 13))})]
    assert len(str(spans[1].attributes[a.GEN_AI_INPUT_MESSAGES]).encode()) > 4 << 20
    send(spans, address=address_of(getattr(gateway, over)), headers={}, timeout_s=60)
    assert kept(gateway.traces) == {span.span_id: span for span in spans}
    short = viewed(jaeger, spans)[spans[1].span_id][a.GEN_AI_INPUT_MESSAGES]
    assert len(short.encode()) <= LIMIT
    assert json.loads(short)[0]["parts"][0]["type"] == "text"


def test_many_large_spans(peers: Peers) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    spans = [
        agent(1),
        *(tool(number, 1, result=json.dumps(f"{number} " + "ß" * (EACH // 2), ensure_ascii=False)) for number in range(2, MANY + 2)),
    ]
    assert send(spans, address=address_of(gateway.http), headers={}, timeout_s=60).rejected == 0
    assert kept(gateway.traces) == {span.span_id: span for span in spans}
    for found in viewed(jaeger, spans).values():
        for name, text in found.items():
            assert len(text.encode()) <= LIMIT, name


CHARACTERS: Final = ("ä", "—", "𝄞", '"', "\\", "\n", "\x01", "e\u0301", "👩‍🔬")
"""Of two, three and four bytes, escaped in JSON by two and six, and of several code points."""


def test_no_cut_breaks_a_character_or_json(peers: Peers) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    spans = [agent(1)]
    for character in CHARACTERS:
        for shift in range(8):
            text = "x" * shift + character * 2100
            attributes = {
                **dict.fromkeys(MESSAGES, said(text)),
                a.GEN_AI_SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": text}], ensure_ascii=False),
                a.GEN_AI_TOOL_CALL_ARGUMENTS: json.dumps({"text": text}, ensure_ascii=bool(shift % 2)),
                a.GEN_AI_TOOL_CALL_RESULT: json.dumps(text, ensure_ascii=False),
                "input.value": json.dumps([text]),
                "note": f"note {text}",
                "short": said(character * 100),
            }
            spans.append(chat(len(spans) + 1, 1, attributes=attributes))
    send(spans, address=address_of(gateway.http), headers={}, timeout_s=60)
    assert kept(gateway.traces) == {span.span_id: span for span in spans}

    found = viewed(jaeger, spans)
    for span in spans[1:]:
        seen = found[span.span_id]
        for name in JSON_TEXTS:
            assert seen[name] != span.attributes[name]
            assert "\ufffd" not in seen[name]
            json.loads(seen[name])
            assert len(seen[name]) <= LIMIT
        for name in MESSAGES:
            (message,) = json.loads(seen[name])
            assert message["parts"][0]["content"].startswith(str(span.attributes[name])[:100])
        assert str(span.attributes["note"]).startswith(seen["note"].removesuffix("…"))
        assert len(seen["note"]) <= LIMIT
        assert seen["short"] == span.attributes["short"]

    # Who takes the view for the record is told that it is none.
    (run,) = build_runs(open_remote(f"jaeger+{jaeger.query}/{TRACE}", Access()).records)
    assert run.grade == "incomplete"
    assert {reason.field for reason in run.grade_reasons if reason.code == "cut"} >= {*MESSAGES, a.GEN_AI_SYSTEM_INSTRUCTIONS}


SECRETS: Final = ("ana@example.com", "4111 1111 1111 1111", "sk-" + "a1B2" * 8, "AKIA" + "A1B2C3D4" * 2, "ghp_" + "a1B2" * 9)


def test_what_is_masked_leaves_json(peers: Peers) -> None:
    jaeger = peers.jaeger()
    gateway = peers.collector("gateway", view=jaeger.http)
    spans = [agent(1)]
    before = ("", "\n", "\\", "\\n", "\\\n", "\\\\\n", "\t", '"', "é", "\u2028", "𝄞", "x\x01", "/", ": ")
    for secret in SECRETS:
        for mark in before:
            given = {"text": f"say {mark}{secret}{mark} now"}
            attributes = {
                "ascii": json.dumps(given),
                "utf-8": json.dumps(given, ensure_ascii=False),
                "twice": json.dumps(json.dumps(given)),
            }
            spans.append(chat(len(spans) + 1, 1, attributes=attributes))
    send(spans, address=address_of(gateway.http), headers={}, timeout_s=60)
    assert kept(gateway.traces) == {span.span_id: span for span in spans}
    found = viewed(jaeger, spans)
    for span in spans[1:]:
        for name in ("ascii", "utf-8", "twice"):
            seen = json.loads(found[span.span_id][name])
            assert not any(secret in str(seen) for secret in SECRETS if not secret.startswith("4111"))
    masked = [text for seen in found.values() for name, text in seen.items() if name == "ascii" and "****" in text]
    assert len(masked) > len(spans) * 0.7

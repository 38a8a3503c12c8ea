"""What an input tells about where its values were cut."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.runs.spans import log, span
from spanreplay.replay.inputs.survey import Survey, texts
from spanreplay.replay.reading.fields import TEMPO_LIMIT, ends_at_limit
from spanreplay.spans.record import EventRecord, LogRecord, Record, Scope, SpanRecord


def surveyed(*records: Record) -> Survey:
    survey = Survey()
    for record in records:
        survey.see(record)
    return survey


def with_text(number: int, text: str) -> SpanRecord:
    return span(number, attributes={"gen_ai.input.messages": text})


def test_json_that_stops_at_one_size_tells_the_limit_and_what_else_ends_there() -> None:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 900}]}])
    survey = surveyed(with_text(1, messages[:500]), with_text(2, messages[1:501]), with_text(3, messages[:500]))
    assert survey.limits().bytes == {500: 3}
    finding = survey.findings()[0]
    assert (finding.code, finding.spans) == ("cut-values", 3)
    assert "500 bytes" in finding.detail
    assert "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT" in finding.advice


def test_one_broken_text_that_is_not_the_longest_is_nobodys_limit() -> None:
    assert surveyed(with_text(1, '{"a": ' + "1" * 100), with_text(2, "y" * 5000)).limits().bytes == {}


def test_texts_of_tempos_default_are_told_even_if_they_are_no_json() -> None:
    survey = surveyed(with_text(1, "a" * TEMPO_LIMIT), with_text(2, "b" * TEMPO_LIMIT))
    assert survey.limits().bytes == {TEMPO_LIMIT: 2}
    assert "max_attribute_bytes: 0" in survey.findings()[0].advice
    assert surveyed(with_text(1, "a" * TEMPO_LIMIT)).limits().bytes == {}, "one may be chance"
    of_every_size = [with_text(n, "a" * (TEMPO_LIMIT - 20 + n % 40)) for n in range(120)]
    assert surveyed(*of_every_size).limits().bytes == {}, "so may three, where every size has its three"


@pytest.mark.parametrize("character", ["é", "日", "🎈"])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_character_that_was_cut_in_two_hides_no_limit(character: str, left: int) -> None:
    encoded = character.encode()
    if left >= len(encoded):
        return
    cut = b"a" * (TEMPO_LIMIT - left) + encoded[:left]
    for decoded in (cut.decode("utf-8", "replace"), "a" * (TEMPO_LIMIT - left) + "\ufffd" * left):  # Python's way and Go's
        assert ends_at_limit(decoded)
        assert surveyed(with_text(1, decoded)).limits().bytes == {TEMPO_LIMIT: 1}


@given(st.text(min_size=1), st.integers(0, 3))
def test_a_text_is_at_the_limit_only_with_its_size(text: str, more: int) -> None:
    filled = text + "x" * max(0, TEMPO_LIMIT + more - 1 - len(text.encode("utf-8", "surrogatepass")))
    size = len(filled.encode("utf-8", "surrogatepass"))
    if not filled.endswith("\ufffd"):
        assert ends_at_limit(filled) == (size == TEMPO_LIMIT)


def test_events_are_looked_at_and_short_or_whole_texts_are_not_suspected() -> None:
    long = json.dumps({"content": "z" * 200})
    record = replace(span(1), events=(EventRecord(name="gen_ai.choice", time_ns=1, attributes={"message": long[:150]}),))
    assert surveyed(record, record).limits().bytes == {150: 2}
    assert [text.broken for text in texts({"a": long, "b": '{"short', "c": 7, "d": "[INFO] " + "log line " * 20})] == [False]


def test_what_an_sdk_dropped_is_told_with_the_variable_to_raise() -> None:
    found = surveyed(replace(span(1), dropped_attributes=3), replace(span(2), dropped_attributes=1, dropped_events=2)).findings()
    assert [(one.code, one.spans) for one in found] == [("dropped-attributes", 2), ("dropped-events", 1)]
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in found[0].advice


def outside(event: str, scope: str = "") -> LogRecord:
    return LogRecord(time_ns=1, attributes={"event.name": event}, scope=Scope(name=scope))


def test_calls_that_are_logged_outside_any_span_are_counted_and_what_to_switch_on_is_said() -> None:
    claude = "com.anthropic.claude_code.events"
    found = surveyed(
        outside("tool_result", claude), outside("api_request", claude), outside("user_prompt", claude), outside("codex.tool_result")
    ).findings()
    assert [(finding.code, finding.spans) for finding in found] == [("log-outside-spans", 2), ("log-outside-spans", 1)]
    assert "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA" in found[0].advice
    assert "otel.trace_exporter" in found[1].advice


def test_a_record_in_a_span_or_of_no_call_is_none_of_these() -> None:
    assert surveyed(log(1, "", {"event.name": "codex.tool_result"}), outside("tool_result"), outside("codex.sse_event")).findings() == []


def test_a_short_limit_is_known_by_the_json_that_it_cut_in_two_spans() -> None:
    whole = json.dumps({"city": "Oslo", "temperature": -3.5, "sky": "overcast"})
    assert surveyed(with_text(1, whole[:40]), with_text(2, whole[:40])).limits().bytes == {40: 2}
    assert surveyed(with_text(1, whole[:40])).limits().bytes == {}
    held = {
        "said": "a text of just the size of that limit, or",
        "id": "0123456789abcdef" * 2 + "01234567",
        "json": '{"n": [' + "1, " * 10 + "1]}",
    }
    assert [text.name for text in texts(held) if text.size in (40, 41)] == ["said"], "ids and whole JSON have the size that they have"


def test_several_plain_texts_of_a_usual_size_tell_a_limit_where_none_is_longer() -> None:
    cut = [with_text(n, (f"text {n} says much " * 80)[:1024]) for n in range(3)]
    assert surveyed(*cut).limits().bytes == {1024: 3}
    assert surveyed(*cut, with_text(4, "a longer text " * 80)).limits().bytes == {}
    assert surveyed(*cut[:2], cut[0]).limits().bytes == {}, "two may be chance"
    assert surveyed(*(with_text(n, f"{n}" * 1024) for n in range(3))).limits().bytes == {}, (
        "base64 and digests have the size that they have"
    )
    assert surveyed(*(with_text(n, (f"text {n} says much " * 80)[:1021]) for n in range(3))).limits().bytes == {}, "nobody sets that"


def test_a_limit_of_characters_is_found_where_texts_have_more_bytes() -> None:
    messages = json.dumps([{"content": "Grüße aus Köln, über die Brücke. " * 9}, {"content": "日本語のテキスト" * 40}], ensure_ascii=False)
    cut = [with_text(n, "[" + messages[n * 110 :][:199]) for n in range(3)]
    survey = surveyed(with_text(9, "all ASCII, and short enough: " * 4), *cut)
    assert len({len(str(record.attributes["gen_ai.input.messages"]).encode()) for record in cut}) == 3
    assert survey.limits().bytes == {}
    assert survey.limits().characters == {200: 3}
    assert "200 characters" in survey.findings()[0].detail
    plain = [with_text(n, (f"Straße {n}, " * 200)[:1024]) for n in range(3)]
    assert surveyed(*plain).limits().characters == {1024: 3}
    assert surveyed(*plain, with_text(4, "ö" * 1025)).limits().characters == {}


def test_a_limit_of_bytes_is_not_told_twice() -> None:
    cut = [with_text(n, '["' + "x" * 498) for n in range(3)]
    survey = surveyed(*cut, with_text(4, "ü" * 100))
    assert survey.limits().bytes == {500: 3}
    assert survey.limits().characters == {}


@pytest.mark.parametrize("mark", ["[truncated]", "...(truncated)", "<truncated 12 bytes>"])
def test_json_with_a_mark_where_it_was_cut_is_cut(mark: str) -> None:
    text = json.dumps([{"role": "user", "content": "x" * 200}])[:120] + mark
    (suspect,) = texts({"a": text})
    assert suspect.broken
    whole = json.dumps([{"role": "user", "content": f"{'x' * 200} [truncated]"}])
    assert not any(found.broken for found in texts({"a": whole, "b": f"a tool that says {'y' * 100} [truncated]"}))

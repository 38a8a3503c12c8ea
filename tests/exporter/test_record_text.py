"""Lines written straight as text are the objects of the forms."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.spans.record import EventRecord, LinkRecord, Scope, SpanRecord
from spanreplay.store.encoding import encode_map, to_json
from spanreplay.store.form import scope_form, span_form
from spanreplay.store.latest import Latest
from spanreplay.store.record_text import OPEN, close_line, origin_head, span_line

_IDS = st.text("0123456789abcdef", min_size=16, max_size=16) | st.just('"\\')
_TIMES = st.integers(0, 2**64)


def _keep(content: object) -> str:
    raise AssertionError(content)


@settings(max_examples=80)
@given(
    st.fixed_dictionaries(
        {
            "trace_id": _IDS,
            "span_id": _IDS,
            "parent_span_id": st.none() | _IDS,
            "name": st.text(max_size=6),
            "kind": st.integers(0, 5),
            "start_ns": _TIMES,
            "end_ns": st.none() | _TIMES,
            "flags": st.integers(0, 1023),
            "attributes": st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
            "scope": st.builds(Scope, name=st.sampled_from(["", "x"])),
        }
    ),
    st.none() | st.just("sha256:00"),
)
def test_a_line_is_the_form(fields: dict[str, Any], resource: str | None) -> None:
    span = SpanRecord(**fields)
    attributes = encode_map(span.attributes, _keep)
    scope = scope_form(span.scope, _keep)
    for head, beginning in ((OPEN, {"t": "open"}), (origin_head("recorder"), {"t": "span", "origin": "recorder"})):
        line = span_line(head, span, resource, to_json(scope) if scope else "", to_json(attributes) if attributes else "")
        if span.name.isascii():
            assert line is not None
            assert line.isascii()
            assert json.loads(line) == beginning | span_form(span, resource, scope, _keep)
        else:
            assert line is None


def test_what_a_line_cannot_say_goes_the_other_way() -> None:
    more: list[dict[str, Any]] = [
        {"events": (EventRecord(name="e", time_ns=1),)},
        {"links": (LinkRecord(trace_id="a", span_id="b"),)},
        {"status": 1},
        {"status_message": "m"},
        {"trace_state": "a=b"},
        {"dropped_attributes": 1},
        {"dropped_events": 1},
        {"dropped_links": 1},
    ]
    for fields in more:
        assert span_line(OPEN, SpanRecord(trace_id="a", span_id="b", **fields), None, "", "") is None


def test_the_end_of_a_span() -> None:
    assert json.loads(close_line("a", "b", 5, 0, "")) == {"t": "close", "trace": "a", "span": "b", "end": 5}
    line = close_line("a", "b", 5, 2, '{"k":1}')
    assert json.loads(line) == {"t": "close", "trace": "a", "span": "b", "end": 5, "status": 2, "attrs": {"k": 1}}


def test_the_latest_are_remembered_and_few_more() -> None:
    latest = Latest(10)
    for number in range(1000):
        latest.add(str(number))
        latest.add(str(number))
        assert all(str(known) in latest for known in range(max(0, number - 9), number + 1))
        assert len(latest) <= 20
    assert "1" not in latest

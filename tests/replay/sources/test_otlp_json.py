"""The OTLP JSON source: what it takes for its own, and how documents may lie in a stream."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs.json_stream import documents, key_paths, whole_elements
from spanreplay.replay.inputs.report import ReadReport
from spanreplay.replay.sources import otlp_json


@pytest.mark.parametrize(
    "head",
    [
        b'{"resourceSpans":[]}',
        b'\xef\xbb\xbf\r\n {"resourceSpans"\n:[',
        b'[\n{"resourceLogs": [',
        b'{"batches": [',
        b'{"resource_spans": [',
        b'{"resourceMetrics": [',
        b'{"trace": {"resourceSpans": [',
        b'{"status": "complete", "trace": {"resourceSpans": [',
        b'{"result": {"resourceSpans": [',
        b'{"data": [{"resourceSpans": [',
        b'[{"resource": {}, "scopeSpans": [',
        b'{"resourceMe\n{"resourceSpans": [{"res',
    ],
)
def test_handles(head: bytes) -> None:
    assert otlp_json.handles(head)


@pytest.mark.parametrize(
    "head",
    [
        b"resourceSpans",
        b'"resourceSpans": []',
        b'{"trace": {"id": "x", "input": "{\\"resourceSpans\\": []}"}, "observations": [',
        b'{"data": [{"traceID": "x", "spans": [{"resourceSpans": 1}]}]}',
        b'[{"trace_id": "x", "attributes": {"resourceSpans": []}}]',
        b'{"spans": [{"name": "x"}]}',
        b'{"note": "resourceSpans"}',
        b'{"resourceSpans',
        b"[1, 2, 3]",
        b"{}",
    ],
)
def test_does_not_handle(head: bytes) -> None:
    assert not otlp_json.handles(head)


def test_key_paths_of_a_cut_head() -> None:
    head = b'{"a": {"b": [{"c": {"d": 1}}, "x", {"e": 2}]}, "f": "g\\"h", "i": {"j'
    assert key_paths(head) == {"a", "a.b", "a.b.c", "a.b.e", "f", "i"}


def read(text: str, **options: Any) -> tuple[list[tuple[str, Any]], ReadReport]:
    report = ReadReport()
    options = {"limit": 1 << 20, "starts": ("start",), "lists": ("items",), **options}
    return list(documents(io.BytesIO(text.encode("utf-8", "surrogatepass")), "f", report, **options)), report


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
INDENTS = st.sampled_from([None, 0, 1, 4])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(st.text(max_size=3), DOCUMENTS, max_size=3), INDENTS), max_size=5),
    st.sampled_from(["\n", "\r\n", "\n\n", "", " ", ",\n"]),
    st.booleans(),
)
def test_documents_come_out_however_they_lie(values: list[tuple[dict[str, Any], int | None]], between: str, mark: bool) -> None:
    text = between.join(json.dumps(value, indent=indent, ensure_ascii=mark) for value, indent in values)
    found, report = read(("\ufeff" if mark else "") + text)
    assert [value for _, value in found] == [value for value, _ in values]
    assert report.rejected == 0


def test_places_are_the_lines_where_documents_begin() -> None:
    found, _ = read('{"a": 1}\n\n{\n"b": 2\n}\n{"c": 3} {"d": 4}\n')
    assert [(place, next(iter(value))) for place, value in found] == [("line 1", "a"), ("line 3", "b"), ("line 6", "c"), ("line 6", "d")]


def test_an_unfinished_document_does_not_swallow_the_next_ones() -> None:
    found, report = read('{"start": [\n{"start": 1}\n{"start": 2}\n')
    assert [value for _, value in found] == [{"start": 1}, {"start": 2}]
    assert [(r.place, r.found) for r in report.rejections] == [("line 1", "one that is cut")]


def test_an_array_of_one_line_documents_is_one_array() -> None:
    found, report = read('[\n{"start": 1},\n{"start": 2}\n]\n')
    assert [value for _, value in found] == [[{"start": 1}, {"start": 2}]]
    assert report.rejected == 0


def test_the_line_of_a_fault_within_a_document() -> None:
    found, report = read('{"a": 1}\n{\n"b": 2,\n"c": nope\n}\n{"d": 4}\n')
    assert [value for _, value in found] == [{"a": 1}, {"d": 4}]
    assert [(r.place, r.found) for r in report.rejections] == [("line 4", "expecting value (column 6)")]


def test_whole_elements_of_a_cut_text() -> None:
    text = '{"head": {"items": "no"}, "items": [{"a": "}]"}, {"b": [1, 2]}, {"c": "cut'
    assert whole_elements(text, ("items",)) == ({"head": {"items": "no"}, "items": [{"a": "}]"}, {"b": [1, 2]}]}, 2)
    assert whole_elements('{"items": [{"a": ', ("items",)) is None
    assert whole_elements('{"items": [{"a": 1}]]', ("items",)) == ({"items": [{"a": 1}]}, 1)


def test_elements_before_a_fault_are_kept() -> None:
    found, report = read('{"items": [{"a": 1}, {"b": nope}, {"c": 3}]}\n')
    assert [value for _, value in found] == [{"items": [{"a": 1}]}]
    assert report.rejected == 1

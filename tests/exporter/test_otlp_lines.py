"""Plain documents give what documents read with care give: the same records, and the same to tell."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.spans import otlp_json
from spanreplay.spans.errors import Problem
from spanreplay.spans.json_parsing import loads
from spanreplay.spans.otlp_lines import PlainDocument, PlainDocuments

SPAN: dict[str, Any] = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "parentSpanId": "",
    "flags": 256,
    "name": "chat",
    "kind": 3,
    "startTimeUnixNano": "1764000000000000000",
    "endTimeUnixNano": "1764000001000000000",
    "attributes": [
        {"key": "text", "value": {"stringValue": "naïve"}},
        {"key": "whole", "value": {"intValue": "42"}},
        {"key": "half", "value": {"doubleValue": 0.5}},
        {"key": "set", "value": {"boolValue": True}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "-1"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"bytesValue": "AAE="}}]}}},
        {"key": "empty", "value": {}},
    ],
    "events": [{"name": "e", "timeUnixNano": "5", "attributes": [{"key": "k", "value": {"intValue": "1"}}]}],
    "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"}],
    "status": {"code": 2, "message": "no"},
}
DOCUMENT: dict[str, Any] = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [{"scope": {"name": "lib", "version": "1"}, "spans": [SPAN, {**SPAN, "spanId": "b7ad6b7169203332"}]}],
            "schemaUrl": "https://opentelemetry.io/schemas/1.40.0",
        }
    ]
}
ODD: list[Any] = [
    None, "", 0, -1, 1.5, 10**25, True, "true", "NaN", [], {}, "007", "x", "0" * 16, "A" * 16, [5], {"stringValue": None},
    {"stringValue": 5}, {"intValue": 7}, {"intValue": "9" * 30}, {"intValue": "5", "stringValue": "a"}, {"doubleValue": 1},
    {"doubleValue": "Infinity"}, {"boolValue": "true"}, {"bytesValue": "?"}, {"arrayValue": {}}, {"other": 1},
    {"kvlistValue": {"values": [{"key": "a"}, {"key": "a"}]}}, {"code": "STATUS_CODE_ERROR"}, "SPAN_KIND_CLIENT", [{"traceId": "zz"}],
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, inner in members for place in places(inner, (*path, name)))]


def same(text: bytes) -> bool:
    """Whether the text is a plain document; then both ways have given the same."""
    try:
        plain = PlainDocument(text)
    except ValueError:
        return False
    careful: list[Problem] = []
    told: list[Problem] = []
    wanted = list(otlp_json.decode(json.loads(text), "line 1", careful.append))
    documents = PlainDocuments(told.append)
    for _ in range(2):
        told.clear()
        # repr, because 1, 1.0 and True are not the same
        assert repr(list(documents.decode(plain, "line 1"))) == repr(wanted)
        assert told == careful
    return True


def test_a_document_as_the_specification_writes_it_is_plain() -> None:
    assert same(json.dumps(DOCUMENT).encode())


def test_equal_resources_and_scopes_of_several_documents_are_one_object() -> None:
    documents = PlainDocuments(lambda problem: pytest.fail(str(problem)))
    first, second = (next(documents.decode(PlainDocument(json.dumps(DOCUMENT).encode()))) for _ in range(2))
    assert first.resource is second.resource
    assert first.scope is second.scope


@given(st.sampled_from(places(DOCUMENT)[1:]), st.sampled_from(ODD), st.sampled_from(("replaced", "named", "doubled")))
def test_whatever_is_odd_about_a_document_it_is_read_the_same(place: tuple[Any, ...], odd: Any, how: str) -> None:
    changed = copy.deepcopy(DOCUMENT)
    holder: Any = changed
    for name in place[:-1]:
        holder = holder[name]
    if how == "replaced":
        holder[place[-1]] = odd
    elif isinstance(holder, dict):
        holder["intValue" if "stringValue" in holder else "status"] = odd
    elif how == "doubled":
        holder.append(copy.deepcopy(holder[place[-1]]))
    else:
        holder.insert(0, odd)
    same(json.dumps(changed).encode())


@pytest.mark.parametrize("text", ['{"resourceSpans":[]} {"resourceSpans":[]}', '{"resourceSpans":NaN}', '{"batches":[]}', "{}", "[]", ""])
def test_other_texts_are_not_plain(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        PlainDocument(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551616", "-123456789012345678901234567890", "1e400", "-0", "-0.0", "NaN", "[-Infinity]", r'"\ud800"', '"\ud800"',
        r'"\ud83d\ude00"', '{"a":1,"a":2}', "123456789012345678901234567890.5", "4.9e-324", "0.1", "1E5", "[]", '"\x7f"', " 1\n", "null",
    ],
)  # fmt: skip
def test_json_is_read_as_the_standard_library_reads_it(text: str) -> None:
    assert repr(loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "[1,]", '"\x01"', "01", "1" * 5000, "1 2", '"a', "\ufeff{}"])
def test_what_is_no_json_is_explained_by_the_standard_library(text: str) -> None:
    with pytest.raises(ValueError, match=r".+") as wanted:
        json.loads(text)
    with pytest.raises(ValueError, match=r".+") as found:
        loads(text)
    assert (type(found.value), str(found.value)) == (type(wanted.value), str(wanted.value))

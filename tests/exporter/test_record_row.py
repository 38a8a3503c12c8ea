"""A row made straight from a record is the row of its form."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from span_strategies import any_text, spans
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import EventRecord, LinkRecord, Resource, Scope, SpanRecord, Value
from spanreplay.store.encoding import digest_of, text_bytes
from spanreplay.store.form import resource_form, resource_text, scope_form, span_form
from spanreplay.store.record_row import RecordRows, origin_of
from spanreplay.store.span_rows import COLUMNS, HOT_INTEGERS, HOT_TEXTS, Version, row_of
from support.size import FULL

HOT = [source for sources in (*HOT_TEXTS.values(), *HOT_INTEGERS.values()) for source in sources]
LONG = st.sampled_from(["x" * 511, "x" * 512, "é" * 255, "é" * 256, "é" * 400, '"\n\\' * 40, "\ud800"])
VALUES = any_text | LONG | st.integers() | st.booleans() | st.floats() | st.none() | st.lists(any_text).map(tuple)


def keep(content: str | bytes) -> str:
    return digest_of(content if isinstance(content, bytes) else text_bytes(content)[0])


def both(span: SpanRecord) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
    """The row made straight, and the one made of the form."""
    resource, scope = resource_form(span.resource, keep), scope_form(span.scope, keep)
    digest = digest_of(resource_text(resource).encode()) if resource else None
    origin = origin_of(digest, resource, scope)
    process = span.attributes.get(names.PROCESS_ID)
    form = span_form(span, digest, scope, keep)
    version = Version(form=form, origin="import", process=process if isinstance(process, str) else None)
    return RecordRows("import", keep).row(span, origin), row_of(version, origin.service)


@settings(max_examples=2000 if FULL else 60, deadline=None)
@given(spans(), st.dictionaries(st.sampled_from([*HOT, names.PROCESS_ID]) | any_text, VALUES, max_size=6))
def test_it_is_the_row_of_the_form(span: SpanRecord, more: dict[str, Value]) -> None:
    straight, made = both(replace(span, attributes={**span.attributes, **more}))
    assert straight is None or straight == made


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "été", "status": 2, "status_message": "Zürich", "trace_state": "a=b", "flags": 257, "kind": 3},
        {"end_ns": None, "parent_span_id": None},
        {"dropped_attributes": 1, "dropped_links": 3},
        {"events": (EventRecord(name="été", time_ns=5, attributes={"é": "é", "a": (1, 2.5)}),)},
        {"links": (LinkRecord(trace_id="ab" * 16, span_id="cd" * 8, attributes={"b": 1, "a": None}),)},
        {"attributes": {"b": "1", "a": 2, "a.b": True, "a b": 2.5, "a!": "é", "z": {"y": 1, "x": "é"}, "w": ("é", b"1"), "n": None}},
        {"attributes": {names.SERVICE_NAME: "x" * 600, names.GEN_AI_TOOL_NAME: "é" * 300, names.GEN_AI_AGENT_NAME: "é"}},
        {"attributes": {names.GEN_AI_USAGE_INPUT_TOKENS: True, names.GEN_AI_USAGE_OUTPUT_TOKENS: 2**63, names.PROCESS_ID: "p"}},
        {"resource": Resource(attributes={names.SERVICE_NAME: "s", "b": 1}), "scope": Scope(name="n", version="1")},
        {"resource": Resource(attributes={names.SERVICE_NAME: 7}), "scope": Scope(name="é", schema_url="u")},
    ],
)
def test_ordinary_records_need_no_form(fields: dict[str, Any]) -> None:
    given_: dict[str, Any] = {"trace_id": "0af7" * 8, "span_id": "b7ad" * 4, "parent_span_id": "c7ad" * 4, "name": "n", "end_ns": 9}
    straight, made = both(SpanRecord(**{**given_, **fields}))
    assert straight is not None
    assert dict(zip(COLUMNS, straight, strict=True)) == dict(zip(COLUMNS, made, strict=True))


@pytest.mark.parametrize(
    "fields",
    [
        {"trace_id": "a b"},
        {"span_id": ""},
        {"parent_span_id": "é"},
        {"name": "\ud800"},
        {"name": None},
        {"kind": True},
        {"kind": 2**15},
        {"start_ns": 2**63},
        {"end_ns": "1"},
        {"dropped_events": False},
        {"attributes": None},
        {"attributes": {"$a": 1}},
        {"attributes": {"é": 1}},
        {"attributes": {1: 1}},
        {"events": (EventRecord(name="e", time_ns=1.5),)},  # type: ignore[arg-type]
    ],
)
def test_what_is_out_of_the_ordinary_goes_the_other_way(fields: dict[str, Any]) -> None:
    span = SpanRecord(**{"trace_id": "0af7" * 8, "span_id": "b7ad" * 4, **fields})
    assert RecordRows("import", keep).row(span, origin_of(None, {}, {})) is None

"""Ordinary spans become rows straight from their journal lines: the rows that the careful way makes, or none."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from spanreplay.exporter.recorder import Recorder
from spanreplay.store.encoding import encode_map, to_json
from spanreplay.store.journal import JournalWriter
from spanreplay.store.journal_reader import read_journal
from spanreplay.store.merging import apply
from spanreplay.store.plain_spans import PlainSpan, parse_plainly, plain_span
from spanreplay.store.process import current_process
from spanreplay.store.span_lines import span_form
from spanreplay.store.span_rows import Version, row_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from([',"', '\\"', "é", "\x7f", '"attrs":{', "\\u00e9"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([2**15, -(2**15) - 1, 2**63, 2**64, -(2**63)])
VALUES = st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NAMES = TEXTS | st.sampled_from(["$map", "$a", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.usage.input_tokens"])
NESTED = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)
MAPS = st.dictionaries(NAMES, NESTED, max_size=5)
PLAIN_MAPS = st.dictionaries(NAMES.filter(lambda name: name != "$map"), NESTED, max_size=5)
SCOPES = st.fixed_dictionaries({}, optional={"name": TEXTS, "version": TEXTS | st.integers(), "attrs": MAPS})
SPANS = st.fixed_dictionaries(
    {"trace": st.just("0" * 32), "span": st.just("1" * 16), "name": TEXTS, "start": NUMBERS},
    optional={
        "origin": st.sampled_from(["recorder", "exporter", "import"]),
        "parent": TEXTS,
        "kind": NUMBERS,
        "flags": NUMBERS,
        "end": NUMBERS,
        "status": NUMBERS,
        "message": TEXTS,
        "attrs": MAPS,
        "resource": TEXTS,
        "scope": SCOPES,
        "state": TEXTS,
        "events": st.just([{"name": "e", "time": 1}]),
        "dropped": st.just([1, 0, 0]),
        "lost": st.just(1),
    },
)


def in_both_ways(*forms: dict[str, Any]) -> tuple[list[PlainSpan | None], list[Version]]:
    lines = [to_json(form).encode() for form in forms]
    versions: list[Version] = []
    for line in lines:
        form = span_form(line)
        assert form is not None
        apply(versions, form, "p")
    return [plain_span(line) for line in lines], versions


@given(form=SPANS, kind=st.sampled_from(["span", "open"]))
def test_a_row_is_the_same_either_way(form: dict[str, Any], kind: str) -> None:
    (plain,), (version,) = in_both_ways({"t": kind, **form})
    if plain is None:
        return
    assert plain.form() == {"t": kind, **form}
    assert plain.row("p", "service") == row_of(version, "service")
    unread: list[Version] = []
    apply(unread, plain.form(), "p")
    assert row_of(unread[0], "service") == row_of(version, "service")


@given(
    first=PLAIN_MAPS, more=PLAIN_MAPS, ended=st.booleans(), origin=st.sampled_from(["recorder", "exporter", "import"]), again=st.booleans()
)
def test_a_start_adds_nothing_to_a_span_that_repeats_it(first: Any, more: Any, ended: bool, origin: str, again: bool) -> None:
    span = {"trace": "0" * 32, "span": "1" * 16, "name": "a", "start": 1}
    whole = {**first, **more} if again else {**more, **first}
    plain, versions = in_both_ways(
        {"t": "open", **span, **({"attrs": first} if first else {})},
        {"t": "span", "origin": origin, **span, **({"end": 2} if ended else {}), **({"attrs": whole} if whole else {})},
    )
    started, ending = plain
    if started is not None and ending is not None and started.begins(ending):
        assert len(versions) == 1
        assert ending.row("p", None) == row_of(versions[0], None)


def test_an_ordinary_span_is_read_so() -> None:
    attributes = encode_map({"gen_ai.request.model": "m", "b": 1, "a": [1.5, "é"]}, lambda _: "")
    span = {"trace": "0" * 32, "span": "1" * 16, "name": "a", "start": 1, "kind": 1, "flags": 1, "resource": "r", "scope": {"name": "s"}}
    (started, ending), _ = in_both_ways(
        {"t": "open", **span, "attrs": {"gen_ai.request.model": "m"}},
        {"t": "span", "origin": "recorder", **span, "end": 2, "attrs": attributes},
    )
    assert started is not None
    assert ending is not None
    assert started.begins(ending)
    assert not ending.begins(started)


@pytest.mark.parametrize("attributes", [{"a": 2}, {"a": 1.0}, {"b": 2, "a": 1}, {"a": "1"}, {"a": 11}, {}])
def test_a_start_that_says_something_else_is_put_together_with_the_rest(attributes: dict[str, Any]) -> None:
    span = {"trace": "0" * 32, "span": "1" * 16, "name": "a", "start": 1}
    (started, ending), _ = in_both_ways(
        {"t": "open", **span, "attrs": {"a": 1}}, {"t": "span", **span, "end": 2, "attrs": attributes or {"x": 1}}
    )
    assert started is not None
    assert ending is not None
    assert not started.begins(ending)


def test_what_the_recorder_writes_of_ordinary_spans_is_read_so(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, process=current_process())
    provider = TracerProvider(resource=Resource({"service.name": "s"}), shutdown_on_exit=False)
    provider.add_span_processor(Recorder(writer))  # type: ignore[arg-type]  # it has the methods
    tracer = provider.get_tracer("t", "1")
    with (
        tracer.start_as_current_span("run", attributes={"a": "é", "b": 1}),
        tracer.start_as_current_span("step", attributes={"gen_ai.operation.name": "chat"}) as span,
    ):
        span.set_attributes({"text": "x" * 5_000, "more": [1, 2]})
    writer.close()
    (journal,) = (tmp_path / "journal").iterdir()
    with read_journal(journal) as reader:
        found = [record for _, record in reader.records(parse_plainly)]
    spans = [record for record in found if isinstance(record, PlainSpan)]
    assert [(span.line.t, span.line.name) for span in spans] == [("open", "run"), ("open", "step"), ("span", "step"), ("span", "run")]
    assert spans[0].begins(spans[3])
    assert spans[1].begins(spans[2])

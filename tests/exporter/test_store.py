"""The store: every record comes back as it was, once, whatever road it took."""

import dataclasses
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanreplay.spans.record import EventRecord, LinkRecord, LogRecord, Resource, Scope, SpanRecord
from spanreplay.store.derived import STEP_COLUMNS
from spanreplay.store.encoding import decode_value, digest_of, encode_value, to_json, to_readable_json
from spanreplay.store.errors import DamagedStoreError, EncodingError, LockedStoreError, MissingStoreError, ReadOnlyStoreError, StoreError
from spanreplay.store.folder import check_writable
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.store import Store
from support.size import FULL

pytestmark = pytest.mark.usefixtures("stores_made")

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int = 1, **fields: Any) -> SpanRecord:
    known: dict[str, Any] = {"trace_id": TRACE, "span_id": f"{number:016x}", "name": "step", "start_ns": number}
    return SpanRecord(**(known | fields))


def plain(value: object) -> Any:
    """A value that compares as it should: NaN equals itself, 1 is not 1.0 nor true, tuples are lists, order of keys is no matter."""
    if dataclasses.is_dataclass(value):
        return (type(value).__name__, *(plain(getattr(value, field.name)) for field in dataclasses.fields(value)))
    if isinstance(value, dict):
        return ("map", *sorted(((repr(key), plain(item)) for key, item in value.items()), key=lambda pair: pair[0]))
    if isinstance(value, list | tuple):
        return ("list", *(plain(item) for item in value))
    return (type(value).__name__, repr(value))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store to copy, since making the tables takes longer than most tests."""
    store = Store.open(tmp_path_factory.mktemp("empty") / "store", create=True)
    store.find_runs()
    return store.path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Store:
    shutil.copytree(empty, tmp_path / "store")
    return Store.open(tmp_path / "store")


# ---- anything in, the same out -----------------------------------------------------------------------------------------

any_text = st.one_of(
    st.text(st.characters(categories=("L", "N", "P", "Cs", "Cc", "So")), max_size=12),
    st.sampled_from(["$blob", "$x", "\ud83d\ude00", "\0", "é" * 300, "x" * 512, "\udfff" + "y" * 600, '{"$blob":1}']),
)
scalar = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.just(-(1 << 9000)),
    st.floats(),
    any_text,
    st.binary(max_size=8),
)
value = st.recursive(
    st.one_of(scalar, st.just(b"\xff" * 512)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(any_text, value, max_size=4)
time = st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([0, 2**63, 2**64 - 1]))
hex_id = st.text("0123456789abcdef", min_size=16, max_size=16)
count = st.sampled_from([0, 0, 1, 2**32 - 1])
event = st.builds(EventRecord, name=any_text, time_ns=time, attributes=attributes, dropped_attributes=count)
link = st.builds(
    LinkRecord, trace_id=st.just(TRACE), span_id=hex_id, trace_state=any_text, flags=count, attributes=attributes, dropped_attributes=count
)
any_resource = st.builds(Resource, attributes=attributes, schema_url=any_text, dropped_attributes=count)
any_scope = st.builds(Scope, name=any_text, version=any_text, attributes=attributes, schema_url=any_text, dropped_attributes=count)
any_span = st.builds(
    SpanRecord,
    trace_id=st.just(TRACE),
    span_id=hex_id,
    parent_span_id=st.none() | hex_id,
    name=any_text,
    kind=st.sampled_from([0, 1, 5, 40_000]),
    start_ns=time,
    end_ns=st.none() | time,
    status=st.sampled_from([0, 1, 2, -40_000]),
    status_message=any_text,
    attributes=attributes,
    events=st.lists(event, max_size=2).map(tuple),
    links=st.lists(link, max_size=2).map(tuple),
    resource=any_resource,
    scope=any_scope,
    trace_state=any_text,
    flags=count,
    dropped_attributes=count,
    dropped_events=count,
    dropped_links=st.sampled_from([0, 2**64]),
)
any_log = st.builds(
    LogRecord,
    time_ns=time,
    observed_ns=time,
    trace_id=st.just(TRACE),
    span_id=st.none() | hex_id,
    event_name=any_text,
    severity=st.sampled_from([0, 9, 70_000]),
    severity_text=any_text,
    body=value,
    attributes=attributes,
    resource=any_resource,
    scope=any_scope,
    flags=count,
    dropped_attributes=count,
)
traces = itertools.count(1)


def moved(records: list[Any], trace_id: str) -> list[Any]:
    """The same records in another trace, spans with ids of their own."""
    unique = {record.span_id: record for record in records}.values() if records and isinstance(records[0], SpanRecord) else records
    return [dataclasses.replace(record, trace_id=trace_id) for record in unique]


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    folder = Path(tempfile.mkdtemp())
    yield Store.open(folder / "store", create=True)
    shutil.rmtree(folder)


SIZE = 20 if FULL else 1
slow = settings(max_examples=4 * SIZE, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@slow
@given(st.lists(any_span, min_size=1, max_size=12))
def test_spans_come_back_from_the_journal_as_they_were(shared: Store, spans: list[SpanRecord]) -> None:
    trace = f"{next(traces):032x}"
    spans = moved(spans, trace)
    writer = JournalWriter(shared.path, process=current_process())
    for one in spans:
        writer.write_span(one, "exporter") if one.end_ns is not None else writer.open_span(one)
    writer.close()
    assert writer.dropped == 0
    report = shared.compact()
    assert (report.new, report.same, report.changed, report.rejected, report.removed) == (len(spans), 0, 0, 0, 1)
    found = {one.span_id: plain(one) for one in shared.traces([trace])}
    assert found == {one.span_id: plain(one) for one in spans}
    again = shared.add(spans, origin="import")
    assert (again.new, again.same, again.changed, again.rejected) == (0, len(spans), 0, 0)


@slow
@given(st.lists(any_span, min_size=1, max_size=12))
def test_imported_spans_come_back_as_they_were(shared: Store, spans: list[SpanRecord]) -> None:
    trace = f"{next(traces):032x}"
    spans = moved(spans, trace)
    report = shared.add(spans, origin="import")
    assert (report.new, report.same, report.changed, report.rejected) == (len(spans), 0, 0, 0)
    read = list(shared.traces([trace]))
    assert {one.span_id: plain(one) for one in read} == {one.span_id: plain(one) for one in spans}
    again = shared.add(read, origin="import")
    assert (again.new, again.same, again.changed, again.rejected) == (0, len(spans), 0, 0), "what was read is what was written"


@slow
@given(st.lists(any_log, min_size=1, max_size=12), st.booleans())
def test_logs_come_back_as_they_were(shared: Store, logs: list[LogRecord], imported: bool) -> None:
    trace = f"{next(traces):032x}"
    logs = moved(logs, trace)
    if imported:
        shared.add(logs, origin="import")
    else:
        writer = JournalWriter(shared.path, process=current_process())
        for log in logs:
            writer.write_log(log)
        writer.close()
        shared.compact()
    expected = {plain(log) for log in logs}
    found = [plain(log) for log in shared.logs([trace])]
    assert sorted(found) == sorted(expected)
    assert shared.add(logs, origin="import").new == 0


@slow
@given(any_span, any_span, attributes, st.lists(event, max_size=2).map(tuple))
def test_open_and_close_make_one_span(
    shared: Store, start: SpanRecord, end: SpanRecord, more: dict[str, Any], events: tuple[EventRecord, ...]
) -> None:
    trace = f"{next(traces):032x}"
    start = dataclasses.replace(start, trace_id=trace, end_ns=None)
    end_ns = 77 if end.end_ns is None else end.end_ns
    writer = JournalWriter(shared.path, process=current_process())
    writer.open_span(start)
    shared.compact()
    assert plain(list(shared.traces([trace]))) == plain([start])
    writer.close_span(
        trace, start.span_id, end_ns=end_ns, status=end.status, status_message=end.status_message, attributes=more, events=events
    )
    writer.close()
    shared.compact()
    expected = dataclasses.replace(
        start,
        end_ns=end_ns,
        status=end.status or start.status,
        status_message=end.status_message or start.status_message,
        attributes={**start.attributes, **more},
        events=start.events + events,
    )
    assert plain(list(shared.traces([trace]))) == plain([expected])
    assert list(shared.other_versions([trace])) == []


@given(value)
@settings(max_examples=100 * SIZE, deadline=None)
def test_the_json_form_of_a_value_gives_the_value_back(original: Any) -> None:
    content: dict[str, bytes] = {}

    def keep(item: str | bytes) -> str:
        data = item if isinstance(item, bytes) else item.encode("utf-8", "surrogatepass")
        content[digest_of(data)] = data
        return digest_of(data)

    form = encode_value(original, keep)
    for text in (to_json(form), to_readable_json(form)):
        assert plain(decode_value(json.loads(text), content)) == plain(original)
    to_readable_json(form).encode()  # no lone surrogate: a database column takes it


@pytest.mark.parametrize(
    "form",
    [{"$new": 1}, {"$blob": "d", "x": 1}, {"a": {"$future": []}}, [{"$skeleton": {}}], {"$map": [[{"$key": 1}, 1]]}],
)
def test_a_form_of_a_later_version_is_refused(form: object) -> None:
    with pytest.raises(EncodingError, match="does not know"):
        decode_value(form, {})


@pytest.mark.parametrize(
    "form", [{"$bytes": "%"}, {"$double": "1"}, {"$int": "x"}, {"$map": 3}, {"$map": [[1]]}, {"$blob": 3}, {"$bytes": 1}]
)
def test_a_damaged_form_is_refused(form: object) -> None:
    with pytest.raises(EncodingError):
        decode_value(form, {})


# ---- versions of a span ------------------------------------------------------------------------------------------------


def test_the_fuller_version_is_current_and_the_other_is_kept(store: Store) -> None:
    less = span(1, end_ns=5, attributes={"a": 1})
    more = span(1, end_ns=5, attributes={"a": 2, "b": 2})
    unfinished = span(1, attributes={"a": 1, "b": 2, "c": 3})
    assert store.add([less], origin="import").new == 1
    assert store.add([more], origin="import").changed == 1
    assert store.add([unfinished], origin="receiver").changed == 1
    assert list(store.traces([TRACE])) == [more]
    assert sorted(len(other.attributes) for other in store.other_versions([TRACE])) == [1, 3]
    again = store.add([less, more, unfinished], origin="import")
    assert (again.new, again.same, again.changed) == (0, 3, 0)
    assert len(list(store.other_versions([TRACE]))) == 2
    assert list(store.query("SELECT count(*) FROM spans").rows) == [(1,)]


def test_what_was_recorded_here_stays_current_whatever_is_imported(store: Store) -> None:
    recorded = span(1, end_ns=5, attributes={"a": 1, "b": 2})
    fuller = span(1, end_ns=5, attributes={"a": 2, "b": 2, "c": 3})
    copy = span(1, end_ns=5, attributes={"a": 1, "spanreplay.digests": "{}"})
    other_type = span(1, end_ns=5, attributes={"a": 1.0, "b": 2})
    store.add([fuller], origin="import")  # before and after it was recorded
    writer = JournalWriter(store.path, process=current_process())
    writer.write_span(recorded, "exporter")
    writer.close()
    store.compact()
    assert list(store.traces([TRACE])) == [recorded]
    report = store.add([fuller, copy, other_type], origin="import")
    assert (report.new, report.same, report.changed, report.beside) == (0, 2, 0, 1)
    assert list(store.traces([TRACE])) == [recorded]
    assert len(list(store.other_versions([TRACE]))) == 2
    assert store.imported_versions([TRACE]) == [(TRACE, recorded.span_id, None)]
    assert store.imported_versions(["00" * 16]) == []


def test_a_recorded_span_that_never_ended_stays_beside_an_import_that_did(store: Store) -> None:
    started = span(1, end_ns=None, attributes={"spanreplay.process.id": current_process().process_id})
    writer = JournalWriter(store.path, process=current_process())
    writer.open_span(started)
    writer.close()
    store.compact()
    assert store.add([dataclasses.replace(started, name="other")], origin="import").beside == 1
    assert [one.name for one in store.traces([TRACE])] == [started.name]
    assert store.add([dataclasses.replace(started, end_ns=9)], origin="import").changed == 1
    assert [one.end_ns for one in store.traces([TRACE])] == [9]
    assert started in list(store.other_versions([TRACE]))


def test_equal_spans_in_one_import_are_one(store: Store) -> None:
    report = store.add([span(1, end_ns=5), span(1, end_ns=5), span(1, end_ns=6)], origin="import")
    assert (report.new, report.same, report.changed) == (1, 1, 1)


def test_one_and_one_point_nought_differ(store: Store) -> None:
    store.add([span(1, end_ns=5, attributes={"a": 1})], origin="import")
    assert store.add([span(1, end_ns=5, attributes={"a": 1.0})], origin="import").changed == 1


def test_records_without_a_usable_id_are_rejected_and_the_rest_is_kept(store: Store) -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    bad: list[Any] = [
        span(1, trace_id=""),
        span(2, span_id="\ud800"),
        span(3, attributes={"a": deep}),
        span(4, start_ns=1.5),
        span(5, attributes=None),
        None,
        LogRecord(time_ns=1, trace_id="\n"),
    ]
    report = store.add([*bad, span(9)], origin="import")
    assert (report.new, report.rejected) == (1, len(bad))
    assert [one.span_id for one in store.traces([TRACE])] == [f"{9:016x}"]


def test_what_was_read_before_an_error_is_kept(store: Store) -> None:
    def failing() -> Iterator[SpanRecord]:
        yield span(1)
        yield span(2)
        raise OSError("gone")

    for records in (failing(), islice(failing(), 0, 3), islice(failing(), 2, 3)):
        with pytest.raises(OSError, match="gone"):
            store.add(records, origin="import")
    assert [one.span_id for one in store.traces([TRACE])] == [f"{1:016x}", f"{2:016x}"]


def test_hot_columns_are_taken_from_attributes(store: Store) -> None:
    names = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m-1",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2**70,
        "spanreplay.run.id": "run",
        "gen_ai.tool.name": 3,
        "spanreplay.process.id": "p" * 16,
    }
    store.add([span(1, attributes=names, resource=Resource(attributes={"service.name": "shop"}), scope=Scope(name="s"))], origin="import")
    rows = store.query(
        "SELECT op, model, input_tokens, output_tokens, run_id, tool, service, scope, process, origin, complete FROM spans"
    ).rows
    assert list(rows) == [("chat", "m-1", 7, None, "run", None, "shop", "s", "p" * 16, "import", False)]


def test_hot_columns_survive_a_map_that_json_cannot_hold(store: Store) -> None:
    store.add([span(1, attributes={"$odd": 1, "gen_ai.request.model": "m"})], origin="import")
    assert list(store.query("SELECT model FROM spans").rows) == [("m",)]


# ---- content -----------------------------------------------------------------------------------------------------------


def test_content_that_was_changed_is_named(store: Store) -> None:
    store.add([span(1, attributes={"a": "x" * 600})], origin="import")
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET text = 'y'")
    with pytest.raises(DamagedStoreError, match=digest_of(b"x" * 600)):
        list(store.traces([TRACE]))


def test_what_was_changed_counts_as_lost_for_who_asks_for_the_rest(store: Store) -> None:
    store.add([span(1, attributes={"a": "x" * 600, "b": 1}), span(2, name="two"), span(3, attributes={"c": 1})], origin="import")
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET text = 'y'")
        connection.execute("UPDATE spans SET name = 'another' WHERE name = 'two'")
    damaged: list[str] = []
    found = [(dict(one.attributes), one.dropped_attributes) for one in store.traces([TRACE], damaged=damaged)]
    assert found == [({"b": 1}, 1), ({"c": 1}, 0)]
    assert [line.partition(" has been changed")[0] for line in damaged] == [
        f"span {2:016x} of trace {TRACE}",
        f"content {digest_of(b'x' * 600)}",
    ]


def test_content_that_is_gone_is_left_out_and_counted(store: Store) -> None:
    store.add([span(1, attributes={"a": "x" * 600, "b": [1, "y" * 600], "c": 1})], origin="import")
    with store._database.writing() as connection:
        connection.execute("DELETE FROM blobs")
    (found,) = store.traces([TRACE])
    assert (found.attributes, found.dropped_attributes) == ({"c": 1}, 2)


def test_text_is_text_in_the_database_and_bytes_are_not(store: Store) -> None:
    store.add([span(1, attributes={"a": "é" * 300, "b": b"\xff" * 600, "c": "\ud800"})], origin="import")
    rows = list(store.query("SELECT text, data FROM blobs ORDER BY bytes").rows)
    assert rows == [(None, b"\xed\xa0\x80"), (None, b"\xff" * 600), ("é" * 300, None)] or rows == [
        (None, b"\xed\xa0\x80"),
        ("é" * 300, None),
        (None, b"\xff" * 600),
    ]


# ---- derived rows ------------------------------------------------------------------------------------------------------

OTHER = "f" * 32


def test_runs_are_found_by_what_their_ids_begin_with(store: Store) -> None:
    short, whole, longer = "0" * 16 + "b" * 16, "c" * 32, "c" * 33
    for number, run_id in enumerate((short, whole, longer)):
        trace = f"{number + 1:032x}"
        store.put_runs([trace], [RunRow(run_id=run_id, trace_ids=(trace,), started_ns=number)], [])
    assert store.run_ids("b" * 16) == [short] == store.run_ids("bb") == store.run_ids("0" * 16 + "bb")
    assert store.run_ids("c" * 31) == [longer, whole]
    assert store.run_ids(whole) == [whole], "what is named whole is meant"
    assert store.run_ids("c" * 34) == [] == store.run_ids("d" * 32)


def step(run_id: str, seq: int, **fields: Any) -> StepRow:
    known: dict[str, Any] = {"run_id": run_id, "seq": seq, "kind": "tool_call", "name": "add", "trace_id": TRACE, "span_id": "1" * 16}
    return StepRow(**(known | fields))


def test_derived_rows_are_replaced_and_stale_is_cleared(store: Store) -> None:
    store.add([span(1), dataclasses.replace(span(1), trace_id=OTHER)], origin="import")
    assert store.stale_traces() == [TRACE, OTHER]
    store.put_runs([TRACE], [RunRow(run_id="r1", trace_ids=(TRACE,), agent="a")], [step("r1", 1), step("r1", 2)])
    assert store.stale_traces() == [OTHER]
    store.put_runs([TRACE], [RunRow(run_id="r2", trace_ids=(TRACE, OTHER))], [step("r2", 1)])
    assert store.run_ids("") == ["r2"]
    assert [
        StepRow(**dict(zip(STEP_COLUMNS, row, strict=True))) for row in store.query(f"SELECT {', '.join(STEP_COLUMNS)} FROM steps").rows
    ] == [step("r2", 1)]
    (run,) = store.find_runs()
    assert run == RunRow(run_id="r2", trace_ids=(TRACE, OTHER), origin="import")


def test_a_trace_that_changes_meanwhile_stays_stale(store: Store) -> None:
    store.add([span(1)], origin="import")
    assert store.stale_traces() == [TRACE]
    Store.open(store.path).add([span(2)], origin="import")
    store.put_runs([TRACE], [], [])
    assert store.stale_traces() == [TRACE]
    store.put_runs([TRACE], [], [])
    assert store.stale_traces() == []


def test_an_import_that_changes_nothing_makes_nothing_stale(store: Store) -> None:
    store.add([span(1)], origin="import")
    store.stale_traces()
    store.put_runs([TRACE], [], [])
    store.add([span(1)], origin="import")
    assert store.stale_traces() == []


def test_runs_are_found_by_every_filter_newest_first(store: Store) -> None:
    runs = [
        RunRow(run_id="aa1", trace_ids=(TRACE,), agent="x", started_ns=1, outcome="ok", grade="exact", session_id="s", command_id="c"),
        RunRow(run_id="aa2", trace_ids=(TRACE,), agent="y", started_ns=3, outcome="error", grade="semantic", is_command=True),
        RunRow(run_id="bb", trace_ids=(TRACE,), agent="x", started_ns=2, outcome="ok", grade="semantic"),
    ]
    store.put_runs([TRACE], runs, [step("bb", 1, name="mail"), step("aa2", 1, kind="model_call", name="mail")])

    def found(**filters: Any) -> list[str]:
        return [run.run_id for run in store.find_runs(**filters)]

    assert found() == ["aa2", "bb", "aa1"]
    assert found(agent="x") == ["bb", "aa1"]
    assert found(since_ns=2) == ["aa2", "bb"]
    assert found(outcome="ok", grade="semantic") == ["bb"]
    assert found(tool="mail") == ["bb"]
    assert found(session="s") == found(command_id="c") == found(run_id="aa1") == ["aa1"]
    assert found(limit=1, offset=1) == ["bb"]
    assert found(agent="' OR 1=1 --") == []
    assert store.run_ids("aa") == ["aa2", "aa1"]
    assert store.run_ids("%") == []
    assert store.traces_of("bb") == [TRACE]
    assert store.traces_of_command("c") == [TRACE]


def test_a_run_is_found_by_its_spans_before_it_is_derived(store: Store) -> None:
    store.add([span(1, attributes={"spanreplay.run.id": "r", "spanreplay.command.id": "c"})], origin="import")
    assert store.traces_of("r") == store.traces_of_command("c") == [TRACE]


def test_traces_that_share_runs_are_one_group(store: Store) -> None:
    ids = [f"{number:032x}" for number in range(1, 6)]
    runs = {ids[0]: "r1", ids[1]: "r1", ids[2]: "r2", ids[3]: None, ids[4]: "r3"}
    spans = [span(1, trace_id=trace, attributes={"spanreplay.run.id": run} if run else {}) for trace, run in runs.items()]
    spans.append(span(2, trace_id=ids[1], attributes={"spanreplay.run.id": "r2"}))
    store.add(spans, origin="import")
    assert store.connected([ids[2]]) == [(ids[0], ids[1], ids[2])]
    assert sorted(store.connected(ids)) == [(ids[0], ids[1], ids[2]), (ids[3],), (ids[4],)]


def test_derived_text_that_duckdb_refuses_is_cleaned(store: Store) -> None:
    row = step("r", 1, input='{"arguments":{"a":"\\ud800"}}', output='{"result":"\ud800"}', error_message="\udfff", started_ns=2**64)
    store.put_runs([TRACE], [RunRow(run_id="r", trace_ids=(TRACE,))], [row])
    (found,) = store.query("SELECT arguments->>'a', result->>'$', error_message, started_ns FROM tool_calls").rows
    assert found == ("\ufffd", "\ufffd", "\ufffd", None)


# ---- missing, locked, damaged, not writable ----------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_journal_is_discarded_as_long_as_nothing_of_it_is_loaded(store: Store) -> None:
    names = []
    for number in (1, 2):
        writer = JournalWriter(store.path, process=current_process())
        assert writer.file is None
        writer.write_span(span(number), "recorder")
        writer.close()
        names.append(str(writer.file))
        if number == 1:
            store.compact()
    assert not store.discard(names)
    assert store.discard(names[1:])
    store.compact()
    assert [row[0] for row in store.query("SELECT span_id FROM spans").rows] == [span(1).span_id]


def test_a_folder_that_may_not_be_written_is_told_from_one_that_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path / "store")
    assert not list((tmp_path / "store" / "journal").iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ReadOnlyStoreError, match=r"nothing can be kept: Permission denied \(.*\)\. Make the folder writable"):
        check_writable(tmp_path / "store")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="File exists"):
        check_writable(tmp_path / "file")


def test_everything_in_a_store_is_its_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "public"
    folder.mkdir(mode=0o755)
    seen: dict[str, int] = {}

    def look() -> None:
        seen.update({path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*")})

    before = os.umask(0)
    try:
        writer = JournalWriter(folder, process=current_process())
        writer.write_span(span(), "exporter")
        with Store.open(folder) as made:
            with made._database.writing() as connection:
                connection.execute("CREATE TABLE probe AS SELECT 1 AS x").fetchall()
                look()
            made.compact()
            made.query("SELECT 1")
        (folder / "runs.duckdb").chmod(0o644)  # as older versions made it
        Store.open(folder).add([span(2)], origin="import")
        look()
        writer.close()
        assert os.umask(0) == 0, "the umask is as it was"
    finally:
        os.umask(before)
    assert {"runs.duckdb", "runs.duckdb.wal", "store.lock", "store.holder", "journal", ".gitignore"} <= seen.keys()
    assert {name: oct(mode) for name, mode in seen.items() if mode & 0o077} == {}


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingStoreError, match="there is no store at"):
        Store.open(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_an_empty_store_answers(store: Store) -> None:
    assert store.compact().journals == 0
    answers: list[list[Any]] = [list(store.traces([TRACE])), list(store.logs([TRACE])), store.find_runs(), store.stale_traces()]
    assert answers == [[], [], [], []]


def test_a_store_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make a store"):
        Store.open(tmp_path / "file" / "store", create=True)


@pytest.mark.parametrize("content", [b"", b"not a database" * 999, b"\0" * 50_000])
def test_a_damaged_database_is_told(store: Store, content: bytes) -> None:
    store.add([span(1)], origin="import")
    database = store.path / "runs.duckdb"
    database.write_bytes(content or database.read_bytes()[:5000])
    with pytest.raises(DamagedStoreError, match=r"runs\.duckdb"):
        list(store.traces([TRACE]))


def hold(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that runs code, says it is ready, and stays until its input is closed."""
    body = textwrap.dedent(code) + "\nprint('ready', flush=True)\nsys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys\n" + body, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def release(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=60)


def test_a_database_held_by_another_process_is_told_with_its_pid(store: Store) -> None:
    store.add([span(1)], origin="import")
    holder = hold("import duckdb; connection = duckdb.connect(sys.argv[1])", str(store.path / "runs.duckdb"))
    try:
        hasty = Store.open(store.path, wait_s=0.1)
        with pytest.raises(LockedStoreError, match=f"PID {holder.pid}"):
            hasty.find_runs()
        with pytest.raises(LockedStoreError, match=f"PID {holder.pid}"):
            hasty.add([span(2)], origin="import")
    finally:
        release(holder)
    assert store.add([span(2)], origin="import").new == 1


def test_a_lock_held_by_another_process_is_told_with_its_pid(store: Store) -> None:
    code = """
        from pathlib import Path
        from spanreplay.store.database import Database
        held = Database(Path(sys.argv[1])).writing()
        held.__enter__()
    """
    holder = hold(code, str(store.path))
    try:
        with pytest.raises(LockedStoreError, match=f"process {holder.pid}"):
            Store.open(store.path, wait_s=0.1).add([span(1)], origin="import")
    finally:
        release(holder)


def test_a_reader_waits_for_a_writer(store: Store) -> None:
    store.add([span(1)], origin="import")
    holder = hold("import duckdb; connection = duckdb.connect(sys.argv[1])", str(store.path / "runs.duckdb"))
    assert holder.stdin is not None
    holder.stdin.close()
    assert len(list(store.traces([TRACE]))) == 1
    holder.wait(timeout=60)
    assert holder.stdout is not None
    holder.stdout.close()


UNPRIVILEGED = """
    import os, sys, stat
    from pathlib import Path
    import duckdb, filelock, socket
    import spanreplay.store.journal_file, logging
    from spanreplay.spans.record import SpanRecord
    from spanreplay.store.errors import ReadOnlyStoreError, MissingStoreError
    from spanreplay.store.journal import get_writer
    from spanreplay.store.store import Store
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    path = Path(sys.argv[1])
    store = Store.open(path)
    assert len(list(store.traces(["{trace}"]))) == 1
    assert list(store.query("SELECT 1 AS one").rows) == [(1,)]
    for act in (store.compact, lambda: store.add([SpanRecord(trace_id="a", span_id="b")], origin="import")):
        try:
            act()
        except ReadOnlyStoreError as error:
            assert str(path) in str(error), error
        else:
            raise SystemExit("was written")
    writer = get_writer(path)
    writer.open_span(SpanRecord(trace_id="a", span_id="b"))
    assert writer.dropped == 1
    print("fine")
"""


def test_a_folder_that_cannot_be_written_can_still_be_read() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        store = Store.open(folder / "store", create=True)
        writer = JournalWriter(store.path, process=current_process())
        writer.open_span(span(1))
        store.compact()
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [sys.executable, "-c", textwrap.dedent(UNPRIVILEGED.format(trace=TRACE)), str(store.path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
        assert done.stdout == "fine\n", done.stderr
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_duckdb_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, spanreplay.store.store, spanreplay.store.journal; print('duckdb' in sys.modules, 'filelock' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "False False\n", done.stderr


def test_numbers_outside_the_columns_are_exact(store: Store) -> None:
    odd = span(1, start_ns=2**64 - 1, end_ns=2**70, attributes={"nan": math.nan, "inf": -math.inf, "big": 2**200, "neg": -0.0})
    store.add([odd], origin="import")
    assert plain(list(store.traces([TRACE]))) == plain([odd])
    assert os.path.exists(store.path / "runs.duckdb")
    assert ReadOnlyStoreError.__mro__[1] is StoreError


def test_reads_that_belong_together_may_hold_others(store: Store) -> None:
    with store.reading():
        with store.reading():
            assert store.find_runs() == []
        assert store.find_runs() == [], "the connection is still there"
    assert store.find_runs() == []


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("spans", "attributes = replace(attributes, 'refund', 'refuse')"),
        ("spans", "name = 'another'"),
        ("spans", "end_ns = end_ns + 1"),
        ("logs", "record = replace(record, 'said', 'sold')"),
    ],
)
def test_what_was_changed_in_the_database_is_not_read_as_what_was_recorded(store: Store, table: str, change: str) -> None:
    trace_id = "a" * 32
    span = SpanRecord(trace_id=trace_id, span_id="b" * 16, name="one", start_ns=5, end_ns=9, attributes={"short": "refund"})
    store.add([span, LogRecord(trace_id=trace_id, span_id="b" * 16, time_ns=6, body="said")], origin="import")
    assert list(store.traces([trace_id])) == [span]
    assert [log.body for log in store.logs([trace_id])] == ["said"]
    with store._database.writing() as connection:
        connection.execute(f"UPDATE {table} SET {change}").fetchall()
    with pytest.raises(DamagedStoreError, match="has been changed"):
        [*store.traces([trace_id]), *store.logs([trace_id])]


def test_a_run_with_a_trace_for_each_request_of_a_server_is_one_group(store: Store) -> None:
    """Work in the square of the number of traces would need minutes and gigabytes; the time limit of the test run is the assertion."""
    count = 30_000
    with store._database.writing() as connection:
        connection.execute(
            "INSERT INTO extents SELECT trace_id, 'r', NULL, i, i, md5_number_lower(trace_id), md5_number_lower('r')"
            " FROM (SELECT i, format('{:032x}', i) AS trace_id FROM range($1) AS t(i))",
            [count],
        ).fetchall()
    (group,) = store.connected([f"{7:032x}"])
    assert len(group) == count

"""A record and the long texts that it brings: what comes out is what was put in, under its digest, whatever it looks like."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.boundary.call import StepStarted
from spanreplay.content.digests import text_digest
from spanreplay.spans.record import Resource, Scope
from spanreplay.store.brought import joined, parted, reference
from spanreplay.store.encoding import digest_of
from spanreplay.store.journal import JournalWriter
from spanreplay.store.journal_reader import read_journal
from spanreplay.store.process import current_process
from spanreplay.store.record_text import plain_end, plain_place
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"
LOOKS_SO = '{"$blob":0}{\\"$blob\\":0}' + "x" * 600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def writer(store: Store) -> Iterator[JournalWriter]:
    made = JournalWriter(store.path, process=current_process())
    yield made
    made.close()


def write(writer: JournalWriter, number: int, attributes: dict[str, Any]) -> None:
    place = plain_place(int(TRACE, 16), number, None, "chat", 1, number, 1) + plain_end(number + 1, 0)
    assert writer.write_plain(place, "", attributes, None, Resource(), Scope(name="s"))


def write_step(writer: JournalWriter, number: int, begun: dict[str, Any], ended: dict[str, Any]) -> None:
    step = StepStarted(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_span_id=None,
        trace_flags=1,
        trace_state="",
        name="chat",
        client=True,
        start_ns=number,
        attributes=begun,
        intent=False,
    )
    writer.open_step(step, kind=3, resource=Resource(), scope=Scope(name="s"))
    writer.close_span(TRACE, step.span_id, end_ns=number + 1, status=0, status_message="", attributes=ended)


def records(store: Store) -> list[tuple[int, dict[str, Any]]]:
    (path,) = (store.path / "journal").iterdir()
    reader = read_journal(path)
    found = list(reader)
    assert reader.bad_lines == 0
    return found


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")), min_size=1, max_size=4), st.text(max_size=9))
def test_what_is_joined_is_parted(texts: list[str], more: str) -> None:
    data = [text.encode() for text in texts]
    record = ("{" + ",".join(reference(number) for number in range(len(texts))) + "}").encode() + more.encode("utf-8", "surrogatepass")
    forms, found = parted(joined(data, record))
    assert [(form["d"], form["text"], form["n"]) for form in forms] == [(digest_of(d), t, len(d)) for d, t in zip(data, texts, strict=True)]
    wanted = ("{" + ",".join(f'{{"$blob":"{digest_of(d)}"}}' for d in data) + "}").encode() + more.encode("utf-8", "surrogatepass")
    assert found == wanted


@pytest.mark.parametrize("line", [b'{"t":"with","n":[', b'{"t":"with","n":[]}{}', b'{"t":"with","n":[3]}ab', b'{"t":"with","n":[-1]}ab{}'])
def test_what_is_no_such_line_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parted(line)


def test_long_texts_come_back_whatever_they_look_like(store: Store, writer: JournalWriter) -> None:
    attributes = {"a": LOOKS_SO, "c": '{"$blob":0}', "d": "é" * 600, "e": "two\nlines" * 100}
    write(writer, 1, attributes)
    store.compact()
    ((span,),) = [list(store.traces([TRACE]))]
    assert dict(span.attributes) == attributes


def test_a_text_met_first_is_not_digested_and_one_met_often_is_written_twice(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(data: bytes) -> Any:
        calls.append(len(data))
        return sha256(data)

    monkeypatch.setattr("spanreplay.store.journal_content.sha256", counted)
    text = "a" * 3000
    write(writer, 1, {"a": text})
    assert calls == []
    for number in range(2, 6):
        write(writer, number, {"a": text})
    kinds = [record["t"] for _, record in records(store)]
    assert kinds == ["process", "blob", "span", "blob", "span", "span", "span", "span"]
    assert [record["attrs"] for _, record in records(store) if record["t"] == "span"] == [{"a": {"$blob": digest_of(text.encode())}}] * 5


@pytest.mark.parametrize("digested", [False, True], ids=["", "of texts that a span has the digests of"])
def test_long_texts_of_steps_come_back_however_often_they_are_said(store: Store, writer: JournalWriter, digested: bool) -> None:
    said = [LOOKS_SO, "é" * 600, "two\nlines" * 100, "\ud800" * 600, "a" * 20_000]
    steps: dict[int, dict[str, Any]] = {}
    for number in range(1, 6):
        told = {f"a{place}": text for place, text in enumerate(said)} | {"own": f"{number}" * 700}
        if digested:
            for text in told.values():
                text_digest(text)
        steps[number] = told
        write_step(writer, number, told, {f"b{place}": text for place, text in enumerate(said[:number])})
    store.compact()
    found = {int(span.span_id, 16): dict(span.attributes) for span in store.traces([TRACE])}
    assert found == {n: told | {f"b{place}": text for place, text in enumerate(said[:n])} for n, told in steps.items()}


def test_the_agent_does_not_wait_for_the_digest_of_what_a_step_says_first(
    store: Store, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanreplay.store.journal_content.sha256", lambda _: pytest.fail("digested"))
    write_step(writer, 1, {"a": "x" * 600}, {"b": "y" * 600})
    assert [record["t"] for _, record in records(store)] == ["process", "blob", "open", "blob", "close"]


def test_texts_that_look_alike_are_kept_apart(store: Store, writer: JournalWriter) -> None:
    texts = [f"{'a' * 300}{number}{'b' * 300}" for number in range(3)]
    for number, text in enumerate(texts):
        write(writer, number + 1, {"a": text})
    store.compact()
    assert [span.attributes["a"] for span in store.traces([TRACE])] == texts


def test_a_reader_that_stops_at_a_text_has_its_span_the_next_time(store: Store, writer: JournalWriter) -> None:
    write(writer, 1, {"a": "x" * 600})
    (path,) = (store.path / "journal").iterdir()
    (_, (at_text, text), (at_span, span)) = records(store)
    assert [record["t"] for _, record in read_journal(path, at_text)] == ["blob", "span"]
    assert list(read_journal(path, at_span)) == []
    assert (text["t"], span["t"]) == ("blob", "span")


@pytest.mark.parametrize("what", [b"xxx", b'"n":[600', b"chat"])
def test_a_damaged_line_brings_nothing(store: Store, writer: JournalWriter, what: bytes) -> None:
    write(writer, 1, {"a": "x" * 600})
    (path,) = (store.path / "journal").iterdir()
    path.write_bytes(path.read_bytes().replace(what, what[:-1] + b"1", 1))
    report = store.compact()
    assert (report.new, report.crc_errors) == (0, 1)
    assert list(store.query("SELECT count(*) FROM blobs").rows) == [(0,)]

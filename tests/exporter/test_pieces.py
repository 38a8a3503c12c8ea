"""Content in pieces: any text comes back to the byte, and what one says again of another is kept once."""

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.spans.record import SpanRecord
from spanreplay.store.errors import DamagedStoreError
from spanreplay.store.journal import JournalWriter
from spanreplay.store.journal_reader import read_journal
from spanreplay.store.loading import Batch
from spanreplay.store.pieces import LONGEST, SHORTEST, Piece, Splitter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store
from support.size import FULL

TRACE = "0af7651916cd43dd8448eb211c80319c"


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def split(splitter: Splitter, text: str) -> Piece | None:
    return splitter.split(text, digest(text), len(text.encode()))


def together(piece: Piece) -> str:
    """The text of a piece, each piece of it verified."""
    if piece.text is not None:
        text = piece.text
    else:
        inner = {one.digest: together(one) for one in piece.inner}
        assert piece.parts is not None
        text = "".join(inner[part] if number % 2 else part for number, part in enumerate(piece.parts))
    assert (digest(text), len(text.encode())) == (piece.digest, piece.size)
    return text


def kept(piece: Piece, known: set[str]) -> int:
    """How many bytes are kept of it beside what is known, and known from now on."""
    if piece.digest in known:
        return 0
    known.add(piece.digest)
    own = len(piece.text) if piece.text is not None else sum(map(len, piece.parts or ()))
    return own + sum(kept(one, known) for one in piece.inner)


def said(number: int, size: int) -> str:
    return "".join(random.Random(number).choices('abcdefghij \n"\\é', k=size))


def conversation(turns: int, start: int = 0, size: int = 1000) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": said(n, size)} for n in range(start, 2 * turns)]


RENDERINGS: list[dict[str, Any]] = [
    {"separators": (",", ":")},
    {"ensure_ascii": False},
    {"indent": 2},
    {"sort_keys": True, "separators": (" , ", " :\t")},
]


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize(
    "around", [lambda m: m, lambda m: {"model": "m", "messages": m, "tools": m[:3]}, lambda m: {"body": {"messages": m}}]
)
def test_a_longer_history_costs_what_is_new_in_it(rendering: dict[str, Any], around: Any) -> None:
    splitter, known = Splitter(), set[str]()
    costs, whole = [], 0
    for turns in range(4, 40, 3):
        text = json.dumps(around(conversation(turns)), **rendering)
        piece = split(splitter, text)
        assert piece is not None
        assert together(piece) == text
        costs.append(kept(piece, known))
        whole += len(text)
    assert sum(costs) < whole / 4
    assert max(costs[-5:]) < 2 * max(costs[1:6])


def test_a_history_without_its_beginning_is_known_for_the_most_part() -> None:
    known = set[str]()
    first, second = (split(Splitter(), json.dumps(conversation(100, start, 400))) for start in (0, 30))
    assert first is not None
    assert second is not None
    all_of_it = kept(first, known)
    assert kept(second, known) < all_of_it / 5


def test_what_is_known_of_an_earlier_text_changes_nothing_of_a_later_one() -> None:
    told = Splitter()
    for turns in range(4, 40):
        messages = conversation(turns)
        messages[-2]["cache_control"] = {"type": "ephemeral"}  # moves on with every turn
        text = json.dumps({"messages": messages, "stream": turns % 2 == 0})
        again, fresh = split(told, text), split(Splitter(), text)
        assert again is not None
        assert fresh is not None
        assert (again.parts, again.digest) == (fresh.parts, fresh.digest)


def test_short_messages_are_gathered() -> None:
    text = json.dumps([{"role": "user", "content": f"and {n}"} for n in range(400)])
    piece = split(Splitter(), text)
    assert piece is not None
    assert together(piece) == text
    assert sum(map(len, piece.parts or ())) < len(text) / 3


@pytest.mark.parametrize(
    "text",
    [
        "x" * 2 * SHORTEST,
        "{" + "x" * 2 * SHORTEST,
        json.dumps({"a": "x" * 2 * SHORTEST}),
        json.dumps(conversation(10))[:-1],
        json.dumps(conversation(10)) + "]",
        json.dumps(conversation(10)).replace("}, {", "} {"),
        json.dumps({"a": conversation(10)}).replace('"a":', '"a"'),
        "[" * 100_000 + "]" * 100_000,
        json.dumps({"prompt": "[" + "x" * SHORTEST}),
        json.dumps(conversation(1, size=100)),
    ],
    ids=["text", "brace", "one value", "cut", "more", "no comma", "no colon", "deep", "no array", "short"],
)
def test_everything_else_stays_whole(text: str) -> None:
    assert split(Splitter(), text) is None


def leaves(piece: Piece, depth: int = 0) -> list[tuple[int, str]]:
    """The texts that a piece is made of, and how far down each is."""
    if piece.parts is None:
        return [(depth, piece.text or "")]
    return [(depth, part) for part in piece.parts[::2]] + [leaf for inner in piece.inner for leaf in leaves(inner, depth + 1)]


LONG = {
    "text": "é\n" * LONGEST,
    "string": json.dumps("x" * 2 * LONGEST),
    "one value": json.dumps({"a": "x" * 2 * LONGEST}),
    "message": json.dumps({"messages": [*conversation(2), {"role": "tool", "content": said(1, LONGEST) * 2}]}),
    "groups": json.dumps([[n, "x" * 300, "y" * LONGEST] for n in range(3)]),
    "numbers": json.dumps({"a": {"b": {"c": {"d": ["x", [*range(300_000)]]}}}}),
    "one element": json.dumps([1, [*range(300_000)], 2]),
    "no JSON": '{"a": [' + "1" * 2 * LONGEST,
}


@pytest.mark.parametrize("kind", LONG)
def test_no_value_of_the_database_is_very_long(kind: str) -> None:
    text = LONG[kind]
    piece = split(Splitter(), text)
    assert piece is not None
    assert together(piece) == text
    assert max(len(found) for _, found in leaves(piece)) <= LONGEST
    assert max(depth for depth, _ in leaves(piece)) <= 2  # the view puts no more together


def test_a_very_long_text_comes_back_and_is_in_the_view(store: Store) -> None:
    texts = [LONG["text"], LONG["groups"]]
    write(store, *texts)
    store.compact()
    assert [span.attributes["a"] for span in store.traces([TRACE])] == texts
    found = dict(store.query("SELECT digest, text FROM contents").rows)
    assert [found[digest(text)] for text in texts] == texts
    assert list(store.query(f"SELECT max(length(text)) <= {LONGEST} FROM blobs").rows) == [(True,)]


quoted = st.lists(st.sampled_from(['"', "\\", "[", "{", ",", "\n", "é", "\u0001", "some words "]), max_size=300).map("".join)


@given(first=quoted, second=quoted, rendering=st.sampled_from(RENDERINGS))
def test_a_few_long_strings_are_cut_where_they_end(first: str, second: str, rendering: dict[str, Any]) -> None:
    for long in (first + "x" * SHORTEST, "x" * SHORTEST + first):
        text = json.dumps([{"role": "user", "content": long}, {second[:20]: second}], **rendering)
        piece = split(Splitter(), text)
        assert piece is not None
        assert together(piece) == text
        strings = [json.loads(one.text) for one in piece.inner if one.text is not None and one.text.startswith('"')]
        assert long in strings


def test_a_number_that_goes_on_where_another_ended_is_no_prefix() -> None:
    splitter = Splitter()
    for last in ("1", "12", "1e5", "1"):
        text = "[" + ",".join(f'"{said(n, 600).encode().hex()}"' for n in range(8)) + f",{last}]"
        piece = split(splitter, text)
        assert piece is None or together(piece) == text


def test_what_is_remembered_is_bounded() -> None:
    splitter = Splitter()
    content = said(1, 3000) * 50
    for number in range(100):
        text = json.dumps([{"who": f"{number}", "content": content} for _ in range(3)])
        assert split(splitter, text) is not None
    assert splitter._held == sum(len(known.prefix) for alike in splitter._known.values() for known in alike) <= 8_100_000


json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
bodies = st.lists(
    st.builds(
        lambda values, rendering, tail: json.dumps({"messages": [values, *values] * 30, "x": values}, **rendering) + tail,
        st.lists(json_value, min_size=1, max_size=4),
        st.sampled_from(RENDERINGS),
        st.sampled_from(["", "", "\n", "\n  ", "\r\n", " \0", "x", "]", "\u00e9"]),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store.open(tmp_path_factory.mktemp("pieces") / "store", create=True)


@given(texts=bodies)
def test_any_body_is_what_its_pieces_make(texts: list[str]) -> None:
    splitter = Splitter()
    for text in texts:
        piece = split(splitter, text)
        assert piece is None or together(piece) == text


@given(texts=bodies)
@settings(deadline=None, max_examples=50 if FULL else 3)
def test_any_body_comes_back_as_it_was(shared: Store, texts: list[str]) -> None:
    number = next(numbers)
    writer = JournalWriter(shared.path, process=current_process())
    for way in range(2):
        spans = [
            SpanRecord(
                trace_id=f"{2 * number + way:032x}", span_id=f"{n:016x}", start_ns=n, attributes={"spanreplay.wire.request.body": text}
            )
            for n, text in enumerate(texts)
        ]
        if way:
            shared.add(spans, origin="import")
        else:
            for span in spans:
                writer.write_span(span, "recorder")
            writer.close()
            shared.compact()
        assert list(shared.traces([f"{2 * number + way:032x}"])) == spans


numbers = iter(range(10**6))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


BODY = json.dumps({"model": "m", "messages": conversation(30)}, ensure_ascii=False)


def write(store: Store, *texts: str) -> None:
    writer = JournalWriter(store.path, process=current_process())
    for number, text in enumerate(texts):
        writer.write_span(SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", start_ns=number, attributes={"a": text}), "recorder")
    writer.close()


def test_the_journal_has_each_piece_once(store: Store) -> None:
    texts = [json.dumps({"messages": conversation(turns)}, ensure_ascii=False) for turns in range(5, 30)]
    write(store, *texts)
    (journal,) = (store.path / "journal").iterdir()
    digests = [record["d"] for _, record in read_journal(journal) if record["t"] in ("blob", "pieces")]
    assert len(set(digests)) == len(digests)
    assert journal.stat().st_size < sum(len(text.encode()) for text in texts) / 4
    store.compact()
    assert [span.attributes["a"] for span in store.traces([TRACE])] == texts


def test_the_view_of_contents_has_every_text_whole(store: Store) -> None:
    write(store, BODY, "y" * 600)
    store.compact()
    found = dict(store.query("SELECT digest, text FROM contents").rows)
    assert found[digest(BODY)] == BODY
    assert found[digest("y" * 600)] == "y" * 600
    assert all(text is not None and digest(text) == name for name, text in found.items())
    assert list(store.query(f"SELECT text FROM contents WHERE digest = '{digest(BODY)}'").rows) == [(BODY,)]


def lay_whole(store: Store, text: str) -> None:
    """As a version did that cut fewer texts."""
    with store._database.writing() as connection:
        connection.execute("DELETE FROM blobs WHERE media = 'text/plain'").fetchall()
        row = [digest(text), len(text.encode()), text, int(digest(text)[7:23], 16)]
        connection.execute("INSERT INTO blobs (digest, bytes, media, text, key) VALUES ($1, $2, 'text/plain', $3, $4)", row).fetchall()


@pytest.mark.parametrize("text", [BODY, "z" * (LONGEST + 9)], ids=["conversation", "very long"])
@pytest.mark.parametrize("way", ["journal", "import"])
def test_what_an_older_version_kept_whole_is_kept_once(store: Store, text: str, way: str) -> None:
    write(store, text)
    store.compact()
    lay_whole(store, text)
    again = SpanRecord(trace_id=TRACE, span_id="f" * 16, start_ns=7, attributes={"a": text})
    if way == "import":
        store.add([again], origin="import")
    else:
        writer = JournalWriter(store.path, process=current_process())
        writer.write_span(again, "recorder")
        writer.close()
        store.compact()
    assert [span.attributes["a"] for span in store.traces([TRACE])] == [text, text]
    assert store.unreferred(up_to=9) == (0, 0)
    found = store.query(f"SELECT count(*), bool_and(parts IS NOT NULL) FROM blobs WHERE digest = '{digest(text)}'")
    assert list(found.rows) == [(1, True)]


@pytest.mark.parametrize(
    "parts", [["a", digest("no such piece"), ""], ["\ud800"], [BODY + " "]], ids=["lacks a piece", "no text", "other text"]
)
def test_parts_that_do_not_make_the_text_take_no_place_of_it(store: Store, parts: list[str]) -> None:
    write(store, BODY)
    store.compact()
    lay_whole(store, BODY)
    batch = Batch()
    batch.add({"t": "pieces", "d": digest(BODY), "n": len(BODY.encode()), "parts": parts}, None)
    with store._database.writing() as connection:
        batch.load(connection, 1)
    assert [span.attributes["a"] for span in store.traces([TRACE])] == [BODY]


def test_a_piece_that_was_changed_is_named(store: Store) -> None:
    write(store, BODY)
    store.compact()
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET text = replace(text, 'a', 'b') WHERE parts IS NULL")
    with pytest.raises(DamagedStoreError, match="has been changed"):
        list(store.traces([TRACE]))


def test_parts_that_were_changed_are_named(store: Store) -> None:
    write(store, BODY)
    store.compact()
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET parts = parts[:-3] || ' \"]' WHERE digest = $1", [digest(BODY)])
    with pytest.raises(DamagedStoreError, match=digest(BODY)):
        list(store.traces([TRACE]))


def test_content_that_lacks_a_piece_is_left_out_and_counted(store: Store) -> None:
    write(store, BODY)
    store.compact()
    with store._database.writing() as connection:
        connection.execute("DELETE FROM blobs WHERE parts IS NULL AND media = 'text/plain'")
    (span,) = store.traces([TRACE])
    assert (dict(span.attributes), span.dropped_attributes) == ({}, 1)


def test_content_that_is_made_of_itself_is_no_end_of_work(store: Store) -> None:
    write(store, BODY)
    store.compact()
    with store._database.writing() as connection:
        connection.execute("UPDATE blobs SET parts = json_array('', digest, '') WHERE parts IS NOT NULL")
    (span,) = store.traces([TRACE])
    assert span.dropped_attributes == 1

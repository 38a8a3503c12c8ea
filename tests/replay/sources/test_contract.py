"""What holds for every source: no two claim one input, nothing but the project's own error is raised, a second import changes nothing."""

import copy
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.inputs.format import registry
from spanreplay.replay.inputs.input_stream import HEAD_BYTES, HEADS
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record
from spanreplay.store.store import Store
from support.size import FULL

FIXTURES = Path(__file__).parents[2] / "fixtures"
MATERIAL = Path(__file__).parents[4] / "shared/material"
NAMES = [source.__name__.rpartition(".")[2] for source in registry()]  # type: ignore[attr-defined]
FOLDERS = ("otlp", *NAMES, *(name.partition("_")[0] for name in NAMES))


def all_files() -> list[Path]:
    folders = (FIXTURES, MATERIAL / "traces", MATERIAL / "interop")
    return sorted(path for folder in folders for path in folder.rglob("*.*") if path.is_file() and path.suffix != ".py")


def fixtures() -> list[Path]:
    return [path for folder in dict.fromkeys(FOLDERS) for path in sorted((FIXTURES / folder).glob("*")) if path.is_file()]


def heads(path: Path) -> Iterator[bytes]:
    """The beginning as it is, and as it would be of a larger file."""
    data = path.read_bytes()[:HEAD_BYTES]
    yield data
    for share in (0.3, 0.6, 0.9):
        yield data[: int(len(data) * share)]


def shown(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def read(data: bytes) -> list[Record]:
    try:
        return list(open_source("-", stdin=io.BytesIO(data)).records)
    except UnreadableSource as error:
        refusal = error
    assert not refusal.unexpected, refusal
    return []


@pytest.mark.parametrize("path", all_files(), ids=shown)
def test_at_most_one_source_claims_an_input(path: Path) -> None:
    for head in heads(path):
        if head:
            claims = [source.NAME for source in registry() if source.handles(head)]
            assert len(claims) <= 1, claims


def test_a_second_import_changes_nothing(tmp_path: Path) -> None:
    """The same files again, and with every record twice, as retries and two exporters of one program make it."""
    counts = "SELECT (SELECT count(*) FROM spans), (SELECT count(*) FROM logs), (SELECT count(*) FROM span_versions)"
    with Store.open(tmp_path / "store", create=True) as store:
        store.add((record for path in fixtures() for record in read(path.read_bytes())), origin="import")
        once = list(store.query(counts).rows)
        again = store.add((record for path in fixtures() for record in read(path.read_bytes()) * 2), origin="import")
        assert (again.new, again.changed, again.rejected) == (0, 0, 0)
        assert again.same > 100
        assert list(store.query(counts).rows) == once


@pytest.mark.parametrize("path", fixtures(), ids=shown)
def test_what_was_read_survives_export_and_another_import(path: Path) -> None:
    records = read(path.read_bytes())
    again = read(json.dumps(otlp_json.encode(records)).encode())
    assert sorted(map(repr, again)) == sorted(map(repr, records))


@pytest.mark.parametrize("path", fixtures(), ids=shown)
def test_damage_gives_records_or_the_projects_own_error(path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(len(data))
    tokens = (
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\",
        b"\n",
        b"\x00",
        b"\xff",
        b"null",
        b"1e999",
        b"-1",
        b"[[[[[[",
        b"9" * 30,
        b"true",
        b'{"a":',
    )
    for _ in range(400 if FULL else 12):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(damaged) + 1)
            match chance.randrange(4):
                case 0:
                    damaged[at : at + chance.randint(0, 30)] = chance.choice(tokens)
                case 1:
                    del damaged[at : at + chance.randint(1, 60)]
                case 2 if chance.random() < 0.3:
                    del damaged[at:]
                case _:
                    damaged[at:at] = damaged[at : at + chance.randint(1, 200)]
        json.dumps(otlp_json.encode(read(bytes(damaged))))


ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    5,
    1.5,
    2**70,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "é\ud800",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    [{"key": 5}],
)
"""What may be anywhere where something else is expected."""


def nodes(document: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value: its owner and its key or index."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        owner = waiting.pop()
        for key in owner if isinstance(owner, dict) else range(len(owner)):
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                waiting.append(owner[key])
    return found


def documents(path: Path) -> list[Any]:
    """The JSON documents of a fixture; none if it is not JSON as a whole."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return []


@pytest.mark.parametrize("path", [path for path in fixtures() if documents(path)], ids=shown)
def test_any_value_anywhere_gives_records_or_the_projects_own_error(path: Path) -> None:
    original = documents(path)
    chance = random.Random(len(original))
    for _ in range(1000 if FULL else 25):
        changed = json.loads(json.dumps(original))
        for _ in range(chance.randint(1, 3)):
            owner, key = chance.choice(nodes(changed))
            owner[key] = copy.deepcopy(chance.choice(ODD))
        json.dumps(otlp_json.encode(read("\n".join(map(json.dumps, changed)).encode())))


BULK = "x" * 200_000
"""More than is looked at first to tell the format."""


def with_bulk(document: Any, chance: random.Random) -> Iterator[Any]:
    """The document with a large value in one of its objects, first or anywhere; for each object on the way to its first span."""
    waiting: list[list[Any]] = [[]]
    while waiting:
        way = waiting.pop()
        changed = copy.deepcopy(document)
        owner, here = None, changed
        for step in way:
            owner, here = here, here[step]
        if isinstance(here, list):
            waiting += [[*way, 0]] if here else []
        elif isinstance(here, dict):
            waiting += [[*way, key] for key in here]
            fields = list(here.items())
            fields.insert(chance.choice((0, chance.randint(0, len(fields)))), ("note", BULK))
            if owner is None:
                changed = dict(fields)
            else:
                owner[way[-1]] = dict(fields)
            yield changed


@pytest.mark.parametrize("path", [path for path in fixtures() if documents(path)], ids=shown)
def test_a_large_value_before_what_tells_the_format_does_not_hide_it(path: Path) -> None:
    first, *rest = documents(path)
    known = open_source(str(path)).format
    for changed in with_bulk(first, random.Random(len(BULK))):
        data = "\n".join(map(json.dumps, [changed, *rest])).encode()
        for head in dict.fromkeys(data[:size] for size in HEADS):
            claims = [source.NAME for source in registry() if source.handles(head)]
            assert claims in ([], [known])
        assert claims == [known]


@pytest.mark.parametrize("path", [path for path in fixtures() if path.suffix == ".txt"], ids=shown)
def test_a_long_line_before_what_tells_the_format_does_not_hide_it(path: Path) -> None:
    assert open_source("-", stdin=io.BytesIO(f"{BULK}\n".encode() + path.read_bytes())).format == open_source(str(path)).format

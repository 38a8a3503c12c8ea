"""Attributes that a journal line brings keep the JSON that they stand in: a column gets just what would be made of them anew."""

import json
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.store.encoding import WrittenMap, merge_maps, to_json, to_readable_json
from spanreplay.store.journal_reader import parse_line

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(['"attrs":{', "\\u00e9", ',"attrs":0', "\x7f", "é"])
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
MAPS = st.dictionaries(TEXTS, VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(TEXTS, VALUES, max_size=2), max_size=4)


def read(form: dict[str, Any]) -> dict[str, Any]:
    text = to_json(form).encode()
    found = parse_line(b"%08x %s\n" % (crc32(text), text))
    assert found is not None
    return found


def anew(form: Any) -> str:
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


@given(name=TEXTS, attributes=MAPS, of_event=st.none() | MAPS, last=st.booleans())
def test_a_line_brings_attributes_with_their_json(name: str, attributes: Any, of_event: Any, last: bool) -> None:
    events = {} if of_event is None else {"events": [{"name": name, "attrs": of_event}]}
    own = {"attrs": attributes}
    form = {"t": "span", "name": name, **({**events, **own} if last else {**own, **events}), "end": 1}
    found = read(form)
    assert found == form
    assert to_readable_json(found["attrs"]) == anew(attributes)


@given(first=MAPS, second=MAPS, again=st.booleans())
def test_attributes_that_are_put_together(first: Any, second: Any, again: bool) -> None:
    if again:
        second = {**first, **second}
    one, other = read({"t": "open", "attrs": first, "end": 1}), read({"t": "close", "name": "x", "attrs": second})
    merged = merge_maps(one.get("attrs"), other.get("attrs"))
    assert merged == {**first, **second}
    assert to_readable_json(merged) == anew({**first, **second})


def test_the_json_of_ordinary_attributes_is_not_made_again() -> None:
    opened, closed = read({"t": "open", "name": "a", "attrs": {"a": 1}}), read({"t": "close", "end": 2, "attrs": {"b": "\\"}})
    assert type(opened["attrs"]) is WrittenMap
    assert type(merge_maps(opened["attrs"], closed["attrs"])) is WrittenMap


@pytest.mark.parametrize(
    "text", ['[{"a":1,"attrs":0}]', '{"t":"span","attrs":0}', '{"t":"span","attrs":[1]}', '{"t":"span","x":1,"attrs":"a"}']
)
def test_attributes_that_are_no_map_are_read_as_they_are(text: str) -> None:
    wanted = json.loads(text)
    assert parse_line(b"%08x %s\n" % (crc32(text.encode()), text.encode())) == (wanted if isinstance(wanted, dict) else None)

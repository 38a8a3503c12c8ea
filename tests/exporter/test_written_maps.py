"""Attributes that a journal line brings keep the JSON that they stand in: a column gets just what would be made of them anew."""

import json
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.store.encoding import WrittenMap, digest_of, encode_map, merge_maps, to_json, to_readable_json
from spanreplay.store.journal_reader import parse_line
from spanreplay.store.span_rows import Version, row_of

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


NAMES = TEXTS | st.sampled_from(["$map", "$a", ",", 'a,"b', "gen_ai.operation.name"])
NESTED = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6)


@given(attributes=st.dictionaries(NAMES, NESTED, max_size=6), more=st.dictionaries(st.sampled_from(["end", "name", "zz", "aa"]), VALUES))
def test_the_digest_of_a_span_is_of_its_sorted_json(attributes: Any, more: Any) -> None:
    form = read({"t": "span", "trace": "0" * 32, "span": "1" * 16, **more, "attrs": encode_map(attributes, digest_kept)})
    del form["t"]
    version = Version(form=form, origin="recorder", process=None)
    assert version.digest == digest_of(json.dumps(form, sort_keys=True, separators=(",", ":")).encode())
    form.pop("name", None)
    form.pop("end", None)
    assert row_of(Version(form=form, origin=None, process=None), None)[-1] == Version(form=form, origin=None, process=None).digest


def digest_kept(content: str | bytes) -> str:
    return digest_of(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)

"""The quick JSON writers say what the standard library says."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content import codec
from spanreplay.content.json_text import LONG, encoder, quoted, readable

_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
_PIECES = st.lists(st.sampled_from(['"', "\\", "\n", "\r", "\x00", "\x7f", "a", "word", "é", "\u2028", "😀", "$t", '"$t"']), max_size=8)


@settings(max_examples=60)
@given(_VALUES, st.booleans(), st.booleans(), st.booleans())
def test_an_encoder_is_the_library_s(value: object, ascii_only: bool, sort_keys: bool, spaced: bool) -> None:
    wanted = json.dumps(value, ensure_ascii=ascii_only, sort_keys=sort_keys, separators=None if spaced else (",", ":"))
    assert encoder(ascii_only=ascii_only, sort_keys=sort_keys, spaced=spaced)(value) == wanted


def test_an_encoder_refuses_what_the_library_refuses() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encoder(allow_nan=False)(float("nan"))
    with pytest.raises(TypeError, match="serializable"):
        encoder()(object())


@settings(max_examples=60)
@given(_PIECES)
def test_a_long_text_is_written_as_a_short_one(pieces: list[str]) -> None:
    text = "x" * LONG + "".join(pieces)
    assert readable(text) == json.dumps(text, ensure_ascii=False)
    if text.isascii():
        assert quoted(text) == json.dumps(text)


@settings(max_examples=60)
@given(_PIECES, st.booleans())
def test_a_long_text_in_a_value_changes_nothing_in_its_form(pieces: list[str], alone: bool) -> None:
    text = "x" * LONG + "".join(pieces)
    value = text if alone else {"page": text, "n": [1, "".join(pieces)]}
    found = codec.encode(value)
    if not found.typed:
        assert found.text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert codec.decode(found.text) == value


def test_a_long_text_with_half_a_character_survives() -> None:
    text = "x" * LONG + "\ud800"
    assert json.loads(readable(text)) == text
    assert codec.decode(codec.encode({"page": text}).text) == {"page": text}

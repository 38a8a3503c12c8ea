"""Attributes put together from pieces are those that the encoder gives."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.store import attribute_text
from spanreplay.store.attribute_text import AttributeText
from spanreplay.store.encoding import ContentLostError, digest_of, encode_map, text_bytes, to_json

_TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(["x" * 511, "x" * 512, "ü" * 256, '"\\\n' * 200])
_VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(2**62, 2**66) | st.floats() | _TEXTS | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(["a", "b.c", '"', "é", "$t", "", "\ud800"]) | st.text(max_size=4)


def _keep(content: str | bytes) -> str:
    return digest_of(content if isinstance(content, bytes) else text_bytes(content)[0])


@settings(max_examples=100)
@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=5), min_size=1, max_size=4))
def test_pieces_make_the_same_object(maps: list[dict[str, Any]]) -> None:
    writer = AttributeText(_keep)
    for _ in range(2):
        for attributes in maps:
            text = writer.text(attributes)
            assert text.isascii()
            assert json.loads(text) == json.loads(to_json(encode_map(attributes, _keep)))


@settings(max_examples=100)
@given(st.lists(st.dictionaries(_KEYS, _VALUES | st.lists(_TEXTS, max_size=2).map(tuple), max_size=5), min_size=1, max_size=4))
def test_what_others_gave_makes_the_same_object_or_none(maps: list[dict[str, Any]]) -> None:
    writer = AttributeText(_keep)
    for redactor in (None, Redactor(RedactionPolicy(salt="00"))):
        for attributes in maps:
            members = writer.clean(attributes, redactor)
            if members is not None:
                assert json.loads("{" + ",".join(members) + "}") == json.loads(to_json(encode_map(attributes, _keep)))


def test_ordinary_attributes_of_others_take_no_detour() -> None:
    attributes = {"a": 1, "b": True, "c": 0.5, "d": "text", "e": "x" * 600, "f": ("stop", "length"), "g": "é"}
    assert AttributeText(_keep).clean(attributes, Redactor(RedactionPolicy.default())) is not None


@pytest.mark.parametrize(
    "attributes",
    [
        {"password": "hunter2-hunter2"},
        {"a": "Bearer abc123def456"},
        {"a": ("sk-ant-0123456789abc",)},
        {"sk-ant-0123456789abc": 1},
        {"sk-ant-0123456789abc": "b"},
    ],
)
def test_a_secret_takes_a_detour_whoever_asked_before(attributes: dict[str, Any]) -> None:
    writer = AttributeText(_keep)
    assert writer.clean(attributes, None) is not None
    assert writer.clean(attributes, Redactor(RedactionPolicy.default())) is None


@pytest.mark.parametrize("text", ["hunter2-hunter2", "hunter2-hunter2" + "x" * 600])
def test_what_was_clean_is_looked_at_again_when_a_secret_is_learnt(text: str) -> None:
    writer, redactor = AttributeText(_keep), Redactor(RedactionPolicy.default())
    assert writer.clean({"a": text}, redactor) is not None
    redactor.learn("hunter2-hunter2")
    assert writer.clean({"a": text}, redactor) is None


def test_a_number_and_a_truth_value_stay_apart() -> None:
    writer = AttributeText(_keep)
    assert writer.text({"a": 1}) == '{"a":1}'
    assert writer.text({"a": True}) == '{"a":true}'
    assert writer.text({"a": 1.0}) == '{"a":1.0}'


def test_content_is_kept_each_time_it_is_referred_to() -> None:
    kept: list[object] = []

    def keep(content: str | bytes) -> str:
        kept.append(content)
        return _keep(content)

    writer = AttributeText(keep)
    for _ in range(3):
        writer.text({"a": "x" * 600})
    assert kept == ["x" * 600] * 3


def test_content_that_is_lost_is_not_referred_to() -> None:
    def keep(content: str | bytes) -> str:
        raise ContentLostError(28, "full")

    with pytest.raises(ContentLostError):
        AttributeText(keep).text({"a": 1, "b": "x" * 600})


def test_memory_for_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute_text, "_PIECES", 8)
    writer = AttributeText(_keep)
    for number in range(100):
        assert json.loads(writer.text({f"k{number}": f"v{number}"})) == {f"k{number}": f"v{number}"}
        assert len(writer._names) <= 8

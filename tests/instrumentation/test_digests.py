"""Digests are of the bytes of the text, and are remembered within bounds."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content import digests
from spanreplay.content.digests import known_digest, remember_digest, text_digest


@settings(max_examples=50)
@given(st.text(st.characters()))
def test_a_digest_is_of_the_utf_8_bytes(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    found = text_digest(text)
    assert (found.hex, found.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert json.loads(found.json) == [found.hex, found.size]
    assert text_digest("".join(list(text))) == text_digest(text)


def test_a_text_seen_before_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = text_digest("seen before " * 100)
    monkeypatch.setattr(digests, "sha256", lambda data: pytest.fail("hashed again"))
    assert text_digest("seen before " * 100) == first


def test_memory_for_texts_is_bounded_and_keeps_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    memo = digests._Memo()
    monkeypatch.setattr(digests, "_memo", memo)
    monkeypatch.setattr(digests, "_CHARACTERS", 1000)
    monkeypatch.setattr(digests, "_TEXTS", 8)
    for number in range(100):
        text_digest("in use")
        text_digest(f"{number} " * 100)
        assert sum(map(len, (*memo.new, *memo.old))) <= 4000
        assert len(memo.new) <= 8
    assert "in use" in memo.new
    for number in range(100):
        text_digest(str(number))
        assert len(memo.new) <= 8
    assert "in use" not in memo.new | memo.old


def test_a_digest_that_somebody_else_computed_is_remembered() -> None:
    text = "computed elsewhere \ud800" * 100
    data = text.encode("utf-8", "surrogatepass")
    assert known_digest(text) is None
    remember_digest(text, hashlib.sha256(data).hexdigest(), len(data))
    assert known_digest(text) == text_digest(text)
    assert json.loads(text_digest(text).json) == [hashlib.sha256(data).hexdigest(), len(data)]


def test_a_digest_in_use_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_memo", digests._Memo())
    monkeypatch.setattr(digests, "_TEXTS", 2)
    remember_digest("in use", "00", 6)
    for number in range(20):
        remember_digest(f"text {number}", "00", 6)
        assert known_digest("in use") is not None

"""Secrets in bytes that are no UTF-8 are taken out of typed values, and other bytes stay as they are."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.content.codec import decode, encode
from spanreplay.content.redaction import RedactionPolicy, Redactor, mask
from spanreplay.instrumentation import tool
from spanreplay.semconv import attributes as names
from support.taped import recorded

KEY = "sk-proj-Ab12Cd34Ef56Gh78xyz"


def redactor(*learnt: str) -> Redactor:
    made = Redactor(RedactionPolicy(salt="00ff"))
    for secret in learnt:
        made.learn(secret)
    return made


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_secret_in_a_text_of_another_encoding_is_taken_out(encoding: str, kind: Any) -> None:
    text = f"Schl\u00fcssel: {KEY}, gr\u00fcn"
    value = {"file": kind(text.encode(encoding)), "n": [1, (KEY,)]}
    clean, count = redactor().typed(encode(value).text)
    got: Any = decode(clean)
    assert type(got["file"]) is kind
    assert (mask(got["file"].decode(encoding)), count) == ("Schl\u00fcssel: [redacted:openai_key], gr\u00fcn", 2)
    assert redactor().typed(clean) == (clean, 0)


def test_of_other_bytes_only_what_is_known_as_a_secret_is_taken_out() -> None:
    data = b"\x89PNG\x00\xff://user:pass@host " + KEY.encode() + b"\xfe hunter2-hunter2 \xff"
    text = encode([data]).text
    assert redactor().typed(text) == (text, 0)
    clean, count = redactor("hunter2-hunter2").typed(text)
    got: Any = decode(clean)
    assert count == 1
    assert got[0].startswith(b"\x89PNG\x00\xff://user:pass@host " + KEY.encode() + b"\xfe [redacted:secret:")
    assert got[0].endswith(b"] \xff")


@given(st.binary(max_size=200), st.text(max_size=20))
def test_bytes_without_a_secret_stay(data: bytes, said: str) -> None:
    text = encode({"a": data, "b": said, '","e":"base64"}': [data, '{"$t":"bytes","v":"A!","e":"base64"}']}).text
    clean, _ = redactor().typed(text)
    decode(clean)
    if b"@" not in data and "@" not in said:
        assert clean == text


def test_pictures_stay_and_nothing_is_looked_into_where_nothing_is_taken_out() -> None:
    picture = encode(random.Random(3).randbytes(300_000)).text
    assert redactor("hunter2-hunter2").typed(picture) == (picture, 0)
    coded = encode(f"\u00fc {KEY}".encode("latin-1")).text
    assert Redactor(RedactionPolicy.none()).typed(coded) == (coded, 0)


def test_a_step_keeps_none_in_arguments_results_and_errors() -> None:
    @tool(effect="read")
    def read(data: bytes) -> bytes:
        if data.endswith(b"!"):
            raise ValueError(data)
        return data

    legacy = f"\u00fc {KEY}".encode("latin-1")

    def agent() -> None:
        read(legacy)
        with pytest.raises(ValueError, match="sk-proj"):
            read(legacy + b"!")

    first, second = recorded(agent).steps
    kept = [*(decode(first[name]) for name in (names.STEP_INPUT, names.STEP_RESULT)), decode(second[names.STEP_INPUT])]
    assert all("[redacted:openai_key]" in mask(str(value)) and KEY not in str(value) for value in kept)
    assert KEY not in repr(decode(second[names.STEP_ERROR]))
    assert second[names.STEP_REDACTED].count(names.STEP_ERROR) == 1

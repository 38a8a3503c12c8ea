"""Redacting what is new in a text gives what redacting all of it gives."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content import _answers, _histories, redaction
from spanreplay.content.redaction import RedactionPolicy, Redactor

_POLICY = RedactionPolicy(salt="5a17")
_SECRET = "Zz9-secret-of-the-process"
_PIECES = (
    *(
        '},{"role":',
        '}, {"role": ',
        '},{\\"role\\":',
        '},\n  {"a":',
        '"}]},{"parts":[{"type":',
        "}",
        "{",
        "]",
        "[",
        ",",
        ":",
        '"',
        "'",
        "\\",
        "\\\\",
    ),
    *('"password":"', '"api_key": ["', "'secret': '", '["authorization","', "['authorization', '", '\\"token\\":\\"', '","value":"'),
    *("?token=", "&key=", '"token=', "token: ", "password=", "bearer ", "://user:", "@", "[redacted:secret:00000000]", "%5D"),
    *("sk-ant-0123456789abcdef", "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0", "-----END PRIVATE KEY-----", "hunter2hunter2"),
    *(
        "AWS4-HMAC-SHA256 Credential=",
        "eyJhbGciOi.eyJzdWIiOi.",
        _SECRET,
        "ordinary text ",
        "é",
        "\n",
        "password for ",
        "key is ",
        "host=db ",
        "curl ",
        "-u a:bcd",
        "Cookie: a=",
        "curl -u me:",
        " ",
        "x" * 30,
        "1",
    ),
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "LONG", 8)
    monkeypatch.setattr(_histories, "LONG", 8)
    monkeypatch.setattr(_histories, "_LEAST", 4)
    monkeypatch.setattr(_answers, "_TEXT", 0)


_TEXTS = st.lists(st.sampled_from(_PIECES), min_size=2, max_size=14).map("".join)


@settings(max_examples=150)
@given(st.lists(_TEXTS, min_size=1, max_size=5), _TEXTS, st.booleans())
def test_a_text_that_grows_is_redacted_as_a_whole_is(grown: list[str], last: str, knows: bool) -> None:
    growing, whole = Redactor(_POLICY), Redactor(_POLICY)
    if knows:
        growing.learn(_SECRET)
        whole.learn(_SECRET)
    text = '{"messages": [{"role": "user", "content": "hello"}'
    for more in grown:
        text += more
        for seen in (text, text + last):
            if len(seen) >= 8:
                assert growing.text(seen) == whole._redact(seen, whole._learnt)


@pytest.mark.parametrize("tools", [0, 30], ids=["alone", "before tools"])
def test_only_what_is_new_is_looked_through(tools: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [{"type": "function", "name": f"tool_{number}", "description": "does " * 20} for number in range(tools)]
    seen: list[int] = []
    real = Redactor._found

    def found(self: Redactor, text: str, learnt: tuple[str, ...], *, size: int | None = None) -> object:
        seen.append(len(text))
        return real(self, text, learnt, size=size)

    monkeypatch.setattr(Redactor, "_found", found)
    chance, redactor = random.Random(1), Redactor(_POLICY)
    talks: list[list[dict[str, str]]] = [[{"role": "system", "content": "x" * 500}] for _ in range(3)]
    for _ in range(30):
        for messages in talks:
            secret = f"sk-ant-{chance.getrandbits(64):016x}"
            messages.append({"role": "user", "content": f"{chance.random()} {secret} " + "word " * 60})
            text = json.dumps({"model": "m", "messages": messages, "tools": offered})
            clean, count = redactor.text(text)
            assert count == len(messages) - 1
            assert secret not in clean
            assert json.loads(clean)["messages"][0] == messages[0]
    assert sum(seen) < 3 * 30 * (1500 + 20 * tools)


def test_a_history_that_has_a_secret_learnt_meanwhile_is_redacted_anew() -> None:
    redactor = Redactor(_POLICY)
    text = json.dumps({"messages": [{"role": "user", "content": f"it is {_SECRET}"}, {"role": "user", "content": "well"}] * 3})
    assert redactor.text(text) == (text, 0)
    redactor.learn(_SECRET)
    clean, count = redactor.text(text)
    assert count == 3
    assert _SECRET not in clean


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_histories, "_HELD", 5_000)
    redactor = Redactor(_POLICY)
    for number in range(300):
        redactor.text(f'{{"n": {number}, "messages": [{{"role": "a", "content": "{"x" * 90}"}}, {{"role": "b"}}]}}')
        histories = redactor._answers.histories
        held = sum(len(piece.text) for alike in histories._known.values() for pieces, _ in alike for piece in pieces)
        assert held == histories._held <= 5_000

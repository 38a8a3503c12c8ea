"""What a redactor takes out is what the plain definition does: every form tried everywhere, nothing remembered, no text cut.

Secrets stand in every place of growing conversations: in any escape, beside letters of other alphabets and base64, over cuts and marks.
"""

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content import _answers, _histories, redaction
from spanreplay.content._fields import REPLACED, NamedFinder
from spanreplay.content._hints import Hints
from spanreplay.content._token_forms import TOKENS
from spanreplay.content._tokens import starts_word
from spanreplay.content.redaction import RedactionPolicy, Redactor

POLICY: Final = RedactionPolicy(salt="5a17")
NAMES: Final = NamedFinder(POLICY.headers, POLICY.members, POLICY.query, POLICY.header_words)
LEARNT: Final = "Zz9-known-to-the-process"
AWS: Final = "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SECRETS: Final = (
    *("sk-ant-api03-Ab12Cd34Ef56", "sk-proj-Ab12Cd34Ef56Gh78", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", AWS),
    *("xoxb-123456789012-abcdefGHIJ", "glpat-AbCdEfGhIjKlMnOpQrSt", "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "Bearer abc123def456"),
    *("npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "SG.AbCdEfGhIjKlMnOpQ.AbCdEfGhIjKlMnOpQ", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    *("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4", "Cookie: sid=abc; a=b"),
    *(
        "the password is hunter2!x",
        "api key is Zq7Lw2Xr9T",
        "Passwort: geheim#x",
        "host=db password=secretly x",
        "Basic dXNlcjpwYXNzd29yZA==",
    ),
    *(
        "https://user:pa55w0rd@host/x?api_key=abcdef&b=1",
        "curl -u bob:hunter2 https://x",
        "token=Zq7Lw2Xr9Tk4",
        "grant=x&client_secret=abc",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----",
        "{'secret': 'abc'}",
        '{"password":"it is"}',
        LEARNT,
    ),
    *('[["authorization","abcdef"]]', '{"name":"x-api-key","value":"abc"}', 'Authorization: Digest username="M", response="75f"'),
)
BESIDE: Final = (
    *(
        "",
        " ",
        "\n",
        "\t",
        '"',
        "'",
        "\\",
        "/",
        "=",
        "_",
        "-",
        ".",
        ",",
        "QUJDREVGR0g=",
        "QUJD",
        "é",
        "ü\u2003",
        "\u212a",
        "\u0130",
        "\u017f",
    ),
    *(
        "\ud800",
        "😀",
        "%20",
        "\\n",
        "\\u0022",
        "},{",
        '"},{"role":"',
        '},{\\"role\\":',
        "[redacted:secret:00000000]",
        "x" * 40,
        "curl ",
        "@",
        "://",
    ),
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short texts are cut, too."""
    monkeypatch.setattr(redaction, "LONG", 40)
    monkeypatch.setattr(_histories, "_LEAST", 12)
    monkeypatch.setattr(_answers, "_TEXT", 0)


# ---- the definition ------------------------------------------------------------------------------------------------


def secrets_in(text: str) -> Iterator[tuple[int, int, str]]:
    for token in TOKENS:
        for match in token.pattern.finditer(text):
            start = match.start(match.lastindex or 0)
            secret = match.group(match.lastindex or 0).rstrip(".")
            begins = match.start() - token.lead
            whole = token.anywhere or starts_word(text, begins) or (token.glued and text[begins - 1] == "_")
            if whole and token.check(secret) and (token.around is None or token.around(text, start, start + len(secret))):
                yield start, start + len(secret), token.kind
    yield from NAMES.spans(text, NAMES.hints)


def replacement(kind: str, secret: str) -> str:
    head, _, rest = secret.partition(" ")
    plain = rest.lstrip() if rest and head.lower() in ("bearer", "basic", "token") else secret
    for _ in range(4 if "\\" in plain else 0):
        try:
            plain = json.loads(f'"{plain}"')
        except ValueError:
            break
    digest = hmac.new(POLICY.salt.encode(), plain.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:8]
    return f"%5Bredacted:{kind}:{digest}%5D" if kind == "userinfo" else f"[redacted:{kind}:{digest}]"


def without(text: str, *, knows: bool) -> tuple[str, int]:
    found = list(secrets_in(text))
    known = knows and LEARNT in text
    at = text.find(LEARNT) if known else -1
    while at >= 0:
        found.append((at, at + len(LEARNT), "secret"))
        at = text.find(LEARNT, at + len(LEARNT))
    if known and text.lstrip()[:1] in ("{", "[", '"'):
        try:
            return by_value(json.loads(text), text)
        except (ValueError, RecursionError):
            pass
    made, done, count = "", 0, 0
    found.sort(key=lambda span: (span[0], -span[1]))
    while found:
        start, end, kind = found.pop(0)
        while found and found[0][0] < end:
            end = max(end, found.pop(0)[1])
        made, done, count = made + text[done:start] + replacement(kind, text[start:end]), end, count + 1
    return made + text[done:], count


def by_value(tree: Any, text: str) -> tuple[str, int]:
    total = 0

    def walk(item: Any, name: str = "") -> Any:
        nonlocal total
        if isinstance(item, dict):
            return {walk(key): walk(value, key.lower()) for key, value in item.items()}
        if isinstance(item, list):
            return [walk(value) for value in item]
        if not isinstance(item, str):
            return item
        if name in {*POLICY.headers, *POLICY.members} and item and not REPLACED.fullmatch(item):
            total += 1
            return replacement("header" if name in POLICY.headers else "member", item)
        clean, count = without(item, knows=True)
        total += count
        return clean

    separators = (", ", ": ") if '": ' in text else (",", ":")
    return json.dumps(walk(tree), ensure_ascii=text.isascii(), separators=separators), total


# ---- what is compared ----------------------------------------------------------------------------------------------


def redactor(*, fast: bool, knows: bool) -> Redactor:
    made = Redactor(POLICY)
    made._search.hints = _HINTS[fast]
    if knows:
        made.learn(LEARNT)
    return made


_HINTS: Final = {fast: Hints(Redactor(POLICY)._search.hints.known, after=0 if fast else 1 << 62) for fast in (False, True)}
SAID: Final = st.lists(st.sampled_from((*SECRETS, *BESIDE)), max_size=5).map("".join)
TOOLS: Final = [{"type": "function", "name": f"tool_{number}", "description": "reads what is asked for " * 2} for number in range(3)]


@settings(max_examples=200)
@given(
    st.lists(SAID, min_size=1, max_size=5), SAID, st.integers(0, 3), st.booleans(), st.booleans(), st.booleans(), st.sampled_from((None, 1))
)
def test_a_conversation_loses_what_the_definition_says(
    said: list[str], tool: str, depth: int, ascii_only: bool, fast: bool, knows: bool, indent: int | None
) -> None:
    ours = redactor(fast=fast, knows=knows)
    messages: list[dict[str, str]] = []
    for content in said:
        messages.append({"role": "user", "content": content})
        body: Any = {"model": "m", "messages": messages, "tools": [*TOOLS, {"type": "function", "name": "own", "description": tool}]}
        for _ in range(depth):
            body = {"in": json.dumps(body, ensure_ascii=ascii_only)}
        for text in (
            json.dumps(body, ensure_ascii=ascii_only, indent=indent),
            json.dumps(body, sort_keys=True, separators=(",", ":")),
            repr(body),
            content,
        ):
            assert ours.text(text) == (without(text, knows=knows) if len(text) >= 8 else (text, 0))


@pytest.mark.parametrize("fast", [False, True], ids=["searches", "automaton"])
@pytest.mark.parametrize("secret", SECRETS)
def test_each_secret_beside_everything(secret: str, fast: bool) -> None:
    ours = redactor(fast=fast, knows=True)
    for beside in BESIDE:
        for text in (beside + secret, secret + beside, beside + secret + beside):
            for said in (text, json.dumps({"a": text}), json.dumps(json.dumps([text, {"b": text}])), f"[{text!r}]"):
                assert ours.text(said) == without(said, knows=True)
                assert ours.finds_in("a", said) == (ours.text(said)[1] > 0)

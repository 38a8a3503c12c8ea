"""Hints: wherever a form of secret is found, or the name of one, a hint of it is, with an automaton and without one; and what they cost in
common they find as each alone.
"""

import json
import re
import sys
import threading
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.content._automaton import Automaton
from spanreplay.content._fields import NamedFinder
from spanreplay.content._hints import Hint, Hints, preceded
from spanreplay.content._token_forms import TOKENS
from spanreplay.content._tokens import TokenFinder
from spanreplay.content.redaction import RedactionPolicy, Redactor

POLICY: Final = RedactionPolicy(salt="00", members=(*RedactionPolicy(salt="").members, "contrase\u00f1a", "\u00e9", "x-\u00fc", "a", "?k"))
TOKEN_FINDER: Final = TokenFinder(POLICY.patterns)
NAMED_FINDER: Final = NamedFinder(POLICY.headers, POLICY.members, POLICY.query, POLICY.header_words)
HINTS: Final = Hints(TOKEN_FINDER.hints + NAMED_FINDER.hints, after=2**62)
FAST: Final = Hints(TOKEN_FINDER.hints + NAMED_FINDER.hints, after=0)
WORDS: Final = (
    *("key", "api_key", "Token", "SECRET", "authorization", "passwd", "Password", "kennwort", "contrase\u00f1a", "senha", "mot de passe"),
    *("cookie", "x-auth", "x-session-id", "sig", "X-Amz-Signature", "client_assertion", "pwd", "access_key", "x-\u00fc", "\u00e9", "?k"),
    *("sk-ant-api03-Ab12Cd34Ef56", "sk-Ab12Cd34Ef56Gh78", "ghp_16C7e42F292c6912E7710c", "AKIAIOSFODNN7EXAMPLE", "eyJhbGci.eyJzdWIi.dozjgN"),
    *(
        "xoxb-123456789012",
        "glpat-AbCdEfGhIjKlMnOpQr",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01",
        "whsec_AbCdEfGhIjKlMnOpQrSt",
        "-----BEGIN PRIVATE KEY-----",
    ),
    *(
        "SG.AbCdEfGhIjKlMnOpQ.AbCdEfGhIjKlMnOpQ",
        "Bearer",
        "basic",
        "dXNlcjpwYXNz",
        "curl -u",
        "a:b",
        "--user",
        "Zq7!Lw2Xr9",
        "host=db",
        "\ud800",
    ),
    *(
        "gsk_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl",
        "npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    ),
    *(
        "dop_v1_0123456789abcdef0123456789abcdef01234567",
        "shpat_0123456789abcdef0123456789abcdef",
        "r8_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    ),
    *("lsv2_pt_AbCdEfGhIjKlMnOpQrStUvWxYz0123", "lin_api_AbCdEfGhIjKlMnOpQrStUvWxYz0123", "github_pat_11ABCDE0000abcdefghij_klmnop"),
    *("pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAw", "GOCSPX-AbCdEfGhIjKlMnOpQrStUvWx0123", "sq0atp-AbCdEfGhIjKlMnOpQrStUv"),
    *(
        "ya29.a0AfH6SMBx-Zq7Lw2Xr9TbCdEfGhIj",
        "ya29.c.b0Aaekm1K-AbCdEfGhIjKlMn",
        "hvs.CAESIAbCdEfGhIjKlMnOpQr",
        "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFM",
    ),
    *("tvly-dev-AbCdEfGhIjKlMnOpQrSt0", "xai-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd", "nvapi-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd"),
    *(
        "://ptb.discord.com/api/webhooks/1234567890/",
        "://\u00e4.discord.com/api/webhooks/1234567890/",
        "://api.telegram.org/bot123456:",
        "A" * 40,
    ),
    *(
        "password for bob is ",
        "Kennwort lautet ",
        "api key is ",
        "the token is ",
        "x-custom-token",
        "X-My-Secret",
        "\u212aey",
        "\u017fig",
        "tru\u017ft",
    ),
    *("Authorization: Digest username=", "response=6629fae4", "-u bob:", "--proxy-user=bob:", "Cookie: a=b", "set-cookie", "passd", "worw"),
    *("://hooks.slack.com/services/T0000/B0000/XXXXXXXXXXXX", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0", "AWS4-HMAC-SHA256", "\u0130"),
)
MARKS: Final = ("=", ":", " ", '"', "'", '": "', '\\"', "\n", "\\n", "&", "?", " = ", ": ", " is ", " for ", ", ", "/", "-", "_")
TEXTS: Final = st.lists(st.sampled_from((*WORDS, *MARKS)) | st.text(max_size=3), max_size=30).map("".join)


def found(text: str, hints: Hints) -> tuple[Any, Any]:
    """What is found in a text where these hints say where to look."""
    hits = hints.of(text)
    return TOKEN_FINDER.spans(text, hits), list(NAMED_FINDER.spans(text, hits))


@pytest.mark.parametrize("hints", [HINTS, FAST], ids=["searches", "automaton"])
@given(TEXTS, st.sampled_from((0, 1000)), st.booleans())
def test_whatever_is_found_has_a_hint(hints: Hints, text: str, more: int, in_json: bool) -> None:
    text = (json.dumps({"t": text}) if in_json else text) + " " * more  # short texts are searched at once, longer ones a letter at a time
    spans, named = found(text, hints)
    everywhere = TOKEN_FINDER.spans(text, frozenset(TOKEN_FINDER.hints)), list(NAMED_FINDER.spans(text, NAMED_FINDER.hints))
    assert (spans, named) == everywhere


@pytest.mark.parametrize("hints", [HINTS, FAST], ids=["searches", "automaton"])
@given(st.sampled_from(WORDS), TEXTS, st.sampled_from((0, 10_000)), st.booleans())
def test_whether_a_value_has_a_secret_is_found_out_as_it_is_taken_out(hints: Hints, name: str, text: str, more: int, learns: bool) -> None:
    redactor = Redactor(POLICY)
    redactor._search.hints = hints
    if learns:
        redactor.learn(text[:12])
    for value in (text, text + "://a:b@", text + " " * more):
        assert redactor.finds_in(name, value) == (redactor.named(name, value)[1] > 0)
    assert not Redactor(RedactionPolicy.none()).finds_in("password", text)


@given(
    st.sampled_from(("api_key", "Access Key", "TOKEN", "secret", "Authorization", "passd", "pwd", "access_key", "access_key ")),
    st.sampled_from(("=", ":", ": ", ":\u2003\u2003", '= \u00a0"', "=\x1c", ": Basic ", ":\u00a0digest ")),
    st.text("abcXYZ/+_=.~!@$^*-\u00e9", max_size=26),
    st.sampled_from(("", "7", "7" * 20, '", x="y"')),
)
def test_what_is_likely_beside_a_name_has_a_hint(name: str, mark: str, value: str, more: str) -> None:
    for text in (
        f"{name}{mark}{value}{more};host=db",
        f"{name[0]}earer{mark[1:]} {value}{more}",
        f"Bearer{mark[1:]} {value}{more}",
        f"basic {value}",
    ):
        assert TOKEN_FINDER.spans(text, FAST.of(text)) == TOKEN_FINDER.spans(text, frozenset(TOKEN_FINDER.hints))


def test_code_and_prose_have_no_hint_where_there_is_an_automaton() -> None:
    pytest.importorskip("hyperscan")
    for text in (
        "sorted(x, key=lambda item: item.size)",
        "for key: value in a basic usage",
        "the bearer of it",
        "{key: None}",
        "f(token=next(it))",
    ):
        assert FAST.at_once(text) == frozenset()
    assert HINTS.at_once("x") is None


@given(TEXTS, st.sampled_from((0, 1000)))
def test_hints_are_found_together_as_each_alone(text: str, more: int) -> None:
    text += " " * more
    raw = text.encode("utf-8", "surrogatepass")
    alone = {
        hint for hint in TOKEN_FINDER.hints + NAMED_FINDER.hints if re.search(hint.pattern.encode(), raw if hint.exact else raw.lower())
    }
    assert HINTS.of(text) == alone or any(letter in text for letter in "\u0130\u0131\u017f\u212a")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), TEXTS)
def test_a_mark_is_found_after_any_of_its_endings(endings: list[str], text: str) -> None:
    text += f"{endings[0]}="
    data = text.encode("utf-8", "surrogatepass")
    wanted = [data.find((ending + "=").encode("utf-8", "surrogatepass")) >= 0 for ending in endings if ending.isprintable()]
    if wanted:
        hint = preceded("=", [ending for ending in endings if ending.isprintable()])
        assert (re.search(hint.pattern.encode(), data) is not None) == any(wanted)
        assert (re.search(hint.forward.encode(), data) is not None) == any(wanted)


def test_every_form_has_a_hint() -> None:
    assert all(token.hints for token in TOKENS)
    assert Hints(()).of("sk-ant-api03-abcdefgh " * 50) == frozenset()
    assert Hints([Hint("a"), Hint("A", exact=True)]).of("A") == {Hint("a"), Hint("A", exact=True)}


def test_an_automaton_is_made_when_many_texts_have_been_searched() -> None:
    pytest.importorskip("hyperscan")
    made = Automaton([("sec", True), ("ret", False)], after=8)
    assert made.found(b"secRET") is None
    made.found(b"secRET")
    while made.found(b"") is None:
        threading.Event().wait(0.001)
    assert made.found(b"secRET") == [0, 1]
    assert made.found(b"SECret") == [1]
    assert made.found(b"") == []


def test_without_hyperscan_there_is_no_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    for after in (0, 1):
        made = Automaton([("sec", True)], after=after)
        assert [made.found(b"secret") for _ in range(3)] == [None] * 3
    assert Hints([Hint("sec")], after=0).of("a secret") == {Hint("sec")}


def test_what_an_automaton_cannot_say_is_searched_for_without() -> None:
    assert Automaton([("(?<=a)b", True)], after=0).found(b"ab") is None


def test_threads_share_an_automaton() -> None:
    pytest.importorskip("hyperscan")
    text = "x " * 3000 + "sk-ant-api03-Ab12Cd34Ef56"
    wanted, wrong = FAST.of(text), list[object]()

    def search() -> None:
        wrong.extend(hits for hits in (FAST.of(text) for _ in range(50)) if hits != wanted)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wanted
    assert not wrong


def test_any_name_may_be_that_of_a_secret() -> None:
    for name in ("\ud800x", "(", "x" * 400, "a", "\u00e9", "", "a|b"):
        finder = NamedFinder([name], [name], [name])
        for hints in (Hints(finder.hints), Hints(finder.hints, after=0)):
            text = f'{{"{name}": "abcdefgh"}} ?{name}=abcdef'
            spans = list(finder.spans(text, hints.of(text)))
            assert [text[span.start : span.end] for span in spans] == (["abcdefgh", "abcdef"] if name else [])


def test_no_automaton_is_made_of_a_strangers_many_names() -> None:
    made = Automaton([("a" * 30_000, True)], after=0)
    assert made.found(b"a" * 30_000) is None

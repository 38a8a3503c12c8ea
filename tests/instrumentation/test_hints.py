"""Hints: wherever a form of secret is found, or the name of one, a hint of it is; and what they cost in common they find as each alone."""

import json
import re
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from spanreplay.content._fields import NamedFinder
from spanreplay.content._hints import Hint, Hints, preceded
from spanreplay.content._tokens import TOKENS, TokenFinder
from spanreplay.content.redaction import RedactionPolicy

POLICY: Final = RedactionPolicy(salt="00", members=(*RedactionPolicy(salt="").members, "contrase\u00f1a", "\u00e9", "x-\u00fc", "a", "?k"))
TOKEN_FINDER: Final = TokenFinder(POLICY.patterns)
NAMED_FINDER: Final = NamedFinder(POLICY.headers, POLICY.members, POLICY.query, POLICY.header_words)
HINTS: Final = Hints(TOKEN_FINDER.hints + NAMED_FINDER.hints)
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
    *("://hooks.slack.com/services/T0000/B0000/XXXXXXXXXXXX", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY0", "AWS4-HMAC-SHA256", "\u0130"),
)
MARKS: Final = ("=", ":", " ", '"', "'", '": "', '\\"', "\n", "\\n", "&", "?", " = ", ": ", " is ", " for ", ", ", "/", "-", "_")
TEXTS: Final = st.lists(st.sampled_from((*WORDS, *MARKS)) | st.text(max_size=3), max_size=30).map("".join)


@given(TEXTS, st.sampled_from((0, 1000)), st.booleans())
def test_whatever_is_found_has_a_hint(text: str, more: int, in_json: bool) -> None:
    text = (json.dumps({"t": text}) if in_json else text) + " " * more  # short texts are searched at once, longer ones a letter at a time
    hits = HINTS.of(text)
    assert TOKEN_FINDER.spans(text, hits) == TOKEN_FINDER.spans(text, frozenset(TOKEN_FINDER.hints))
    assert list(NAMED_FINDER.spans(text, hits)) == list(NAMED_FINDER.spans(text, NAMED_FINDER.hints))


@given(TEXTS, st.sampled_from((0, 1000)))
def test_hints_are_found_together_as_each_alone(text: str, more: int) -> None:
    text += " " * more
    raw = text.encode("utf-8", "surrogatepass")
    alone = {
        hint for hint in TOKEN_FINDER.hints + NAMED_FINDER.hints if re.search(hint.pattern.encode(), raw if hint.exact else raw.lower())
    }
    assert HINTS.of(text) == alone


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), TEXTS)
def test_a_mark_is_found_after_any_of_its_endings(endings: list[str], text: str) -> None:
    text += f"{endings[0]}="
    data = text.encode("utf-8", "surrogatepass")
    wanted = [data.find((ending + "=").encode("utf-8", "surrogatepass")) >= 0 for ending in endings if ending.isprintable()]
    if wanted:
        found = re.search(preceded("=", [ending for ending in endings if ending.isprintable()]).encode(), data)
        assert (found is not None) == any(wanted)


def test_every_form_has_a_hint() -> None:
    assert all(token.hints for token in TOKENS)
    assert Hints(()).of("sk-ant-api03-abcdefgh " * 50) == frozenset()
    assert Hints([Hint("a"), Hint("A", exact=True)]).of("A") == {Hint("a"), Hint("A", exact=True)}

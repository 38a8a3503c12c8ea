"""Secrets that are recognised by their own form, anywhere in a text.

Every pattern is linear: possessive quantifiers, and a start that cannot begin again inside the run it has just read.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_AFTER_ESCAPE: Final = re.compile(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2})\Z")


class Span(NamedTuple):
    """A secret in a text: ``text[start:end]``, and the word that stands in its replacement. A tuple: texts may hold thousands."""

    start: int
    end: int
    kind: str


def occurs(pattern: re.Pattern[bytes], data: bytes) -> bool:
    """Tell whether a pattern matches somewhere.

    A pattern that begins with an ordinary letter is not tried before the first one of these: where there is none, the answer
    comes at the speed of ``memchr``, 20 times that of the regex engine.
    """
    letter = pattern.pattern[:1]
    if letter.isalnum() or letter in (b"-", b"_", b"=", b":"):
        at = data.find(letter)
        return at >= 0 and pattern.search(data, at) is not None
    return pattern.search(data) is not None


def starts_word(text: str, at: int) -> bool:
    r"""Tell whether a word may begin here: no letter or digit before, unless it is the end of an escape such as ``\n``."""
    if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
        return True
    return _AFTER_ESCAPE.search(text, max(0, at - 6), at) is not None


def _any(_: str) -> bool:
    return True


def _key_like(token: str) -> bool:
    """Tell ``sk-…`` keys from words: a digit, or one long run without hyphens."""
    body = token[3:]
    return token.startswith("sk-ant-") or any(char.isdigit() for char in body) or (len(body) >= 20 and "-" not in body)


def _bearer_like(token: str) -> bool:
    """Tell a token from a word of prose after "bearer"."""
    if any(char.isdigit() for char in token):
        return len(token) >= 6
    return len(token) >= 20 and "/" not in token


def _basic_like(token: str) -> bool:
    """Tell credentials (base64 of ``user:password``) from a word of prose after "basic"."""
    try:
        plain = base64.b64decode(token, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable()


def _value_like(token: str) -> bool:
    """Tell a credential after its name in a sentence from a word of prose or code."""
    return any(char.isdigit() for char in token) or len(token) >= 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One form of secret.

    Attributes:
        kind: Stands in the replacement, and in the policy.
        hint: A cheap pattern over the UTF-8 bytes of a text; without a hit the form is not there.
        lower: The hint is for the bytes with ASCII letters in lower case.
        pattern: The form; its last group, or the whole of it, is the secret.
        check: What a pattern cannot tell.
    """

    kind: str
    hint: re.Pattern[bytes]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = _any
    lower: bool = False


# The hints begin with one rare letter each: the regex engine then skips through a text almost at the speed of memchr.
_DASH: Final = re.compile(rb"-(?:(?<=sk-)|(?<=xox[a-z]-)|(?<=xapp-)|----BEGIN|HMAC-SHA256)")
_UNDERSCORE: Final = re.compile(rb"_(?:(?<=gh[a-z]_)|(?<=github_pat_)|(?<=[rs]k_)(?:live|test)_)")
_CAPITAL_A: Final = re.compile(rb"A(?:KIA|SIA|Iza)[A-Za-z0-9_-]{16}")
_J: Final = re.compile(rb"J(?<=eyJ)[A-Za-z0-9_-]{6}")
_B: Final = re.compile(rb"b(?:earer|asic)\s")

_NAMES: Final = (
    *(
        f"{word}{hyphen}[Kk][Ee][Yy]"
        for word in ("[Aa][Pp][Ii]", "[Aa][Cc][Cc][Ee][Ss][Ss]", "[Ss][Ee][Cc][Rr][Ee][Tt]")
        for hyphen in ("", "[-_]")
    ),
    *("[Tt][Oo][Kk][Ee][Nn]", "[Ss][Ee][Cc][Rr][Ee][Tt]", "[Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn]"),
    *(f"[Pp][Aa][Ss][Ss]{rest}[Dd]" for rest in ("", "[Ww]", "[Ww][Oo][Rr]", "[Ww][Oo][Rr][Ww]")),
)
_VALUE: Final = r"([A-Za-z0-9+/=_.~!@$^*-]{6,}+)"
_ENDS: Final = rb"(?<=key{0})|(?<=token{0})|(?<=secret{0})|(?<=passwd{0})|(?<=password{0})|(?<=authorization{0})"
_EQUALS: Final = re.compile(rb"=(?:" + _ENDS.replace(b"{0}", b"=") + rb")")
_COLON: Final = re.compile(rb":(?:" + _ENDS.replace(b"{0}", b":") + rb")")
# They begin with the mark and look back for the name: a name is tried nowhere else, which is many times faster.
_NAMED_EQUALS: Final = re.compile(f"=(?:{'|'.join(f'(?<={name}=)' for name in _NAMES)}){_VALUE}")
_NAMED_COLON: Final = re.compile(rf":(?:{'|'.join(f'(?<={name}:)' for name in _NAMES)})\s{{1,2}}(?:[Bb]asic\s)?{_VALUE}")
"""A credential after its name in running text, an exception's for one: ``token=…``, ``x-api-key: …``."""

_START: Final = r"(?:(?<![A-Za-z0-9_-]eyJ)|(?<=\\[nrtbf]eyJ)|(?<=\\u[0-9a-fA-F]{4}eyJ)|(?<=%[0-9a-fA-F]{2}eyJ))"

TOKENS: Final[tuple[Token, ...]] = (
    Token(
        kind="private_key",
        hint=_DASH,
        pattern=re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----"
            r"(?:(?:\\++[nr/]|[A-Za-z0-9+/=\s:,.]|-(?!----))*+-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----"
            r"|(?:(?:\\++[nr]|\s)*+[A-Za-z0-9+/=]{16,}+)++)"
        ),
    ),
    Token(kind="anthropic_key", hint=_DASH, pattern=re.compile(r"sk-ant-[A-Za-z0-9_-]{8,}+"), check=_key_like),
    Token(kind="openai_key", hint=_DASH, pattern=re.compile(r"sk-(?!ant-)[A-Za-z0-9_-]{12,}+"), check=_key_like),
    Token(kind="slack_token", hint=_DASH, pattern=re.compile(r"x(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}+")),
    Token(
        kind="aws_signature",
        hint=_DASH,
        pattern=re.compile(r"AWS4-HMAC-SHA256\s{1,4}+(Credential=[^\s\"'\\]++(?:,?\s{0,2}(?:SignedHeaders|Signature)=[^\s\"'\\]++){0,2})"),
    ),
    Token(kind="github_token", hint=_UNDERSCORE, pattern=re.compile(r"g(?:h[opusr]|ithub_pat)_[A-Za-z0-9_]{16,}+")),
    Token(kind="stripe_key", hint=_UNDERSCORE, pattern=re.compile(r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+")),
    Token(kind="aws_key", hint=_CAPITAL_A, pattern=re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])")),
    Token(kind="google_key", hint=_CAPITAL_A, pattern=re.compile(r"AIza[A-Za-z0-9_-]{30,}+")),
    Token(
        kind="jwt",
        hint=_J,
        pattern=re.compile(rf"eyJ{_START}[A-Za-z0-9_-]{{6,}}+\.[A-Za-z0-9_-]{{6,}}+\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){{0,2}}"),
    ),
    Token(
        kind="bearer",
        hint=_B,
        pattern=re.compile(r"[Bb](?:earer|EARER)\s{1,4}+((?:[A-Za-z0-9._~+/=-]++|\\++/)++)"),
        check=_bearer_like,
        lower=True,
    ),
    Token(kind="named", hint=_EQUALS, pattern=_NAMED_EQUALS, check=_value_like, lower=True),
    Token(kind="named", hint=_COLON, pattern=_NAMED_COLON, check=_value_like, lower=True),
    Token(kind="basic", hint=_B, pattern=re.compile(r"[Bb](?:asic|ASIC)\s{1,4}+([A-Za-z0-9+/]{4,}+={0,2})"), check=_basic_like, lower=True),
)
"""Every form, in the order in which they are named in a policy."""


def token_spans(text: str, raw: bytes, low: bytes, tokens: tuple[Token, ...]) -> Iterator[Span]:
    """Find the secrets that show by their form.

    Args:
        text: The text.
        raw: The same as UTF-8.
        low: The same as UTF-8, ASCII letters in lower case.
        tokens: The forms to look for.
    """
    hints: dict[re.Pattern[bytes], bool] = {}
    for token in tokens:
        hit = hints.get(token.hint)
        if hit is None:
            hit = hints[token.hint] = occurs(token.hint, low if token.lower else raw)
        if not hit:
            continue
        for match in token.pattern.finditer(text):
            group = match.lastindex or 0
            secret = match.group(group).rstrip(".")
            if (token.kind == "named" or starts_word(text, match.start())) and token.check(secret):
                yield Span(match.start(group), match.start(group) + len(secret), token.kind)

"""Secrets that are recognised by their own form, anywhere in a text.

Every pattern is linear: possessive quantifiers, and a start that cannot begin again inside the run it has just read.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

_AFTER_ESCAPE: Final = re.compile(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2})\Z")


Hint: TypeAlias = Callable[[bytes], object]
"""Gives something false of the UTF-8 bytes of a text, cheaply, where something is not in it."""
_RARE: Final = frozenset(b"=@JZz_")


class Span(NamedTuple):
    """A secret in a text: ``text[start:end]``, and the word that stands in its replacement. A tuple: texts may hold thousands."""

    start: int
    end: int
    kind: str


def quick(pattern: str) -> Hint:
    """Return what tells whether a pattern matches somewhere in the UTF-8 bytes of a text.

    A pattern that begins with a letter that many texts lack is not tried before the first one of these: where there is none, the
    answer comes at the speed of ``memchr``, 20 times that of the regex engine.
    """
    search = re.compile(pattern.encode()).search
    letter = pattern[:1].encode()
    if letter[0] not in _RARE:
        return search

    def hint(data: bytes) -> object:
        at = data.find(letter)
        return at >= 0 and search(data, at)

    return hint


def preceded(mark: str, endings: Iterable[str]) -> str:
    """Return the pattern of a mark after one of these endings. Their last characters are looked at first: most marks come after others."""
    known = sorted({*endings})
    last = "".join(sorted({re.escape(ending[-1]) for ending in known}))
    return f"{mark}(?<=[{last}]{mark})(?:{'|'.join(f'(?<={re.escape(ending)}{mark})' for ending in known)})"


def starts_word(text: str, at: int) -> bool:
    r"""Tell whether a word may begin here: no letter or digit before, unless it is the end of an escape such as ``\n``."""
    if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
        return True
    return _AFTER_ESCAPE.search(text, max(0, at - 6), at) is not None


def _any(_: str) -> bool:
    return True


def _has_digit_or_capital(token: str) -> bool:
    return any(char.isdigit() or char.isupper() for char in token)


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
        hint: Without a hit the form is not there.
        lower: The hint is for the bytes with ASCII letters in lower case.
        pattern: The form; its last group, or the whole of it, is the secret.
        check: What a pattern cannot tell.
    """

    kind: str
    hint: Hint
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = _any
    lower: bool = False


# The hints begin with one rare letter each: the regex engine then skips through a text almost at the speed of memchr.
_DASH: Final = quick(r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[a-z]-)|(?<=xapp-)|----BEGIN|HMAC-SHA256)")
_UNDERSCORE: Final = quick(r"_(?<=[oprstkufm]_)(?:(?<=gh[opusr]_)|(?<=hf_)|(?<=npm_)|(?<=github_pat_)|(?<=[rs]k_)(?:live|test)_)")
_CAPITAL_A: Final = quick(r"A(?:KIA|SIA|Iza)[A-Za-z0-9_-]{16}")
_SENDGRID: Final = quick(r"SG\.[A-Za-z0-9_-]{16}")
_J: Final = quick(r"J(?<=eyJ)[A-Za-z0-9_-]{6}")
_B: Final = quick(r"b(?:earer|asic)\s")

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
_ENDS: Final = ("key", "token", "secret", "passwd", "password", "authorization")
_EQUALS: Final = quick(preceded("=", _ENDS))
_COLON: Final = quick(preceded(":", _ENDS))
# They begin with the mark and look back for the name, first for its last letter: a name is tried nowhere else, which is many times faster.
_NAMED_EQUALS: Final = re.compile(f"=(?<=[DdNnTtYy]=)(?:{'|'.join(f'(?<={name}=)' for name in _NAMES)}){_VALUE}")
_NAMED_COLON: Final = re.compile(rf":(?<=[DdNnTtYy]:)(?:{'|'.join(f'(?<={name}:)' for name in _NAMES)})\s{{1,2}}(?:[Bb]asic\s)?{_VALUE}")
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
    Token(kind="gitlab_token", hint=_DASH, pattern=re.compile(r"glpat-[A-Za-z0-9_.-]{16,}+"), check=_has_digit_or_capital),
    Token(kind="huggingface_token", hint=_UNDERSCORE, pattern=re.compile(r"hf_[A-Za-z0-9]{28,}+")),
    Token(kind="npm_token", hint=_UNDERSCORE, pattern=re.compile(r"npm_[A-Za-z0-9]{36,}+")),
    Token(kind="sendgrid_key", hint=_SENDGRID, pattern=re.compile(r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+")),
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


class TokenFinder:
    """Finds the secrets that show by their form.

    Args:
        kinds: The forms to look for.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        wanted = frozenset(kinds)
        self._tokens = tuple(token for token in TOKENS if token.kind in wanted)
        self._hints = tuple({token.hint: token.lower for token in self._tokens}.items())

    def spans(self, text: str, raw: bytes, low: bytes) -> list[Span]:
        """Find them in a text.

        Args:
            text: The text.
            raw: The same as UTF-8.
            low: The same as UTF-8, ASCII letters in lower case.
        """
        hits = [hint for hint, lower in self._hints if hint(low if lower else raw)]
        return [span for token in self._tokens if token.hint in hits for span in _found(text, token)] if hits else []


def _found(text: str, token: Token) -> Iterator[Span]:
    for match in token.pattern.finditer(text):
        group = match.lastindex or 0
        secret = match.group(group).rstrip(".")
        if (token.kind == "named" or starts_word(text, match.start())) and token.check(secret):
            yield Span(match.start(group), match.start(group) + len(secret), token.kind)

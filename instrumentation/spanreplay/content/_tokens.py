"""Secrets that are recognised by their own form, anywhere in a text."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from spanreplay.content._hints import Hint
from spanreplay.content._token_forms import TOKENS, Token

_AFTER_ESCAPE: Final = re.compile(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2})\Z")


class Span(NamedTuple):
    """A secret in a text: ``text[start:end]``, and the word that stands in its replacement. A tuple: texts may hold thousands."""

    start: int
    end: int
    kind: str


def starts_word(text: str, at: int) -> bool:
    r"""Tell whether a word may begin here: no letter or digit before, unless it is the end of an escape such as ``\n``."""
    if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
        return True
    return _AFTER_ESCAPE.search(text, max(0, at - 6), at) is not None


class TokenFinder:
    """Finds the secrets that show by their form.

    Args:
        kinds: The forms to look for.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        wanted = frozenset(kinds)
        self._tokens = tuple(token for token in TOKENS if token.kind in wanted)
        self.hints = tuple({hint: None for token in self._tokens for hint in token.hints})
        """Without a hit of one of these there is none."""
        self._all_hints = frozenset(self.hints)

    def spans(self, text: str, hits: frozenset[Hint], *, is_part: bool = False) -> list[Span]:
        """Find them in a text.

        Args:
            text: The text.
            hits: Those of the hints that it has.
            is_part: There is more before or after it. What that may make a secret is one that goes on over its end.
        """
        if hits.isdisjoint(self._all_hints):
            return []
        return [span for token in self._tokens if not hits.isdisjoint(token.hints) for span in _found(text, token, is_part)]


def _may_begin(text: str, at: int, token: Token) -> bool:
    return token.anywhere or starts_word(text, at) or (token.glued and text[at - 1] == "_")


def _found(text: str, token: Token, is_part: bool) -> Iterator[Span]:
    for match in token.pattern.finditer(text):
        group = match.lastindex or 0
        start = match.start(group)
        secret = match.group(group).rstrip(".")
        end = start + len(secret)
        if not (_may_begin(text, match.start() - token.lead, token) and token.check(secret)):
            continue
        if token.around is None or token.around(text, start, end):
            yield Span(start, end, token.kind)
        elif is_part and (start < token.reach or len(text) - end < token.reach):
            yield Span(start, len(text) + 1, token.kind)

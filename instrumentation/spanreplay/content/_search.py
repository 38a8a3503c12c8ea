"""The search for what a policy says is a secret: by its form, by the name beside it, or by the name of what it is the value of."""

from functools import lru_cache
from typing import Final, TypeVar

from spanreplay.content._fields import NamedFinder
from spanreplay.content._hints import Hint, Hints
from spanreplay.content._names import header_says_secret
from spanreplay.content._policy import RedactionPolicy
from spanreplay.content._tokens import Span, TokenFinder

T = TypeVar("T")

_NAMES: Final = 4096
_NAME: Final = 256

_finder_of: Final = lru_cache(maxsize=64)(NamedFinder)
_hints_of: Final = lru_cache(maxsize=64)(Hints)
"""Both are compiled expressions and nothing else."""


class Search:
    """Finds secrets as one policy says. It holds none, and is safe to share between threads.

    Args:
        policy: The policy.
    """

    def __init__(self, policy: RedactionPolicy) -> None:
        self._finder = _finder_of(policy.headers, policy.members, policy.query, policy.header_words)
        self._tokens = TokenFinder(policy.patterns)
        self.hints = _hints_of(self._tokens.hints + self._finder.hints)
        """Tell which texts are worth a closer look."""
        self._headers = frozenset(name.lower() for name in policy.headers)
        self._members = self._headers | {name.lower() for name in policy.members}
        self._header_words = policy.header_words
        self._kinds: dict[str, str | None] = {}
        self._secret_headers: dict[str, bool] = {}

    def spans(self, text: str, *, size: int | None = None) -> list[Span]:
        """Return where the secrets in a text are.

        Args:
            text: The text.
            size: So many characters of it are a segment of a longer one: what more of that may make a secret goes on over its end.
        """
        return self.looked_at(text, self.hints.of(text), size=size)

    def looked_at(self, text: str, hits: frozenset[Hint], *, size: int | None = None) -> list[Span]:
        """Return the same where it is known which hints the text has."""
        if not hits and not ("@" in text and "://" in text):  # what a URL says of a user has no hint
            return []
        is_cut = size is not None and size < len(text)
        return [*self._tokens.spans(text, hits, is_part=size is not None), *self._finder.spans(text, hits, is_cut=is_cut)]

    def member(self, name: str) -> str | None:
        """Return the kind of secret that the value of a member of this name is, `header` or `member`; else ``None``."""
        lower = name.lower()
        return None if lower not in self._members else "header" if lower in self._headers else "member"

    def named(self, name: str) -> str | None:
        """Return the same of an attribute, whose name may say of which header its value is."""
        try:
            return self._kinds[name]
        except KeyError:
            return _remember(self._kinds, name, self.member(name) or self._of_header(name.lower()))

    def _of_header(self, name: str) -> str | None:
        if "header." in name:
            header = name.rpartition("header.")[2]
            if self.header(header) or self.header(header.replace("_", "-")):
                return "header"
        return None

    def header(self, name: str) -> bool:
        """Tell whether the value of a header of this name is a secret."""
        try:
            return self._secret_headers[name]
        except KeyError:
            says = name.lower() in self._headers or header_says_secret(name, self._header_words)
            return _remember(self._secret_headers, name, says)


def _remember(known: dict[str, T], name: str, found: T) -> T:
    """Keep what was found of a name: programs use few, again and again."""
    if len(known) < _NAMES and len(name) <= _NAME:
        known[name] = found
    return found

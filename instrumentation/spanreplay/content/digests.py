"""Digests of texts, computed once: one text is digested for its span, for the journal, and often again in the next request."""

from hashlib import sha256
from typing import Final, NamedTuple

_CHARACTERS: Final = 8_000_000
_TEXTS: Final = 4_096


class TextDigest(NamedTuple):
    """Digest of the UTF-8 bytes of a text, lone surrogates included."""

    hex: str
    """SHA-256, lower case."""
    size: int
    """Bytes."""
    json: str
    """Both, as they stand in JSON: ``["<hex>",<size>]``."""


class _Memo:
    """Two generations: what is asked for again moves to the new one; when that is full, the old one is forgotten.

    No lock: at worst two threads compute the same digest.
    """

    __slots__ = ("characters", "new", "old")

    def __init__(self) -> None:
        self.new: dict[str, TextDigest] = {}
        self.old: dict[str, TextDigest] = {}
        self.characters = 0

    def keep(self, text: str, found: TextDigest) -> None:
        if self.characters >= _CHARACTERS or len(self.new) >= _TEXTS:
            self.old, self.new, self.characters = self.new, {}, 0
        self.new[text] = found
        self.characters += len(text)


_memo: Final = _Memo()


def text_digest(text: str) -> TextDigest:
    """Return the digest of a text."""
    found = _memo.new.get(text)
    if found is None:
        found = _memo.old.get(text)
        if found is None:
            data = text.encode("utf-8", "surrogatepass")
            digest = sha256(data).hexdigest()
            found = TextDigest(digest, len(data), f'["{digest}",{len(data)}]')
        _memo.keep(text, found)
    return found


def known_digest(text: str) -> TextDigest | None:
    """Return the digest of a text if it is remembered."""
    found = _memo.new.get(text)
    if found is None:
        found = _memo.old.get(text)
        if found is not None:
            _memo.keep(text, found)
    return found


def remember_digest(text: str, digest: str, size: int) -> None:
    """Remember the digest of a text, in hex, and its size in bytes."""
    _memo.keep(text, TextDigest(digest, size, f'["{digest}",{size}]'))

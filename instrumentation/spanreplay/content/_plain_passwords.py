"""Passwords that are words: what a sentence says the password is, where that is a word that says nothing of a password."""

import re
from typing import Final

_LEAST: Final = 10
_LEAST_QUOTED: Final = 6
_SAYS: Final = re.compile(r"\s(?:is|was|ist|lautet)(?:\s?:)?\s{1,2}(?:\\{0,7}[\"'`\u201c\u201e\u00ab*]{1,3})?\Z", re.IGNORECASE)
_OPENING: Final = frozenset("\"'`*\u201c\u201e\u00ab")
_CLOSING: Final = re.compile(r"[.!?]?(?:\\{0,7}[\"'`]|[*\u201d\u201c\u00bb])")
_SENTENCE_END: Final = re.compile(r"[.!?]?(?:\s{0,4}\Z|[ \t]{0,4}[\r\n]|\\{1,7}[nr\"']|[\"'`)\]}]|(?<=[.!?])\s)")
_ENDINGS: Final = (
    *("ed", "en", "ly", "able", "ible", "ing", "ive", "al", "ent", "ant", "ory", "ary", "ic", "ous", "less", "ful", "ion", "ment", "ness"),
    *(
        "ity",
        "self",
        "where",
        "thing",
        "text",
        "ways",
        "ect",
        "ete",
        "ure",
        "ough",
        "ers",
        "ths",
        "ges",
        "lich",
        "ig",
        "isch",
        "bar",
        "los",
    ),
)
"""How words end that say how a password is, was made, or what became of it."""
_OF_A_PASSWORD: Final = frozenset(
    {
        *("password", "passwort", "passphrase", "secret", "string", "number", "unsafe", "unique", "optional", "obsolete", "different"),
        *("identical", "whatever", "yours", "theirs", "public", "private", "placeholder", "encrypt", "salted", "plaintext", "username"),
        *(
            "wrong",
            "right",
            "simple",
            "longer",
            "shorter",
            "stronger",
            "weaker",
            "safer",
            "better",
            "enough",
            "expire",
            "leaked",
            "case-sensitive",
        ),
    }
)


def is_plain_password(text: str, start: int, end: int) -> bool:
    """Tell whether ``text[start:end]``, after the word for password, is one: quoted, or a long word that ends its sentence."""
    word = text[start:end].rstrip(".!?:*")
    lower = word.lower()
    if not word.isalpha() or len(word) < _LEAST_QUOTED or lower in _OF_A_PASSWORD or lower.endswith(_ENDINGS):
        return False
    if _SAYS.search(text, max(0, start - 24), start) is None:
        return False
    after = start + len(word)
    if text[start - 1] in _OPENING:
        return _CLOSING.match(text, after) is not None
    return len(word) >= _LEAST and _SENTENCE_END.match(text, after) is not None

"""What a pattern cannot tell of a secret: whether it is one, or a word of prose or code."""

import base64
import binascii
import re
from typing import Final

from spanreplay.content._plain_passwords import is_plain_password

SETTINGS: Final = 160
"""Characters before a password in which a host, a user or a database may be set; half as many after it."""
CURL: Final = 400
"""Characters before what ``curl`` is given in which it may be called."""
_SETTING: Final = re.compile(
    r"(?:\A|[\s;\"'])(?:host|hostaddr|server|data source|dbname|database|user|user id|uid|initial catalog|sslmode)\s?=\s?[^\s;]+",
    re.IGNORECASE,
)


def anything(_: str) -> bool:
    """Tell of a form that no word has: it is a secret."""
    return True


def has_digit_or_capital(token: str) -> bool:
    """Tell random letters from words in small ones."""
    return any(char.isdigit() or char.isupper() for char in token)


def key_like(token: str) -> bool:
    """Tell ``sk-…`` keys from words: a digit, or one long run without hyphens."""
    body = token[3:]
    return token.startswith("sk-ant-") or any(char.isdigit() for char in body) or (len(body) >= 20 and "-" not in body)


def bearer_like(token: str) -> bool:
    """Tell a token from a word of prose after "bearer"."""
    if any(char.isdigit() for char in token):
        return len(token) >= 6
    return len(token) >= 20 and "/" not in token


def basic_like(token: str) -> bool:
    """Tell credentials (base64 of ``user:password``) from a word of prose after "basic"."""
    try:
        plain = base64.b64decode(token, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable()


def value_like(token: str) -> bool:
    """Tell a credential after its name in a sentence from a word of prose or code."""
    return any(char.isdigit() for char in token) or len(token) >= 24


def random_like(token: str) -> bool:
    """Tell 40 random characters from a path or a digest."""
    return any(char.isdigit() for char in token) and any(char.isupper() for char in token) and any(char.islower() for char in token)


def password_like(token: str) -> bool:
    """Tell what a sentence gives as the password from what it says of it: letters and a digit, or a sign in the middle that no word has."""
    word = token.rstrip(".!?:*")
    if any(char.isdigit() for char in word):
        return len(word) >= 6 and not _PLAIN_VALUE.fullmatch(word)
    return any(char in "!@#$%^&*+=?" for char in word[:-1]) and any(char.isalpha() for char in word)


_PLAIN_VALUE: Final = re.compile(
    r"\[?redacted:.*|%5B.*|[\d.,:/-]+[A-Za-z%]{0,8}|https?:.*|(?i:sha\d+|md5|utf-?\d+|rfc-?\d+|v?\d+(?:\.\d+)+\w*|base\d\d|[a-z]+-?only)|[A-Z]{2,8}-?\d{1,5}"
)
"""Dates, sizes, versions, names of algorithms and of documents."""


def no_code(token: str) -> bool:
    """Tell a value from a variable, a placeholder or an argument of a call."""
    return re.fullmatch(r"(?:None|null|nil|str|\*+|x+)|.*[,()\[\]{}$<>%].*", token) is None


def beside_settings(text: str, start: int, end: int) -> bool:
    """Tell whether a host, a user or a database is set beside it: then it is a connection string, and its password one however it looks."""
    return any(_SETTING.search(part) is not None for part in (text[max(0, start - SETTINGS) : start], text[end : end + SETTINGS // 2]))


def told(text: str, start: int, end: int) -> bool:
    """Tell what a sentence gives as the password, be it a word, from what it says of it."""
    return password_like(text[start:end]) or is_plain_password(text, start, end)


def of_curl(text: str, start: int, end: int) -> bool:
    """Tell the password that ``curl`` is given from what other commands take after ``-u``."""
    return "curl" in text[max(0, start - CURL) : start] and not text[start:end].isdigit() and not text.startswith("[redacted:", start)

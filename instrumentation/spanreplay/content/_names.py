"""Which names say that their value is a secret: of headers, of command line options, of variables."""

import itertools
import re
from functools import lru_cache
from typing import Final

WORDS: Final = (
    *("token", "secret", "auth", "authorization", "password", "passwd", "passphrase", "credential", "credentials", "session", "signature"),
    *("apikey", "jwt", "bearer", "cookie", "accesskey", "secretkey", "authtoken", "accesstoken", "sessiontoken", "sessionid"),
    *("api-key", "access-key", "secret-key", "private-key", "subscription-key", "function-key", "functions-key", "master-key"),
    *("account-key", "client-key", "app-key", "admin-key", "license-key", "signing-key", "rapidapi-key"),
)
"""Words, and pairs of words side by side, that make the name of an HTTP header the name of a secret."""

_HARMLESS: Final = frozenset(
    {
        *("access-control", "ratelimit", "rate-limit", "limit", "limits", "remaining", "reset", "max", "min", "count", "usage", "budget"),
        *("ttl", "expiry", "expires", "expiration", "type", "scheme", "length", "page", "next", "continuation", "cursor"),
    }
)
"""What makes such a name one of a number, a kind or a page after all."""

_SPLIT: Final = re.compile(r"[-_.\s]+")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_LAST_WORDS: Final = frozenset(
    {
        *("token", "secret", "password", "passwd", "passphrase", "pass", "pwd", "credential", "credentials", "auth", "authorization"),
        *("apikey", "apitoken", "jwt", "bearer", "cookie", "accesskey", "secretkey", "authtoken", "accesstoken", "sessiontoken", "pat"),
        *("clientsecret", "privatekey", "refreshtoken", "bearertoken", "pgpassword"),
    }
)
_OTHER_KEYS: Final = frozenset(
    {
        *("sort", "primary", "partition", "public", "cache", "foreign", "index", "group", "idempotency", "row", "routing", "merge", "map"),
        *("dict", "column", "unique", "json", "hot", "input", "output", "config", "state", "object", "lookup", "answer", "by", "surrogate"),
    }
)
"""What stands before ``key`` where it opens nothing."""


@lru_cache(maxsize=1024)
def header_says_secret(name: str, words: tuple[str, ...] | frozenset[str] = WORDS) -> bool:
    """Tell whether the name of a header says that its value is a secret: ``x-custom-token``, not ``x-ratelimit-remaining-tokens``.

    Args:
        name: In any letter case; split at ``-``, ``_`` and ``.``.
        words: Words, and pairs joined by a hyphen, that say so.
    """
    parts = _SPLIT.split(name.lower())
    found = {*parts, *map("-".join, itertools.pairwise(parts))}
    return not found.isdisjoint(words) and found.isdisjoint(_HARMLESS)


@lru_cache(maxsize=1024)
def option_says_secret(name: str) -> bool:
    """Tell whether the last word of an option or variable says credential: ``api-key``, ``OPENAI_API_KEY``, ``clientSecret``.

    A ``key`` alone says nothing, nor does ``session``: people name sessions.
    """
    words = [word.lower() for word in _CAMEL.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words:
        return False
    if words[-1] == "key":
        return len(words) > 1 and words[-2] not in _OTHER_KEYS
    return words[-1] in _LAST_WORDS and (len(words) == 1 or words[-2] not in _HARMLESS)

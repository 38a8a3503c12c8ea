"""Where the secrets are in a command line."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from spanreplay.content._fields import REPLACED
from spanreplay.content._names import header_says_secret, option_says_secret

_OPTION: Final = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*+)(?:=(?P<value>.*))?", re.DOTALL)
_WORD: Final = re.compile(r"\+{0,2}(?P<name>[A-Za-z_][\w.\[\]-]*+)=(?P<value>.*)", re.DOTALL)  # OPENAI_API_KEY=x, Hydra's ++model.api_key=x
_HEADER: Final = re.compile(r"(?P<name>[A-Za-z][\w-]*+):\s*+(?:(?:bearer|basic|token)\s++)?(?P<value>.+)", re.DOTALL | re.IGNORECASE)
_USER: Final = re.compile(r"[^\s:/]++:(?P<value>[^\s/]++)")
_USER_OPTIONS: Final = frozenset({"-u", "--user", "--proxy-user"})
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*+://(?!%5Bredacted:)(?:[^/?#\s:@]*+:(?P<password>[^/?#\s]+)@)?", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"[?&](?P<name>[\w.-]++)=(?P<value>[^&#\s]++)")

_PATH: Final = re.compile(r"(?:/|~|\.{1,2}/|[A-Za-z]:\\).*|[^\s=]+\.(?:json|ya?ml|toml|pem|key|crt|env|txt|ini|cfg|py)", re.DOTALL)
_NO_SECRETS: Final = frozenset(
    {
        *("true", "false", "yes", "no", "on", "off", "none", "null", "auto", "default", "basic", "bearer", "digest", "oauth", "oauth2"),
        *("env", "stdin", "required", "optional", "disabled", "enabled", "-"),
    }
)
_RANDOM: Final = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w.+=-]{16,}")
_CODE: Final = re.compile(r"[\s();]")
"""In what follows ``-c``: a program, not a setting."""
_SMALL: Final = 6


class Place(NamedTuple):
    """A secret in a command line: ``argv[at][start:end]``."""

    at: int
    start: int
    end: int


def secret_places(argv: Sequence[str]) -> Iterator[Place]:
    """Find the values of options, variables and headers that are credentials by their name, and the passwords of users and URLs.

    ``--api-key=X``, ``--token X``, ``-token X``, ``API_KEY=X``, ``"X-Auth-Token: X"``, ``-u name:X``, ``https://name:X@host/?token=X``.
    What is a path, or a word such as ``none``, is no secret. An option of one letter has no name: ``-p`` is a port as often as a password.
    """
    awaited = False
    for index, text in enumerate(argv):
        if awaited and not _is_option(text):
            awaited = False
            if _may_be_secret(text):
                yield Place(index, 0, len(text))
                continue
        awaited = False
        if index and argv[index - 1] == "-c" and _CODE.search(text):
            yield from _in_urls(index, text)
            continue
        option = _OPTION.fullmatch(text)
        if option is not None and option["value"] is None:
            awaited = len(option["name"]) > 1 and option_says_secret(option["name"])
            continue
        user = _USER.fullmatch(text) if index and argv[index - 1] in _USER_OPTIONS else None
        if user is not None and not user["value"].isdigit():
            yield Place(index, *user.span("value"))
        elif (named := option or _WORD.fullmatch(text)) is not None:
            name = named["name"].rpartition(".")[2]
            value = named["value"]
            if (option_says_secret(name) and _may_be_secret(value)) or (name.lower() == "key" and _RANDOM.fullmatch(value)):
                yield Place(index, *named.span("value"))
            else:
                yield from _in_urls(index, text)
        elif (header := _HEADER.fullmatch(text)) is not None and header_says_secret(header["name"]):
            yield Place(index, *header.span("value"))
        else:
            yield from _in_urls(index, text)


def _is_option(text: str) -> bool:
    return text.startswith("--") or (text.startswith("-") and len(text) < 12)  # a random token may begin with one hyphen


def _may_be_secret(value: str) -> bool:
    if not value or value.lower() in _NO_SECRETS or REPLACED.fullmatch(value):
        return False
    return _PATH.fullmatch(value) is None and not (value.isdigit() and len(value) < _SMALL)


def _in_urls(index: int, text: str) -> Iterator[Place]:
    for url in _URL.finditer(text):
        if url["password"]:
            yield Place(index, *url.span("password"))
    if "://" in text:
        for parameter in _PARAMETER.finditer(text):
            if option_says_secret(parameter["name"]) and _may_be_secret(parameter["value"]):
                yield Place(index, *parameter.span("value"))

"""Which variables and arguments of a process are credentials, by their names."""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from spanreplay.content._arguments import secret_places
from spanreplay.content._fields import REPLACED
from spanreplay.content._names import option_says_secret

MIN_SECRET: Final = 8
"""Shorter values are never learnt: they would be found everywhere."""
_CREDENTIAL_NAME: Final = re.compile(
    r"(?:\A|_)(?:API_?KEY|ACCESS_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|PAT|AUTH|SECRET_KEY_BASE|PGPASSWORD)"
    r"(?:_ID|_B64|_BASE64|_?\d+)?\Z",
    re.IGNORECASE,
)
_URL_PASSWORD: Final = re.compile(r"\A[a-z][a-z0-9+.-]*://[^/?#\s:@]*:([^/?#\s]+)@", re.IGNORECASE)
_ORDINARY: Final = frozenset(
    {"password", "changeme", "disabled", "required", "optional", "undefined", "anonymous", "development", "production"}
)


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose name says credential, and the passwords inside URLs; sorted, each once.

    Paths, numbers, and values of fewer than 8 characters are left out.
    """
    found: set[str] = set()
    for name, value in environ.items():
        url = _URL_PASSWORD.match(value)
        if url is not None:
            found.update((url[1], unquote(url[1])))
        elif _CREDENTIAL_NAME.search(name) and not value.startswith(("/", "~", "./", "../")):
            found.add(value.strip())
    return sorted(item for item in found if _is_learnable(item))


def argument_secrets(argv: Sequence[str]) -> list[str]:
    """Return the credentials in a command line, to be learnt; sorted, each once.

    Numbers, everyday words, and values of fewer than 8 characters are left out.
    """
    found: set[str] = set()
    for index, start, end in secret_places(argv):
        secret = argv[index][start:end].strip()
        found.update((secret, unquote(secret)))
    return sorted(item for item in found if _is_learnable(item))


def says_credential(name: str) -> bool:
    """Tell whether the name of a header, option or variable says that its value is a credential."""
    return option_says_secret(name)


def credential_names(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that are set and whose name says credential; sorted."""
    return sorted(name for name, value in environ.items() if value and _CREDENTIAL_NAME.search(name))


def _is_learnable(item: str) -> bool:
    return len(item) >= MIN_SECRET and not item.isdigit() and item.lower() not in _ORDINARY and not REPLACED.fullmatch(item)

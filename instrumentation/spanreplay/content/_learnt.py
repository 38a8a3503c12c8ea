"""Secrets that are known for what they are: wherever a text has one, in whatever escape, it is found."""

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from spanreplay.content._tokens import Span

_NUMBER_LIKE: Final = re.compile(r"[0-9.eE+-]+|-?Infinity")


def forms_of(secret: str) -> set[str]:
    """Return the secret as it looks in JSON, in JSON within JSON, in a repr, and in a URL."""
    forms = {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}
    for ascii_only in (True, False):
        form = secret
        for _ in range(3):
            form = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            forms.add(form)
    return forms


def places(text: str, found: list[str]) -> Iterator[Span]:
    """Give where these forms, which it has, are in a text."""
    for form in found:
        at = text.find(form)
        while at >= 0:
            yield Span(at, at + len(form), "secret")
            at = text.find(form, at + len(form))


def may_break_json(text: str, found: list[str]) -> bool:
    """Tell whether a JSON text may be none any more with these forms replaced: one may be a number, or touch quotes and escapes."""
    if text.lstrip()[:1] not in {"{", "[", '"'} and not _NUMBER_LIKE.fullmatch(text.strip()):
        return False
    return "\\" in text or any(_NUMBER_LIKE.fullmatch(form) or not form.isalnum() for form in found)

"""Secrets that are recognised by the name beside them: members of JSON and of Python's ``repr``, URLs, forms."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from spanreplay.content._tokens import Span, starts_word

REPLACED: Final = re.compile(r"(?:\[|%5[Bb])redacted:([a-z][a-z_]*):[0-9a-f]{8}(?:\]|%5[Dd])")

_NAME_HINTS: Final = (
    re.compile(rb"k(?<=[a-z_-]k)(?:ey|en|ie)(?:[\"'\\]| ?=)"),
    re.compile(rb"pass(?:wo?r?d)"),
    re.compile(rb"z(?<=authoriz)"),
)
_SECRET: Final = b"secret"

_AFTER_NAME: Final = re.compile(
    r"""(?:(?P<key_run>\\*+)(?P<key_quote>["'])\s{0,16}+"""
    r"""(?P<separator>:|=>|=|,\s{0,16}+\\*+["']value\\*+["']\s{0,16}+:|,)"""
    r"""|\s{0,4}+=(?!=))\s{0,16}+"""
    r"""(?P<list>\[\s{0,16}+)?(?:[bB]?[rRuUfF]?|[fF][rR])(?P<run>\\*+)(?P<quote>["'])"""
)
_NEXT_ITEM: Final = re.compile(r"""\\*+["']\s{0,16}+,\s{0,16}+(?P<run>\\*+)(?P<quote>["'])""")
_PAIR_START: Final = re.compile(r"""[\[(,]\s*[\[(]\s*[bB]?\\*["']\Z""")
_PAIR_END: Final = re.compile(r"""\\*["']\s*[\])]""")
_VALUE_END: Final = re.compile(r"""[\s,}\])"']|\\""")

_USERINFO: Final = re.compile(r"""://([^\s/?#"'<>\\@]{1,512}+(?:@[^\s/?#"'<>\\@]{1,512}+(?=@))*+)@""")


class NamedFinder:
    """Finds values by the exact name of their header, member, or parameter; letter case does not count.

    Args:
        headers: Names of HTTP headers, looked for as members too.
        members: Names of members and keyword arguments.
        query: Names of URL parameters; in a form the names of members count as well.
    """

    def __init__(self, headers: Iterable[str], members: Iterable[str], query: Iterable[str]) -> None:
        self._headers = frozenset(name.lower() for name in headers)
        names = self._headers | {name.lower() for name in members}
        parameters = {name.lower() for name in query} | names
        self._needles = [name.encode() for name in sorted(names) if not _hinted(f'"{name}"'.encode())]
        self._names = _alternatives(names)
        self._parameter_hint = _parameter_hint(parameters)
        self._parameter = re.compile(rf"(?:[?&#](?:amp;)?|\\u0026)(?:{_alternatives(parameters).pattern})=([^&\s\"'<>#\\]+)")
        self._form_start = re.compile(rf"(?:{_alternatives(parameters).pattern})=([^&\s\"'<>#\\]+)(?=&|\Z)")
        self._form_quoted = re.compile(rf"[\"'](?:{_alternatives(parameters).pattern})=([^&\s\"'<>#\\]+)(?=&|\\u0026)")

    def spans(self, text: str, low: bytes) -> Iterator[Span]:
        """Find the values in a text; ``low`` is the same as UTF-8, ASCII letters in lower case."""
        members = _hinted(low) or any(needle in low for needle in self._needles)
        equals = self._parameter_hint.search(low) is not None
        if members or equals:
            lower = text.lower()
            if len(lower) != len(text):  # the only letter that grows is a dotted capital I
                lower = text.replace("\u0130", "i").lower()
            if members:
                yield from self._members(text, lower)
            if equals:
                yield from self._parameters(lower)
        if b"@" in low:
            for match in _USERINFO.finditer(text):
                if match[1] != "git" and not REPLACED.fullmatch(match[1]):
                    yield Span(start=match.start(1), end=match.end(1), kind="userinfo")

    def _parameters(self, lower: str) -> Iterator[Span]:
        found = [*self._parameter.finditer(lower)]
        start = self._form_start.match(lower)
        if start is not None:
            found.append(start)
        if "&" in lower or "\\u0026" in lower:
            found.extend(self._form_quoted.finditer(lower))
        for match in found:
            if not REPLACED.fullmatch(match[1]):
                yield Span(start=match.start(1), end=match.end(1), kind="query")

    def _members(self, text: str, lower: str) -> Iterator[Span]:
        done = 0
        for match in self._names.finditer(lower):
            if match.start() < done:
                continue
            after = _AFTER_NAME.match(text, match.end())
            if after is None or not _is_name(text, match.start(), after):
                continue
            kind = "header" if match[0] in self._headers else "member"
            start, end = after.end(), _string_end(text, after.end(), after["quote"], len(after["run"]))
            if after["separator"] == "," and not _PAIR_END.match(text, end):
                continue
            while True:
                if end > start and not REPLACED.fullmatch(text, start, end):
                    yield Span(start=start, end=end, kind=kind)
                done = end
                item = _NEXT_ITEM.match(text, end) if after["list"] else None
                if item is None:
                    break
                start, end = item.end(), _string_end(text, item.end(), item["quote"], len(item["run"]))


def _hinted(low: bytes) -> bool:
    return any(hint.search(low) for hint in _NAME_HINTS) or _SECRET in low


def _alternatives(names: Iterable[str]) -> re.Pattern[str]:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return re.compile("|".join(re.escape(name) for name in ordered) or r"(?!)")


def _parameter_hint(names: Iterable[str]) -> re.Pattern[bytes]:
    """Make a pattern for an equals sign after the last letters of one of the names; it skips from sign to sign."""
    endings = sorted({name.encode()[-3:] for name in names})
    return re.compile(b"=(?:" + b"|".join(b"(?<=" + re.escape(ending) + b"=)" for ending in endings) + b")" if endings else rb"(?!)")


def _is_name(text: str, start: int, after: re.Match[str]) -> bool:
    """Tell whether the whole name was matched, not the end of a longer one."""
    quote = after["key_quote"]
    if quote is None:
        return starts_word(text, start) and text[start - 1 : start] != "-"
    before = text[start - 1 : start]
    if before == ".":
        return text[max(0, start - 7) : start].lower() == "header."  # http.request.header.authorization
    if before != quote:
        return False
    if after["separator"] == ",":  # [["authorization", "…"], …], not ["password", "username"]
        return _PAIR_START.search(text, max(0, start - 24), start) is not None
    return True


def _string_end(text: str, start: int, quote: str, run: int) -> int:
    """Return where a quoted string ends, at any depth of JSON within JSON.

    A string that was itself escaped n times opens with 2**n - 1 backslashes before its quote. It is closed by the first quote
    whose backslashes, halved n times, are even in number; fewer of them end a string around it. A cut text, or a line end, which
    no string contains, ends it too.

    Args:
        text: The text.
        start: The first character inside the string.
        quote: The quotation mark.
        run: How many backslashes stand before the opening mark.
    """
    level = (run + 1).bit_length() - 1
    at = start
    while True:
        mark = text.find(quote, at)
        stop = text.find("\n", at, mark if mark >= 0 else len(text))
        if mark < 0 or stop >= 0:
            stop = stop if stop >= 0 else len(text)
            return start + len(text[start:stop].rstrip("\\"))  # an escape cut in two is left alone
        slashes = mark - at - len(text[at:mark].rstrip("\\"))
        if (slashes >> level) % 2 == 0 and (quote == '"' or slashes == 0 or mark + 1 == len(text) or _VALUE_END.match(text, mark + 1)):
            return mark - min(slashes, run)
        at = mark + 1

"""Secrets that are recognised by the name beside them: members of JSON and of Python's ``repr``, URLs, forms."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from spanreplay.content._hints import Hint, preceded
from spanreplay.content._names import header_says_secret
from spanreplay.content._tokens import Span, starts_word

REPLACED: Final = re.compile(r"(?:\[|%5[Bb])redacted:([a-z][a-z_]*):[0-9a-f]{8}(?:\]|%5[Dd])")

_ANCHORS: Final = {
    r"k[ei][yne](?<=key|ken|kie)(?<=[a-z_-]...)": "(?:key|ken|kie)",
    r"pass(?:wor|w|phrase)d?": r"pass(?:wor|w|phrase)d?",
    r"zation(?<=authorization)": "authorization",
    r"cret(?<=secret)": "secret",
}
"""How the names end that nearly every policy holds, and the same without looking back. Each begins with a rare letter, so that the search
runs almost like memchr."""

_GAP: Final = r"(?:\s|\\++[nrt]){0,100}+"  # white space, and the line breaks of pretty JSON within JSON
_AFTER_NAME: Final = re.compile(
    rf"""(?:(?P<key_run>\\*+)(?P<key_quote>["']){_GAP}"""
    rf"""(?P<separator>:|=>|=|,{_GAP}\\*+["']value\\*+["']{_GAP}:|,)"""
    rf"""|\s{{0,4}}+=(?!=)){_GAP}"""
    rf"""(?P<list>\[{_GAP})?(?:[bB]?[rRuUfF]?|[fF][rR])(?P<run>\\*+)(?P<quote>["'])"""
)
_NEXT_ITEM: Final = re.compile(rf"""\\*+["']{_GAP},{_GAP}(?P<run>\\*+)(?P<quote>["'])""")
_PAIR_START: Final = re.compile(rf"""[\[(,]{_GAP}[\[(]{_GAP}[bB]?\\*+["']\Z""")
_PAIR_END: Final = re.compile(rf"""\\*+["']{_GAP}[\])]""")
_HYPHENATED: Final = re.compile(r"(?<![a-z0-9-])x-[a-z0-9-]++\Z")
_VALUE_END: Final = re.compile(r"""[\s,}\])"']|\\""")

_USERINFO: Final = re.compile(r"""://([^\s/?#"'<>\\@]{1,512}+(?:@[^\s/?#"'<>\\@]{1,512}+(?=@))*+)@""")
_PARAMETER_VALUE: Final = re.compile(r"""[^&\s"'<>#\\]++""")
_PARAMETER_START: Final = re.compile(r"(?:[?&#](?:amp;)?|\\u0026)\Z")
_FORM_NEXT: Final = re.compile(r"&|\\u0026|\Z")


class _Names:
    """A set of names, and the quick way to where one of them may end in a text."""

    def __init__(self, names: Iterable[str], anchors: Iterable[Hint]) -> None:
        self._names = frozenset(names)
        self._lengths: dict[str, list[int]] = {}
        self._short = [length for length in (2, 1) if any(len(name) == length for name in self._names)]
        for name in sorted(self._names, key=len, reverse=True):
            lengths = self._lengths.setdefault(name[-3:], [])
            if len(name) not in lengths:
                lengths.append(len(name))
        self.anchors = {anchor: re.compile(anchor.pattern) for anchor in anchors}
        """Patterns, over bytes to ask whether, and over characters to ask where."""

    def hits(self, hits: Collection[Hint]) -> list[re.Pattern[str]]:
        """Return the anchors that occur in a text, of which all hints that it has are given."""
        return [exact for hint, exact in self.anchors.items() if hint in hits]

    def before(self, lower: str, end: int) -> str | None:
        """Return the longest of the names that ends here."""
        for length in (*self._lengths.get(lower[max(0, end - 3) : end], ()), *self._short):
            name = lower[end - length : end] if end >= length else ""
            if name in self._names:
                return name
        return None


class NamedFinder:
    """Finds values by the exact name of their header, member, or parameter; letter case does not count.

    Args:
        headers: Names of HTTP headers, looked for as members too.
        members: Names of members and keyword arguments.
        query: Names of URL parameters. There, and in forms, the names of members count as well.
        header_words: Words that make a name that begins with ``x-`` the name of a secret.
    """

    def __init__(self, headers: Iterable[str], members: Iterable[str], query: Iterable[str], header_words: Iterable[str] = ()) -> None:
        self._header_words = frozenset(header_words)
        self._headers = frozenset(name.lower() for name in headers)
        names = self._headers | {name.lower() for name in members}
        known = re.compile("(?:" + "|".join(_ANCHORS) + r")\Z")
        own = _by_beginning(name for name in sorted(names) if not known.search(name))
        self._members = _Names(names, [*_usual(names), *own])
        parameters = {name.lower() for name in query if name} | names - {""}
        self._query = _Names(parameters, [_parameter_hint(parameters)] if parameters else [])
        self.hints = (*self._members.anchors, *self._query.anchors)
        """Without a hit of one of these there is no value, but for what a URL says of a user."""

    def spans(self, text: str, hits: Collection[Hint], *, is_cut: bool = False) -> Iterator[Span]:
        """Find the values in a text.

        Args:
            text: The text.
            hits: Those of the hints that it has.
            is_cut: There is more of it: what may be a value and goes up to its end is found, too.
        """
        members, parameters = self._members.hits(hits), self._query.hits(hits)
        if members or parameters:
            lower = text.lower()
            if len(lower) != len(text):  # the only letter that grows is a dotted capital I
                lower = text.replace("\u0130", "i").lower()
            if members:
                yield from self._member_spans(text, lower, members, is_cut=is_cut)
            for anchor in parameters:
                yield from self._parameter_spans(lower, anchor)
        if "@" in text and "://" in text:
            for match in _USERINFO.finditer(text):
                if match[1] != "git" and not REPLACED.fullmatch(match[1]):
                    yield Span(match.start(1), match.end(1), "userinfo")

    def _parameter_spans(self, lower: str, anchor: re.Pattern[str]) -> Iterator[Span]:
        done = 0
        for match in anchor.finditer(lower):
            at = match.start()
            name = self._query.before(lower, at) if at >= done else None
            if name is None:
                continue
            start = at - len(name)
            parameter = _PARAMETER_START.search(lower, max(0, start - 6), start)
            if not parameter and lower[start - 1 : start] not in {"", '"', "'"}:
                continue
            value = _PARAMETER_VALUE.match(lower, at + 1)
            if value is None or not (parameter or _FORM_NEXT.match(lower, value.end())):
                continue
            done = value.end()
            if not REPLACED.fullmatch(value[0]):
                yield Span(value.start(), done, "query")

    def _own_header(self, lower: str, end: int) -> str | None:
        """Return the name of a header of somebody's own, ``x-custom-token``, that ends here and says secret."""
        start = max(0, end - 64)
        name = _HYPHENATED.search(lower, start, end) if self._header_words and lower.find("x-", start, end) >= 0 else None
        return name[0] if name is not None and header_says_secret(name[0], self._header_words) else None

    def _member_spans(self, text: str, lower: str, anchors: list[re.Pattern[str]], *, is_cut: bool) -> Iterator[Span]:
        done = 0
        for name_end in sorted({match.end() for anchor in anchors for match in anchor.finditer(lower)}):
            if name_end <= done:
                continue
            own = self._own_header(lower, name_end)
            name = own or self._members.before(lower, name_end)
            after = _AFTER_NAME.match(text, name_end) if name is not None else None
            if name is None or after is None or not _is_name(text, name_end - len(name), after):
                continue
            kind = "header" if own or name in self._headers else "member"
            start, end = after.end(), _string_end(text, after.end(), after["quote"], len(after["run"]))
            if after["separator"] == "," and not _PAIR_END.match(text, end) and not (is_cut and end == len(text)):
                continue
            while True:
                if end > start and not REPLACED.fullmatch(text, start, end):
                    yield Span(start, end, kind)
                done = end
                item = _NEXT_ITEM.match(text, end) if after["list"] else None
                if item is None:
                    break
                start, end = item.end(), _string_end(text, item.end(), item["quote"], len(item["run"]))


def _usual(names: Iterable[str]) -> Iterator[Hint]:
    """Give the hints of names that end as those of nearly every policy; names of headers of somebody's own may end so, too."""
    for anchor, ending in _ANCHORS.items():
        found = sorted(name for name in names if re.search(anchor + r"\Z", name))
        if found:
            yield _member_hint(anchor, [*map(re.escape, found), f"x-[a-z0-9-]*{ending}"])


def _by_beginning(names: Iterable[str]) -> list[Hint]:
    """Return the hints of these names, one for all that begin with the same two characters: each is a search of the whole text."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name[:2], []).append(name)
    return [
        _member_hint(f"{_beginning(start)}(?:{'|'.join(re.escape(name[2:]) for name in alike)})", map(re.escape, alike))
        for start, alike in found.items()
    ]


def _member_hint(pattern: str, names: Iterable[str]) -> Hint:
    return Hint(pattern + r"(?=[\"'\\]| {0,4}=)", rf"(?:{'|'.join(names)})(?:[\"'\\]| {{0,4}}=)")


def _parameter_hint(names: Iterable[str]) -> Hint:
    """Return the hint of parameters: the mark after the last letters of a name; without looking back, after what may be a whole one."""
    endings = {name[-3:] for name in names}
    rest = "".join(map(re.escape, sorted({letter for name in names for letter in name})))
    return Hint(preceded("=", endings).pattern, rf"(?:^|[?&#;6\"'])[{rest}]*(?:{'|'.join(map(re.escape, sorted(endings)))})=")


def _beginning(start: str) -> str:
    """Of ``x-…`` the hyphen is looked for: so are other secrets."""
    return f"-(?<={re.escape(start)})" if start[1:] == "-" else re.escape(start)


def _is_name(text: str, start: int, after: re.Match[str]) -> bool:
    """Tell whether the whole name was matched, not the end of a longer one."""
    before = text[start - 1 : start] if start else ""
    quote = after["key_quote"]
    if quote is None:
        return before != "-" and starts_word(text, start)
    if before == ".":
        return text[max(0, start - 7) : start].lower() == "header."  # http.request.header.authorization
    if before != quote:
        return False
    if after["separator"] == ",":  # [["authorization", "…"], …], not ["password", "username"]
        return _PAIR_START.search(text, max(0, start - 220), start) is not None
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

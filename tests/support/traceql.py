"""TraceQL, as much of it as the shipped examples and dashboards use: ``{ span.a = "x" && (name = "y" || status = ok) } | select(span.b)``.

Its rules as Tempo's documentation has them: a comparison with an attribute that a span does not have is false, and so is one with a value
of another type; a regular expression matches the whole value.
"""

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from spanreplay.spans.record import SpanRecord

_QUERY: Final = re.compile(r"\s*\{(?P<filter>[^{}]*)\}\s*(?:\|\s*select\((?P<selected>[^()]*)\)\s*)?")
_FIELD: Final = r"(?:span|resource)\.[A-Za-z_][\w.]*|status|name|duration|kind"
_COMPARISON: Final = re.compile(rf"\s*(?P<field>{_FIELD})\s*(?P<how>=~|!=|>=|<=|=|>|<)\s*(?P<value>\"[^\"]*\"|[\w.]+)\s*")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)")
_NANOSECONDS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_STATUSES: Final = ("unset", "ok", "error")
_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_HOW: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=~": lambda found, wanted: re.fullmatch(wanted, found) is not None,
}


def parse(query: str) -> Callable[[SpanRecord], bool]:
    """A query as a test of one span.

    Raises:
        AssertionError: it is no TraceQL of this kind.
    """
    whole = _QUERY.fullmatch(query)
    assert whole is not None, f"no TraceQL: {query}"
    for field in (whole["selected"] or "").split(","):
        assert not field or re.fullmatch(rf"\s*(?:{_FIELD})\s*", field), f"nothing to select: {field}"
    if not whole["filter"].strip():
        return lambda span: True
    tests = [_either(part) for part in whole["filter"].split("&&")]
    return lambda span: all(test(span) for test in tests)


def _either(text: str) -> Callable[[SpanRecord], bool]:
    """A comparison, or several in parentheses, of which one has to hold."""
    within = re.fullmatch(r"\s*\((.*)\)\s*", text)
    tests = [_comparison(part) for part in (within[1].split("||") if within is not None else [text])]
    return lambda span: any(test(span) for test in tests)


def _comparison(text: str) -> Callable[[SpanRecord], bool]:
    parts = _COMPARISON.fullmatch(text)
    assert parts is not None, f"no comparison: {text}"
    field, how, wanted = parts["field"], _HOW[parts["how"]], _value(parts["value"])

    def test(span: SpanRecord) -> bool:
        found = _found(span, field)
        return type(found) is type(wanted) and how(found, wanted)

    return test


def _value(text: str) -> Any:
    if text.startswith('"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if duration := _DURATION.fullmatch(text):
        return int(float(duration[1]) * _NANOSECONDS[duration[2]])
    return text if text in (*_STATUSES, *_KINDS) else int(text)


def _found(span: SpanRecord, field: str) -> Any:
    scope, _, name = field.partition(".")
    match scope:
        case "span":
            return span.attributes.get(name)
        case "resource":
            return span.resource.attributes.get(name)
        case "status":
            return _STATUSES[span.status]
        case "kind":
            return _KINDS[span.kind]
        case "duration":
            return None if span.end_ns is None else span.end_ns - span.start_ns
    return span.name

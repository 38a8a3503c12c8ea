"""Keeping what the SDK drops from a span when it has more attributes than its limit.

The SDK drops the oldest attribute, often the one that says what the span is. What it hands to the application's exporters stays as the
application configured it; only our record gets the rest. Attributes given when a span is made are cut before anybody can see them and stay
lost, and counted.
"""

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class Overflow(dict[str, Any]):
    """The dictionary inside a span's attributes; remembers what is dropped from it."""

    __slots__ = ("_spilled", "lost_before")

    _spilled: dict[str, Any]
    lost_before: int
    """How many were lost before this could watch; not there where none was. No ``__init__``: one is made for every span."""

    @property
    def spilled(self) -> dict[str, Any]:
        """What was dropped; something that is still there may be in it."""
        try:
            return self._spilled
        except AttributeError:
            self._spilled = {}
            return self._spilled


class _Asked(Overflow):
    """Where the SDK asks for all names to find the oldest, just before it drops that. Nothing else is slower than in a plain dictionary."""

    __slots__ = ()

    def keys(self) -> Any:
        if self:
            name = next(iter(self))
            self.spilled[name] = self[name]
        return super().keys()


class _Deleting(Overflow):
    """Wherever it deletes: Python then looks for a method whenever something is set."""

    __slots__ = ()

    def __delitem__(self, name: str) -> None:
        self.spilled[name] = self[name]
        super().__delitem__(name)

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        """As of ``OrderedDict``, which SDKs before 1.44 use."""
        name = next(reversed(self)) if last else next(iter(self))
        value = self.spilled[name] = super().pop(name)
        return name, value


_kinds: Final[dict[type, type[Overflow]]] = {}
"""What watches attributes of a class."""


def _kind_for(attributes: type) -> type[Overflow]:
    known = _kinds.get(attributes)
    if known is None:
        known = _kinds[attributes] = _Asked if _asks(attributes) else _Deleting
    return known


def _asks(attributes: type) -> bool:
    """Whether they ask for all names before they drop one; found out by having them drop one, of which they tell nobody."""
    logger, here = logging.getLogger(attributes.__module__), threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != here

    logger.addFilter(is_of_others)
    try:
        tried: Any = attributes(maxlen=1, immutable=False)
        inner = tried._dict = _Asked()
        tried["old"] = 1
        tried["new"] = 2
    except Exception:  # noqa: BLE001 - attributes as nobody has seen them
        return False
    else:
        return inner == {"new": 2} and inner.spilled == {"old": 1}
    finally:
        logger.removeFilter(is_of_others)


def raw(attributes: Any) -> Mapping[str, Any]:
    """The dictionary inside the SDK's attributes: reading it is several times cheaper than reading through the mappings around it."""
    inner = getattr(attributes, "_dict", None)
    if isinstance(inner, dict):
        return inner
    return attributes if attributes is not None else {}


def attributes_of(span: "ReadableSpan") -> Mapping[str, Any]:
    """The attributes of a span, to read at once and not to keep."""
    attributes = getattr(span, "_attributes", None)
    return raw(attributes if attributes is not None else span.attributes)


def has_events(span: "ReadableSpan") -> bool:
    """Whether a span has events, without the copy that its property makes."""
    held = getattr(span, "_events", None)
    return len(span.events if held is None else held) > 0


def has_links(span: "ReadableSpan") -> bool:
    """Whether a span has links, without the copy that its property makes."""
    held = getattr(span, "_links", None)
    return len(span.links if held is None else held) > 0


def is_plain(span: "ReadableSpan") -> bool:
    """Whether a span has its attributes and nothing else, and lacks nothing."""
    held: Any = span
    try:
        events, links = held._events, held._links  # reading these takes a fifth of the time that asking for all of them takes
        more = events._dq or links._dq or events.dropped or links.dropped or held._attributes.dropped
    except AttributeError:
        more = has_events(span) or has_links(span) or span.dropped_attributes or span.dropped_events or span.dropped_links
    return not more and not span.status.description


def watch(span: "ReadableSpan") -> None:
    """Remember what will be dropped from ``span``, where it has a limit and its attributes are built as we know them."""
    attributes: Any = getattr(span, "_attributes", None)
    inner = getattr(attributes, "_dict", None)
    if getattr(attributes, "maxlen", None) and isinstance(inner, dict) and not isinstance(inner, Overflow):
        watching = (_kinds.get(type(attributes)) or _kind_for(type(attributes)))(inner)
        if attributes.dropped:
            watching.lost_before = attributes.dropped
        attributes._dict = watching


def overflow(span: "ReadableSpan") -> tuple[dict[str, Any], int | None]:
    """What was dropped from ``span`` and can be kept all the same, and how many attributes really are lost (``None``: as the SDK says)."""
    attributes: Any = getattr(span, "_attributes", None)
    inner = getattr(attributes, "_dict", None)
    if not isinstance(inner, Overflow) or not attributes.dropped or not inner.spilled:
        return {}, None
    spilled = {name: value for name, value in inner.spilled.items() if name not in inner}
    return spilled, max(getattr(inner, "lost_before", 0), attributes.dropped - len(spilled))

"""From any Python value to a JSON tree with type tags."""

import base64
import dataclasses
import re
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

from spanreplay.content._decoding import Decoder
from spanreplay.content._http import client_of, http_parts, http_tag
from spanreplay.content._library import ARGUMENTS, CALLED, CLASS, FACTORY, arguments_of, factory_name, tuple_parts
from spanreplay.content._types import KIND, PAYLOAD, TAG, declares, kind_of, model_fields, name_of, resolve, slots_of
from spanreplay.content.canonical import canonical_json
from spanreplay.content.errors import RecordedError
from spanreplay.content.urllib_errors import beside, error_parts, has_own_args, is_http_error

DEPTH_LIMIT: Final = 200
"""Containers within containers; deeper ones are kept as text, so that a deep stack at replay can still read the value."""
INT_LIMIT: Final = 10**600
"""Above it an integer is kept as hex: a process may limit the decimal text of an int, to 640 digits at the least."""
_TEXT_LIMIT: Final = 10_000
_CAUSE_LIMIT: Final = 5
_LOST_LIMIT: Final = 10

_SPLIT_PAIR: Final = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")

EXCEPTION_ATTRIBUTES: Final[tuple[tuple[type[BaseException], tuple[str, ...]], ...]] = (
    (OSError, ("errno", "strerror", "filename", "filename2")),
    (ImportError, ("msg", "name", "path")),
    (AttributeError, ("name",)),
    (NameError, ("name",)),
)
"""What exceptions made in C carry neither in ``args`` nor in ``__dict__``."""


def safe_text(value: object) -> str:
    """Describe a value in at most 10 000 characters, the same in every process: memory addresses are left out."""
    cls = type(value)
    if cls.__repr__ is object.__repr__:
        return f"<{cls.__module__}.{cls.__qualname__} object>"
    try:
        text = str(repr(value))
    except Exception as problem:  # noqa: BLE001 - a repr may do anything, and recording must not break the agent
        return f"<{cls.__module__}.{cls.__qualname__} object, its repr() raised {type(problem).__name__}>"
    text = _ADDRESS.sub("", text[: _TEXT_LIMIT + 1000])
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "…"


class Encoder:
    """Builds one tree.

    Attributes:
        typed: The tree holds at least one tag.
        lossy: Something could be kept as text only, or cannot be restored as it was.
        lost: What of an exception that is, each by its place and type: ``response, a http.client.HTTPResponse``.
    """

    def __init__(self) -> None:
        self.lost: list[str] = []
        self._place: list[str] = []
        self.typed = False
        self.lossy = False
        self._active: set[int] = set()
        self._depth = 0
        self._causes = 0

    def value(self, value: Any) -> Any:
        """Return the tree of any value."""
        cls = type(value)
        if value is None or cls is bool or cls is float:
            return value
        if cls is str:
            return self._str(value)
        if cls is int:
            return value if -INT_LIMIT < value < INT_LIMIT else self._tag("int", hex(value))
        if id(value) in self._active:
            return self._text(f"<cycle: {cls.__qualname__}>")
        if self._depth >= DEPTH_LIMIT:
            return self._text(safe_text(value))
        self._active.add(id(value))
        self._depth += 1
        try:
            return self._compound(cls, value)
        except Exception:  # noqa: BLE001 - properties and iterators of the agent's classes may raise anything
            return self._text(safe_text(value))
        finally:
            self._active.discard(id(value))
            self._depth -= 1

    def _compound(self, cls: type, value: Any) -> Any:
        handler = _EXACT.get(cls)
        if handler is not None:
            return handler(self, value)
        kind = kind_of(cls)
        if kind is not None:
            if resolve(name_of(cls), {}) is not cls:
                self.lossy = True  # replay can find such a class through an annotation only, if there is one
            return _KINDS[kind](self, value)
        if isinstance(value, PurePath):
            return self._tag("path", str(value), c=cls.__name__)
        if http_tag(cls) is not None:
            return self._http(cls, value)
        found = arguments_of(value)
        if found is not None:
            return self._tag("text", safe_text(value), **{CLASS: found[0], ARGUMENTS: self._list(found[1])})
        if isinstance(value, tuple) and (parts := tuple_parts(value)) is not None:
            more = {CLASS: parts[0], ARGUMENTS: self.value(parts[1])}
            return self._tag("tuple", self._list(tuple.__iter__(value)), **more)
        for base, handler in _EXACT.items():
            if isinstance(value, base):
                self.lossy = True
                return handler(self, value)
        return self._text(safe_text(value))

    def _tag(self, name: str, payload: Any, **more: Any) -> dict[str, Any]:
        self.typed = True
        return {TAG: name, PAYLOAD: payload, **more}

    def _text(self, text: str) -> dict[str, Any]:
        self.lossy = True
        return self._tag("text", text)

    def _str(self, value: str) -> Any:
        if value.isascii() or _SPLIT_PAIR.search(value) is None:
            return value
        return self._tag("str", _SPLIT_PAIR.split(value))  # JSON would read the two halves as one character

    def _list(self, value: Iterable[Any]) -> list[Any]:
        return [self.value(item) for item in list(value)]

    def _dict(self, value: dict[Any, Any]) -> Any:
        items = list(value.items())
        if any(type(key) is not str or key == TAG or (not key.isascii() and _SPLIT_PAIR.search(key)) for key, _ in items):
            return self._tag("dict", self._pairs(items))
        return {key: self.value(item) for key, item in items}

    def _counter(self, value: Counter[Any]) -> Any:
        return self._tag("dict", self._pairs(list(value.items())), **{CLASS: "Counter"})

    def _defaultdict(self, value: defaultdict[Any, Any]) -> Any:
        factory = factory_name(value)
        if factory is None and value.default_factory is not None:
            self.lossy = True  # it is the agent's own: the replay cannot make it, and a key that is not there has no value then
        more = {CLASS: "defaultdict"} if factory is None else {CLASS: "defaultdict", FACTORY: factory}
        return self._tag("dict", self._pairs(list(value.items())), **more)

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> list[Any]:
        return [[self.value(key), self.value(item)] for key, item in items]

    def _unordered(self, name: str, value: Iterable[Any]) -> Any:
        return self._tag(name, sorted(self._list(value), key=canonical_json))  # the hash seed must not show

    def _bytes(self, name: str, value: bytes) -> Any:
        try:
            return self._tag(name, value.decode("utf-8"))  # readable, and open to redaction
        except UnicodeDecodeError:
            return self._tag(name, base64.b64encode(value).decode("ascii"), e="base64")

    def _datetime(self, value: datetime) -> Any:
        return self._tag("datetime", datetime.isoformat(value), **self._clock(value.tzinfo, value.fold))

    def _time(self, value: time) -> Any:
        return self._tag("time", time.isoformat(value), **self._clock(value.tzinfo, value.fold))

    def _clock(self, zone: tzinfo | None, fold: int) -> dict[str, Any]:
        more: dict[str, Any] = {"fold": fold} if fold else {}
        if zone is not None and type(zone) is not timezone:
            key = getattr(zone, "key", None)
            if isinstance(key, str):
                more["zone"] = key
            else:
                self.lossy = True
        elif zone is not None and zone.tzname(None) != timezone(zone.utcoffset(None) or timedelta()).tzname(None):
            more[CALLED] = zone.tzname(None)
        return more

    def _http(self, cls: type, value: Any) -> Any:
        parts, lacks = http_parts(value)
        if lacks:
            self._lose(lacks)
        return self._tag(str(http_tag(cls)), {name: self.value(part) for name, part in parts.items()}, c=client_of(cls))

    def _enum(self, value: Enum) -> Any:
        before = self.lossy
        payload = self.value(value._value_)
        self.lossy = before  # the name restores the member, the value is for readers
        return self._tag(name_of(type(value)), payload, **{KIND: "enum", "n": value._name_})

    def _namedtuple(self, value: Any) -> Any:
        fields: tuple[str, ...] = type(value)._fields
        items = tuple.__iter__(value)
        return self._tag(
            name_of(type(value)), {name: self.value(item) for name, item in zip(fields, items, strict=True)}, **{KIND: "namedtuple"}
        )

    def _dataclass(self, value: Any) -> Any:
        payload: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            try:
                item = getattr(value, field.name)
            except AttributeError:
                continue
            payload[field.name] = self.value(item)
        return self._tag(name_of(type(value)), payload, **{KIND: "dataclass"})

    def _model(self, value: Any) -> Any:
        cls = type(value)
        state: dict[str, Any] = object.__getattribute__(value, "__dict__")
        payload = {name: self.value(state[name]) for name in model_fields(cls) if name in state}
        more: dict[str, Any] = {KIND: "model"}
        extra = getattr(value, "__pydantic_extra__", None)
        if extra:
            more["extra"] = {str(name): self.value(item) for name, item in list(extra.items())}
        fields_set = getattr(value, "__pydantic_fields_set__", None)
        expected = {*payload, *(extra or {})}
        if fields_set is not None and fields_set != expected:
            more["set"] = sorted(str(name) for name in fields_set)
        beside = {name: item for name, item in state.items() if name not in payload and not declares(cls, name)}  # no cached_property
        if beside:
            more["state"] = {str(name): self.value(item) for name, item in beside.items()}
        private = self._private(cls, getattr(value, "__pydantic_private__", None))
        if private:
            more["private"] = private
        return self._tag(name_of(cls), payload, **more)

    def _private(self, cls: type, private: object) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        if not isinstance(private, dict):
            return kept
        declared = getattr(cls, "__private_attributes__", {})
        for name, item in list(private.items()):
            if name in declared and getattr(declared[name], "default", None) is item:
                continue
            tree, exact = self._probe(item)
            if exact:
                kept[str(name)] = tree
        return kept

    def _probe(self, value: Any) -> tuple[Any, bool]:
        """Encode a value and tell whether it was kept exactly."""
        before, self.lossy = self.lossy, False
        tree = self.value(value)
        exact = not self.lossy
        self.lossy = before or not exact
        return tree, exact

    def _exception(self, value: BaseException) -> Any:
        cls: Any = type(value)
        is_response = is_http_error(cls)
        args = value.args if not is_response or has_own_args(value) else ()
        payload: dict[str, Any] = {"message": _message(value), "args": [self._part(f"args[{at}]", item) for at, item in enumerate(args)]}
        if is_response:
            parts, lacks = error_parts(value)
            payload["http"] = {name: self.value(part) for name, part in parts.items()}
            if lacks:
                self._lose(lacks)
        attributes = {
            name: self._part(name, getattr(value, name, None))
            for base, names in EXCEPTION_ATTRIBUTES
            if isinstance(value, base) and not is_response
            for name in names
            if getattr(value, name, None) is not None
        }
        if attributes:
            payload["attributes"] = attributes
        state = beside(value) if is_response else {**getattr(value, "__dict__", {})}
        if isinstance(value, RecordedError):
            state = {**value.recorded_state}
        state |= {name: getattr(value, name) for name in slots_of(cls) if hasattr(value, name)}
        if state:
            payload["state"] = {str(name): self._part(str(name), item) for name, item in list(state.items())}
        self._validation(value, payload)
        if value.__cause__ is not None and self._causes < _CAUSE_LIMIT:
            self._causes += 1
            payload["cause"] = self._part("__cause__", value.__cause__)
            self._causes -= 1
        tree = self._tag(name_of(cls), payload, **{KIND: "exception"})
        if not _restores(tree, value):
            self._lose(f"its class {cls.__module__}.{cls.__qualname__}, which a replay cannot make again")
        return tree

    def _part(self, name: str, value: Any) -> Any:
        """Encode what belongs to an exception, and name what of it is not kept, unless an exception inside has said so."""
        named = len(self.lost)
        self._place.append(name)
        try:
            tree, exact = self._probe(value)
            if not exact and len(self.lost) == named:
                self._lose(f"a {type(value).__module__}.{type(value).__qualname__}")
        finally:
            self._place.pop()
        return tree

    def _lose(self, what: str) -> None:
        self.lossy = True
        if len(self.lost) < _LOST_LIMIT:
            self.lost.append(", ".join([".".join(self._place)] * bool(self._place) + [what]))

    def _validation(self, value: Any, payload: dict[str, Any]) -> None:
        """Keep what rebuilds a pydantic ``ValidationError``, which has no constructor and no ``args``."""
        if type(value).__module__ not in {"pydantic_core._pydantic_core", "pydantic_core"} or not hasattr(value, "errors"):
            return
        try:
            payload.update(title=str(value.title), errors=self.value(value.errors(include_url=False)))
        except Exception:  # noqa: BLE001 - validators put objects of any kind into an error
            self.lossy = True


def _message(value: BaseException) -> str:
    try:
        return str(value)
    except Exception as problem:  # noqa: BLE001 - a __str__ may do anything, and recording must not break the agent
        return f"<str() raised {type(problem).__name__}>"


def _restores(tree: dict[str, Any], value: BaseException) -> bool:
    try:
        again = Decoder({}).value(tree)
        return type(again) is type(value) and str(again) == str(value)
    except Exception:  # noqa: BLE001 - user code runs in __new__ and __str__
        return False


_EXACT: Final[dict[type, Callable[[Encoder, Any], Any]]] = {
    OrderedDict: lambda encoder, value: encoder._tag("OrderedDict", encoder._pairs(list(value.items()))),
    Counter: Encoder._counter,
    defaultdict: Encoder._defaultdict,
    dict: Encoder._dict,
    list: Encoder._list,
    tuple: lambda encoder, value: encoder._tag("tuple", encoder._list(tuple.__iter__(value))),
    deque: lambda encoder, value: encoder._tag("deque", encoder._list(value), **({"n": value.maxlen} if value.maxlen is not None else {})),
    set: lambda encoder, value: encoder._unordered("set", value),
    frozenset: lambda encoder, value: encoder._unordered("frozenset", value),
    bytes: lambda encoder, value: encoder._bytes("bytes", bytes(value)),
    bytearray: lambda encoder, value: encoder._bytes("bytearray", bytes(value)),
    datetime: Encoder._datetime,
    date: lambda encoder, value: encoder._tag("date", date.isoformat(value)),
    time: Encoder._time,
    timedelta: lambda encoder, value: encoder._tag("timedelta", [value.days, value.seconds, value.microseconds]),
    Decimal: lambda encoder, value: encoder._tag("decimal", Decimal.__str__(value)),
    uuid.UUID: lambda encoder, value: encoder._tag("uuid", uuid.UUID.__str__(value)),
    complex: lambda encoder, value: encoder._tag("complex", [value.real, value.imag]),
    str: lambda encoder, value: encoder._str(str.__str__(value)),
    int: lambda encoder, value: encoder.value(int.__int__(value)),
    float: lambda encoder, value: float.__float__(value),
}
_KINDS: Final[dict[str, Callable[[Encoder, Any], Any]]] = {
    "enum": Encoder._enum,
    "namedtuple": Encoder._namedtuple,
    "dataclass": Encoder._dataclass,
    "model": Encoder._model,
    "exception": Encoder._exception,
}

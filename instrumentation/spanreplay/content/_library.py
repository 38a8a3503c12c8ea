"""Values of the standard library that are kept beside their text or their items: a closed table, by their names.

``{"$t": "text", "v": repr, "c": NAME, "a": [argument]}`` is made again of its arguments; a reader that does not know ``c`` finds the
text. ``c`` beside ``dict`` or ``tuple`` names the class of the standard library that it was, ``f`` what fills a ``defaultdict``, ``a``
what a tuple made in C holds beside its items. Nothing is looked up by a name that is found in data: the names are those below.
"""

import os
import re
import sys
import time
from collections import ChainMap, Counter, UserDict, UserList, UserString, defaultdict
from collections.abc import Callable, Mapping
from datetime import timezone
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, TypeAlias
from zoneinfo import TZPATH, ZoneInfo

CLASS: Final = "c"
ARGUMENTS: Final = "a"
FACTORY: Final = "f"
CALLED: Final = "called"
"""Beside ``datetime`` and ``time``: the name of an offset that has one of its own."""

_ZONE_KEY: Final = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_FACTORIES: Final[Mapping[str, type]] = {cls.__name__: cls for cls in (list, dict, set, tuple, frozenset, int, float, str, bool, bytes)}
_RESULTS: Final[list[Any]] = [
    getattr(os, name) for name in ("stat_result", "statvfs_result", "uname_result", "times_result") if hasattr(os, name)
]
_TUPLES: Final[Mapping[str, Any]] = {kind.__name__: kind for kind in [time.struct_time, os.terminal_size, *_RESULTS]}

_Take: TypeAlias = Callable[[Any], list[Any]]
_Make: TypeAlias = Callable[..., Any]


def arguments_of(value: Any) -> tuple[str, list[Any]] | None:
    """Name and arguments of a value that is kept beside its text; of every other, and of subclasses, ``None``."""
    cls = type(value)
    name = _NAMES.get(cls)
    if name is None:
        module = _LAZY.get(cls.__name__)
        if module is None or getattr(sys.modules.get(module), cls.__name__, None) is not cls:
            return None
        name = cls.__name__
    return name, _TABLE[name][0](value)


def rebuilt(name: object, arguments: list[Any]) -> Any:
    """Make a value of its arguments.

    Raises:
        Exception: the name is none of the table, or they do not fit.
    """
    if not isinstance(name, str):
        raise TypeError("not a name")
    return _TABLE[name][1](*arguments)


def factory_name(value: defaultdict[Any, Any]) -> str | None:
    """The name of the type that fills a ``defaultdict``, if it is a well-known one."""
    return next((name for name, cls in _FACTORIES.items() if cls is value.default_factory), None)


def rebuilt_dict(name: object, made: dict[Any, Any], factory: object) -> dict[Any, Any]:
    """Make the kind of ``dict`` that was kept; of a name that is not known, the ``dict``."""
    if name == "Counter":
        counter: Counter[Any] = Counter()
        dict.update(counter, made)
        return counter
    if name == "defaultdict":
        return defaultdict(_FACTORIES.get(factory) if isinstance(factory, str) else None, made)
    return made


def tuple_parts(value: tuple[Any, ...]) -> tuple[str, dict[str, Any]] | None:
    """Name of a tuple made in C, and what it holds beside its items; of every other, ``None``."""
    cls = type(value)
    if _TUPLES.get(cls.__name__) is not cls:
        return None
    made_of: Any = value.__reduce__()[1]
    return cls.__name__, made_of[1]


def rebuilt_tuple(name: object, made: tuple[Any, ...], beside: object) -> tuple[Any, ...]:
    """Make the kind of tuple that was kept; where that cannot be, the ``tuple``."""
    cls = _TUPLES.get(name) if isinstance(name, str) else None
    if cls is None or not isinstance(beside, dict):
        return made
    try:
        again: tuple[Any, ...] = cls(made, beside)
    except (TypeError, ValueError):
        return made
    return again


def zone_of(key: object) -> ZoneInfo | None:
    """Return a time zone of the system's own files; ``ZoneInfo`` alone would import a data package by a recorded name."""
    if not isinstance(key, str) or not _ZONE_KEY.fullmatch(key):
        return None
    if not any(Path(folder, key).is_file() for folder in TZPATH):
        return None
    return ZoneInfo(key)


def _zone(key: object) -> ZoneInfo:
    found = zone_of(key)
    if found is None:
        raise ValueError("no such zone here")
    return found


def _view(value: memoryview) -> list[Any]:
    if value.format != "B" or value.ndim != 1:
        raise ValueError("no view of bytes")
    return [bytes(value) if value.readonly else bytearray(value)]


def _chain(*maps: Any) -> Any:
    if not all(isinstance(one, Mapping) for one in maps):
        raise TypeError("not a mapping")
    return ChainMap(*maps)


def _fraction(above: object, below: object) -> Any:
    if type(above) is not int or type(below) is not int:  # a text may stand for a number without end
        raise TypeError("not an integer")
    return import_module("fractions").Fraction(above, below)


def _attributes(value: object) -> list[Any]:
    return [dict(vars(value))]


_NOTHING: Final[dict[Any, Any]] = {}
_VIEWS: Final = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))
_NAMES: Final[Mapping[type, str]] = {
    cls: cls.__name__
    for cls in (
        *(range, slice, memoryview, type(...), re.Pattern, timezone, ZoneInfo, SimpleNamespace, MappingProxyType),
        *(ChainMap, UserDict, UserList, UserString, *_VIEWS),
    )
}
_ADDRESSES: Final = tuple(f"IPv{version}{name}" for version in (4, 6) for name in ("Address", "Network", "Interface"))
_LAZY: Final[Mapping[str, str]] = {
    "Fraction": "fractions",
    "array": "array",
    "Namespace": "argparse",
    "CompletedProcess": "subprocess",
    **dict.fromkeys(_ADDRESSES, "ipaddress"),
}
"""Modules that a program may do without; they are fetched by these names alone."""


def _address(name: str) -> tuple[_Take, _Make]:
    def make(text: str) -> Any:
        return getattr(import_module("ipaddress"), name)(text)

    return lambda value: [str(value)], make


_TABLE: Final[Mapping[str, tuple[_Take, _Make]]] = {
    "range": (lambda value: [value.start, value.stop, value.step], range),
    "slice": (lambda value: [value.start, value.stop, value.step], slice),
    "memoryview": (_view, memoryview),
    "ellipsis": (lambda _: [], lambda: ...),
    "Pattern": (lambda value: [value.pattern, int(value.flags) & ~int(re.DEBUG)], re.compile),
    "timezone": (lambda value: list(value.__getinitargs__()), timezone),
    "ZoneInfo": (lambda value: [value.key], _zone),
    "SimpleNamespace": (_attributes, lambda found: SimpleNamespace(**found)),
    "mappingproxy": (lambda value: [value.copy()], MappingProxyType),
    "ChainMap": (lambda value: list(value.maps), _chain),
    "UserDict": (lambda value: [dict(value.data)], UserDict),
    "UserList": (lambda value: [list(value.data)], UserList),
    "UserString": (lambda value: [value.data], UserString),
    "dict_keys": (lambda value: [list(value)], lambda found: dict.fromkeys(found).keys()),
    "dict_values": (lambda value: [list(value)], lambda found: dict(enumerate(found)).values()),
    "dict_items": (lambda value: [dict(value)], lambda found: dict(found).items()),
    "Fraction": (lambda value: [value.numerator, value.denominator], _fraction),
    "array": (lambda value: [value.typecode, value.tolist()], lambda code, found: import_module("array").array(code, found)),
    "Namespace": (_attributes, lambda found: import_module("argparse").Namespace(**found)),
    "CompletedProcess": (
        lambda value: [value.args, value.returncode, value.stdout, value.stderr],
        lambda *found: import_module("subprocess").CompletedProcess(*found),
    ),
    **{name: _address(name) for name in _ADDRESSES},
}

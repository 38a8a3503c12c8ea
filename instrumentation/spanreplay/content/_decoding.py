"""From a JSON tree with type tags to Python values: restores only what is imported already, and calls no constructor of it."""

import base64
import dataclasses
import os
import sys
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final, cast

from spanreplay.content._absent import explain
from spanreplay.content._http import restore_http
from spanreplay.content._library import ARGUMENTS, CALLED, CLASS, FACTORY, rebuilt, rebuilt_dict, rebuilt_tuple, zone_of
from spanreplay.content._plain import is_tag, plain_tree
from spanreplay.content._types import KIND, PAYLOAD, TAG, declares, kind_of, model_fields, resolve, slots_of
from spanreplay.content.errors import CodecError, RecordedError, stand_in
from spanreplay.content.urllib_errors import is_http_error, restore_error

_SAFE_FACTORIES: Final = (list, dict, set, tuple, frozenset)
_REDACTED: Final = "[redacted:"
_NO_VALUE: Final = object()


def is_lost(tree: Any) -> bool:
    """Whether an attribute was kept as a text only, which in place of an object would mislead."""
    return is_tag(tree) and tree[TAG] == "text" and CLASS not in tree


class NotRestorableError(Exception):
    """The class is there, but what was recorded does not fit it any more."""


class Decoder:
    """Builds values from trees.

    Args:
        annotated: Classes that may be restored beside those found in ``sys.modules``, by ``module:QualName``.
        explains: Whoever asks an exception for an attribute that was not kept is told so.
    """

    def __init__(self, annotated: Mapping[str, type], *, explains: bool = False) -> None:
        self._annotated = annotated
        self._explains = explains

    def value(self, tree: Any) -> Any:
        """Return the value of a tree.

        Raises:
            CodecError: A tag is unknown, or its payload does not fit it.
        """
        if isinstance(tree, list):
            return [self.value(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if not is_tag(tree):
            return {key: self.value(item) for key, item in tree.items()}
        name: str = tree[TAG]
        if ":" in name:
            return self._named(name, tree)
        handler = _BUILTINS.get(name)
        if handler is None:
            raise CodecError(
                f"expected a type tag of the codec ({', '.join(sorted(_BUILTINS))}), found {name!r}; was it written by a newer version?"
            )
        try:
            return handler(self, tree[PAYLOAD], tree)
        except CodecError:
            raise
        except (ValueError, TypeError, ArithmeticError, KeyError, AttributeError) as problem:
            if isinstance(tree[PAYLOAD], str) and _REDACTED in tree[PAYLOAD]:
                return tree[PAYLOAD]  # a secret was taken out of it; the rest is all there is
            raise CodecError(f"expected a payload that fits the tag {name!r}, found {str(tree[PAYLOAD])[:80]!r} ({problem})") from problem

    def _named(self, name: str, tree: dict[str, Any]) -> Any:
        kind, payload = tree.get(KIND), tree[PAYLOAD]
        cls = resolve(name, self._annotated)
        if cls is not None and kind == kind_of(cls) and (kind == "enum" or isinstance(payload, dict)):
            try:
                return _RESTORERS[kind](self, cls, payload, tree)
            except CodecError:
                raise
            except Exception:  # noqa: BLE001, S110 - user code may run (__new__, descriptors); the plain value is the answer then
                pass
        if kind == "exception" and isinstance(payload, dict):
            return self._recorded(name, payload, found=cls is not None)
        return plain_tree(tree)

    def _recorded(self, name: str, payload: dict[str, Any], *, found: bool) -> RecordedError:
        args, state = payload.get("args"), payload.get("state")
        kept = {key: self.value(item) for key, item in state.items() if not is_lost(item)} if isinstance(state, dict) else {}
        error = stand_in(name, str(payload.get("message", "")), kept, found=found)
        if isinstance(args, list):
            error.args = tuple(self.value(item) for item in args)
        self._chain(error, payload)
        return error

    def _enum(self, cls: type[Enum], payload: Any, tree: dict[str, Any]) -> Any:
        name = tree.get("n")
        if isinstance(name, str) and name in cls.__members__:
            return cls.__members__[name]
        if issubclass(cls, Flag) and type(payload) is int:
            return cls(payload)
        raise NotRestorableError

    def _namedtuple(self, cls: type[tuple[Any, ...]], payload: dict[str, Any], _: dict[str, Any]) -> Any:
        fields: tuple[str, ...] = getattr(cls, "_fields", ())
        if set(fields) != payload.keys():
            raise NotRestorableError
        return tuple.__new__(cls, [self.value(payload[name]) for name in fields])

    def _dataclass(self, cls: Any, payload: dict[str, Any], _: dict[str, Any]) -> Any:
        fields = {field.name: field for field in dataclasses.fields(cls)}
        if not payload.keys() <= fields.keys():
            raise NotRestorableError
        made: object = object.__new__(cls)
        for name, field in fields.items():
            if name in payload:
                object.__setattr__(made, name, self.value(payload[name]))
            elif field.default is not dataclasses.MISSING:
                object.__setattr__(made, name, field.default)
            elif field.default_factory in _SAFE_FACTORIES:
                object.__setattr__(made, name, cast("Callable[[], object]", field.default_factory)())
            elif field.init:
                raise NotRestorableError
        return made

    def _model(self, cls: type, payload: dict[str, Any], tree: dict[str, Any]) -> Any:
        """Fill the four slots that every pydantic 2 model has; no validator, no ``__init__``, no ``model_post_init`` runs."""
        fields = model_fields(cls)
        if not payload.keys() <= fields.keys():
            raise NotRestorableError
        state = {name: self.value(payload[name]) if name in payload else _default(field) for name, field in fields.items()}
        state = {name: item for name, item in state.items() if item is not _NO_VALUE}
        state.update({name: self.value(item) for name, item in tree.get("state", {}).items() if not declares(cls, name)})
        extra = {name: self.value(item) for name, item in tree.get("extra", {}).items()}
        allows_extra = getattr(cls, "model_config", {}).get("extra") == "allow"
        made: object = object.__new__(cls)
        object.__setattr__(made, "__dict__", state)
        object.__setattr__(made, "__pydantic_fields_set__", set(tree.get("set", [*payload, *extra])))
        object.__setattr__(made, "__pydantic_extra__", extra if allows_extra or extra else None)
        object.__setattr__(made, "__pydantic_private__", self._private(cls, tree.get("private", {})))
        return made

    def _private(self, cls: type, recorded: dict[str, Any]) -> dict[str, Any] | None:
        declared: Mapping[str, Any] = getattr(cls, "__private_attributes__", {})
        if not declared:
            return None
        private: dict[str, Any] = {}
        for name, attribute in declared.items():
            item = self.value(recorded[name]) if name in recorded else attribute.get_default()
            if type(item).__name__ != "PydanticUndefinedType":
                private[name] = item
        return private

    def _exception(self, cls: Any, payload: dict[str, Any], _: dict[str, Any]) -> BaseException:
        if "errors" in payload:
            made = self._validation_error(cls, payload)
            made.args = tuple(self.value(payload["args"]))
            self._chain(made, payload)
            return made
        args = tuple(self.value(payload["args"]))
        state = payload.get("state", {})
        lost = [name for name, item in state.items() if is_lost(item)]
        if is_http_error(cls):
            made = restore_error(cls, self.value(payload["http"]))
            made.args = args or made.args
        elif lost and (declares(cls, "__getattr__") or declares(cls, "__del__")):
            raise NotRestorableError  # they would meet half an object
        else:
            made = self._filled(cls, args, payload.get("attributes", {}))
        slots = slots_of(cls)
        for name, item in state.items():
            if name in lost:
                continue
            if name in slots:
                slots[name].__set__(made, self.value(item))
            else:
                made.__dict__[name] = self.value(item)
        if self._explains:
            for name in lost:
                explain(cls, name, str(state[name][PAYLOAD]))
        self._chain(made, payload)
        return made

    def _filled(self, cls: Any, args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
        builtin: Any = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        made = _made(cls, builtin, args)
        _set(made, "args", args)
        try:
            builtin.__init__(made, *args)  # C code: fills errno, encoding, code … from args, and runs nothing of the agent's
        except (TypeError, ValueError):
            _set(made, "args", args)
        for name, item in attributes.items():
            if name in _C_ATTRIBUTES:
                _set(made, name, self.value(item))
        return made

    def _chain(self, made: BaseException, payload: dict[str, Any]) -> None:
        cause = self.value(payload.get("cause"))
        if isinstance(cause, BaseException):
            _set(made, "__cause__", cause)

    def _validation_error(self, cls: Any, payload: dict[str, Any]) -> BaseException:
        core = sys.modules["pydantic_core"]
        custom: Any = core.__dict__["PydanticCustomError"]
        details = []
        for error in self.value(payload["errors"]):
            detail = {"type": error["type"], "loc": error["loc"], "input": error["input"], "ctx": error.get("ctx", {})}
            try:
                cls.from_exception_data("", [detail])
            except (KeyError, TypeError):  # not one of pydantic's own types
                detail["type"] = custom(error["type"], error["msg"], error.get("ctx"))
            details.append(detail)
        return cast("BaseException", cls.from_exception_data(payload["title"], details))

    def _dict(self, payload: list[Any], tree: dict[str, Any]) -> dict[Any, Any]:
        pairs = [(self.value(key), self.value(item)) for key, item in payload]
        try:
            return rebuilt_dict(tree.get(CLASS), dict(pairs), tree.get(FACTORY))
        except TypeError:  # a key came back as its plain JSON value, which has no hash
            return cast("dict[Any, Any]", plain_tree(tree))

    def _text(self, payload: Any, tree: dict[str, Any]) -> Any:
        arguments = tree.get(ARGUMENTS)
        if CLASS in tree and isinstance(arguments, list):
            try:
                return rebuilt(tree[CLASS], [self.value(item) for item in arguments])
            except RecursionError:
                raise
            except Exception:  # noqa: BLE001, S110 - written by a newer version, or a secret was taken out: the text is there
                pass
        if not isinstance(payload, str):
            raise TypeError("not a string")
        return payload

    def _tuple(self, payload: Any, tree: dict[str, Any]) -> tuple[Any, ...]:
        made = tuple(self._list(payload))
        return rebuilt_tuple(tree[CLASS], made, self.value(tree.get(ARGUMENTS))) if CLASS in tree else made

    def _set(self, make: Callable[[list[Any]], Any], payload: Any) -> Any:
        items = self._list(payload)
        try:
            return make(items)
        except TypeError:
            return items

    def _list(self, payload: Any) -> list[Any]:
        if not isinstance(payload, list):
            raise TypeError("not a list")
        return [self.value(item) for item in payload]

    def _http(self, payload: dict[str, Any], tree: dict[str, Any]) -> Any:
        try:
            return restore_http(tree[TAG], payload, tree.get("c"), self.value)
        except CodecError:
            raise
        except Exception:  # noqa: BLE001 - the client checks method, URL and headers in ways of its own
            return plain_tree(tree)

    def _bytes(self, payload: str, tree: dict[str, Any]) -> bytes:
        return base64.b64decode(payload, validate=True) if tree.get("e") == "base64" else payload.encode("utf-8")

    def _datetime(self, payload: str, tree: dict[str, Any]) -> datetime:
        moment = datetime.fromisoformat(payload)
        return moment.replace(fold=tree.get("fold", 0), tzinfo=_zone(tree, moment.tzinfo))

    def _time(self, payload: str, tree: dict[str, Any]) -> time:
        moment = time.fromisoformat(payload)
        return moment.replace(fold=tree.get("fold", 0), tzinfo=_zone(tree, moment.tzinfo))


def _default(field: Any) -> Any:
    """Return the default of a field that an older recording lacks."""
    if field.is_required():
        raise NotRestorableError
    if field.default_factory is None:
        return field.default
    return field.default_factory() if field.default_factory in _SAFE_FACTORIES else _NO_VALUE


def _made(cls: Any, builtin: Any, args: tuple[Any, ...]) -> BaseException:
    """An exception of a class, by its own ``__new__``; where that takes something else than ``args``, by that of the built-in class."""
    try:
        made: BaseException = cls.__new__(cls, *args)
        if type(made) is cls:
            return made
    except Exception:  # noqa: BLE001, S110 - it is the agent's, and is called with what it may not take
        pass
    return cast("BaseException", builtin.__new__(cls, *args))


def _zone(tree: dict[str, Any], offset: tzinfo | None) -> tzinfo | None:
    """The zone of the system's files that a moment names, else its offset, by its name if it has one."""
    found, name = zone_of(tree.get("zone")), tree.get(CALLED)
    if found is None and isinstance(name, str) and offset is not None:
        return timezone(offset.utcoffset(None) or timedelta(), name)
    return found or offset


def _path(payload: str, tree: dict[str, Any]) -> PurePath:
    name = tree.get("c")
    if name == ("WindowsPath" if os.name == "nt" else "PosixPath"):
        return Path(payload)
    return (PureWindowsPath if "Windows" in str(name) else PurePosixPath)(payload)


def _text(payload: Any) -> str:
    if not isinstance(payload, str):
        raise TypeError("not a string")
    return payload


_set: Final = object.__setattr__
"""A class may let nobody set its attributes."""
_C_ATTRIBUTES: Final = frozenset({"errno", "strerror", "filename", "filename2", "msg", "name", "path"})

_BUILTINS: Final[dict[str, Callable[[Decoder, Any, dict[str, Any]], Any]]] = {
    "text": Decoder._text,
    "str": lambda decoder, payload, _: "".join(decoder._list(payload)),
    "int": lambda _, payload, __: int(payload, 16),
    "dict": Decoder._dict,
    "OrderedDict": lambda decoder, payload, tree: OrderedDict(decoder._dict(payload, tree)),
    "tuple": Decoder._tuple,
    "deque": lambda decoder, payload, tree: deque(decoder._list(payload), tree.get("n")),
    "set": lambda decoder, payload, _: decoder._set(set, payload),
    "frozenset": lambda decoder, payload, _: decoder._set(frozenset, payload),
    "bytes": Decoder._bytes,
    "bytearray": lambda decoder, payload, tree: bytearray(decoder._bytes(payload, tree)),
    "datetime": Decoder._datetime,
    "date": lambda _, payload, __: date.fromisoformat(payload),
    "time": Decoder._time,
    "timedelta": lambda decoder, payload, _: timedelta(*decoder._list(payload)),
    "decimal": lambda _, payload, __: Decimal(_text(payload)),
    "uuid": lambda _, payload, __: uuid.UUID(payload),
    "complex": lambda decoder, payload, _: complex(*decoder._list(payload)),
    "request": Decoder._http,
    "response": Decoder._http,
    "path": lambda _, payload, tree: _path(payload, tree),
}
_RESTORERS: Final[dict[Any, Callable[[Decoder, Any, Any, dict[str, Any]], Any]]] = {
    "enum": Decoder._enum,
    "namedtuple": Decoder._namedtuple,
    "dataclass": Decoder._dataclass,
    "model": Decoder._model,
    "exception": Decoder._exception,
}

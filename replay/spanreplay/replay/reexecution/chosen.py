"""What a call gives because somebody has chosen it: ``--set result=JSON``, ``--decide N=done:JSON``.

JSON is made what the call site declares, so that the agent gets what it gets in life; what does not fit that is refused. For a generator it
is the list of what it yields. What is declared as nothing becomes of the type that the call gave while it was recorded, if the JSON fits
that, and else is given as it is.
"""

import dataclasses
import enum
import inspect
import json
import sys
import types
from collections import abc
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from spanreplay.boundary.call import Answer
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content import codec
from spanreplay.content.codec import CodecError
from spanreplay.instrumentation.tools import ToolInfo
from spanreplay.replay.reexecution.policy import PolicyError

_ANY: Final = (None, Any, object)
_LISTS: Final = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_MADE_OF_LISTS: Final = {tuple: tuple, set: set, frozenset: frozenset, abc.Set: set}
_DICTS: Final = (dict, abc.Mapping, abc.MutableMapping)
_SHOWN: Final = 80


class _DoesNotFitError(Exception):
    """JSON that is no value of a type: says why."""


def chosen(text: str, step: LiveStep, like: str | None = None) -> Answer:
    """The answer that gives this.

    Args:
        text: JSON; with the tags of the codec, as a record has them, it is that very value.
        step: the call.
        like: typed text of what such a call has given.

    Raises:
        PolicyError: it does not fit what the call gives.
    """
    call = step.call
    value = json.loads(text)
    made = fitting(value, call.name, call.annotation, streams=call.streams)
    if call.streams:
        return Answer(outcome="ok", items=codec.encode(made).text)
    if made is value and like is not None and codec.is_typed(like):
        made = _as_recorded(value, like)
    return Answer(outcome="ok", result=codec.encode(made).text)


def fitting(value: Any, name: str, declared: object, *, streams: bool) -> object:
    """What a tool gives that is to give this: for a generator the list of what it yields.

    Args:
        value: plain JSON, or with the tags of the codec.
        name: of the tool.
        declared: what it declares to return.
        streams: it is a generator.

    Raises:
        PolicyError: it does not fit what the tool declares.
    """
    if not streams:
        return _made(value, declared, name)
    if not isinstance(value, list):
        raise PolicyError(f"{name} is a generator: its result is given as the list of what it yields; found {_short(json.dumps(value))}")
    of = next(iter(get_args(declared)), None)
    return [_made(item, of, f"item {number} of {name}") for number, item in enumerate(value, 1)]


def unfit(value: Any, tools: Iterable[ToolInfo]) -> Iterator[PolicyError | None]:
    """For each of several tools why it does not give a value; ``None`` where it does."""
    for tool in tools:
        try:
            fitting(value, tool.name, tool.annotation, streams=tool.streams)
        except PolicyError as error:
            yield error
        else:
            yield None


def _as_recorded(value: Any, like: str) -> object:
    try:
        return _made(value, type(codec.decode(like)), "")
    except (CodecError, PolicyError):
        return value


def _made(value: Any, declared: object, what: str) -> object:
    text = json.dumps(value, ensure_ascii=False)
    try:
        if codec.is_typed(text):
            return codec.decode(text, declared)
        if any(declared is known for known in _ANY):
            return value
        return _by_pydantic(text, declared) if "pydantic" in sys.modules else _fitting(value, declared)
    except (CodecError, _DoesNotFitError, RecursionError) as error:
        raise PolicyError(f"{what} is declared to give {_name(declared)}, and {_short(text)} is none: {error}") from error


def _by_pydantic(text: str, declared: object) -> object:
    pydantic: Any = sys.modules["pydantic"]
    try:
        adapter = pydantic.TypeAdapter(declared)
    except Exception:  # noqa: BLE001 — a type that it does not know
        return _fitting(json.loads(text), declared)
    try:
        return adapter.validate_json(text, strict=True)
    except Exception as error:
        errors: Any = getattr(error, "errors", None)
        found = {"msg": str(error), "loc": ()} if errors is None else errors()[0]
        place = ".".join(map(str, found["loc"]))
        raise _DoesNotFitError(f"{place}: {found['msg']}" if place else found["msg"]) from error


def _fitting(value: Any, declared: Any) -> object:
    """The same without pydantic, for the types that plain programs declare."""
    while get_origin(declared) is Annotated or isinstance(declared, NewType):
        declared = declared.__supertype__ if isinstance(declared, NewType) else get_args(declared)[0]
    origin, of = get_origin(declared) or declared, get_args(declared)
    if any(origin is known for known in _ANY[1:]) or isinstance(origin, TypeVar | str):
        return value
    if origin in (Union, types.UnionType):
        return _one_of(value, of)
    if origin is Literal and value in of:
        return value
    if origin in (None, type(None), bool, int, float, str):
        return _scalar(value, type(None) if origin is None else origin)
    if isinstance(value, list) and (origin in _LISTS or origin in _MADE_OF_LISTS):
        return _collected(value, origin, of)
    if isinstance(value, dict) and origin in _DICTS:
        return {key: _fitting(inner, of[1]) if of else inner for key, inner in value.items()}
    if isinstance(value, dict) and (dataclasses.is_dataclass(origin) or is_typeddict(origin)):
        return _with_fields(value, origin)
    kind: Any = origin
    if inspect.isclass(kind) and issubclass(kind, enum.Enum) and value in [member.value for member in kind]:
        return kind(value)
    raise _DoesNotFitError(f"{_name(declared)} is not made of {type(value).__name__}")


def _one_of(value: Any, types_: tuple[Any, ...]) -> object:
    for declared in types_:
        try:
            return _fitting(value, declared)
        except _DoesNotFitError:
            continue
    raise _DoesNotFitError("none of them fits")


def _scalar(value: Any, declared: type) -> object:
    if declared is float and type(value) is int:
        return float(value)
    if type(value) is not declared:
        raise _DoesNotFitError(f"wanted {declared.__name__}, found {type(value).__name__}")
    return value


def _collected(value: list[Any], origin: Any, of: tuple[Any, ...]) -> object:
    make = _MADE_OF_LISTS.get(origin, list)
    if make is tuple and of and of[-1] is not Ellipsis:
        if len(of) != len(value):
            raise _DoesNotFitError(f"wanted {len(of)} items, found {len(value)}")
        return tuple(_fitting(inner, each) for inner, each in zip(value, of, strict=True))
    return make(_fitting(inner, of[0]) if of else inner for inner in value)


def _with_fields(value: dict[str, Any], declared: Any) -> object:
    try:
        hints = get_type_hints(declared)
    except Exception:  # noqa: BLE001 — a name that only a type checker sees
        hints = {}
    if unknown := sorted(value.keys() - (hints or value).keys()):
        raise _DoesNotFitError(f"it has no {', '.join(unknown)}")
    made = {key: _fitting(inner, hints.get(key, Any)) for key, inner in value.items()}
    try:
        return declared(**made)
    except Exception as error:
        raise _DoesNotFitError(str(error)) from error


def _name(declared: object) -> str:
    return declared.__name__ if isinstance(declared, type) and not get_args(declared) else str(declared)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

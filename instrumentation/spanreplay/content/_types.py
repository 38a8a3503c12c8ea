"""Names of classes, and the way back from a name to a class: only through what is imported already."""

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

TAG: Final = "$t"
PAYLOAD: Final = "v"
KIND: Final = "k"

Kind: TypeAlias = Literal["model", "dataclass", "enum", "namedtuple", "exception"]
"""The only kinds of class that are ever restored by name."""

_ANNOTATION_LIMIT: Final = 2000


@lru_cache(maxsize=1024)
def kind_of(cls: type) -> Kind | None:
    """Return the kind of a class, or ``None`` for every class that is kept as text only."""
    if issubclass(cls, BaseException):
        return "exception"
    if issubclass(cls, Enum):
        return "enum"
    if declares(cls, "__pydantic_validator__") and declares(cls, "model_dump") and declares(cls, "model_validate"):
        return "model"
    if declares(cls, "__dataclass_fields__"):
        return "dataclass"
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return "namedtuple"
    return None


def declares(cls: type, name: str) -> bool:
    """Tell whether a class or one of its bases has an attribute, running no descriptor."""
    return any(name in base.__dict__ for base in cls.__mro__)


@lru_cache(maxsize=1024)
def slots_of(cls: type) -> Mapping[str, Any]:
    """Return the slots that classes written in Python declare, each with what reads and sets it."""
    named = [base.__dict__ for base in cls.__mro__ if "__slots__" in base.__dict__]
    return {name: item for space in named for name, item in space.items() if type(item) is types.MemberDescriptorType}


def model_fields(cls: type) -> Mapping[str, Any]:
    """Return the fields of a pydantic model class, by name."""
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is None:
        fields = getattr(cls, "model_fields", None)
    return fields if isinstance(fields, Mapping) else {}


def name_of(cls: type) -> str:
    """Return ``module:QualName``."""
    return f"{cls.__module__}:{cls.__qualname__}"


def resolve(name: str, annotated: Mapping[str, type]) -> type | None:
    """Find the class that a recorded name means, importing and calling nothing.

    Module dictionaries are read directly, because a module's ``__getattr__`` may import.

    Args:
        name: ``module:QualName`` as recorded.
        annotated: Classes of the call site's annotation, from `classes_of`.
    """
    module_name, _, qualname = name.partition(":")
    found = _lookup(module_name, qualname)
    if found is None:
        found = annotated.get(name)
    if found is None and module_name == "__main__":  # a script recorded by itself, replayed as a module
        same: set[type] = {cls for cls in annotated.values() if cls.__qualname__ == qualname}
        found = same.pop() if len(same) == 1 else None
    return found


def _lookup(module_name: str, qualname: str) -> type | None:
    module = sys.modules.get(module_name)
    if module is None or not issubclass(type(module), types.ModuleType):
        return None
    space: Mapping[str, object] = object.__getattribute__(module, "__dict__")
    whole = space.get(qualname)
    if isinstance(whole, type):
        return whole
    if qualname.endswith("]"):
        return _parametrised(module_name, qualname)
    found: object = None
    for part in qualname.split("."):
        found = space.get(part)
        if not isinstance(found, type):
            return None
        space = found.__dict__
    return found if isinstance(found, type) else None


def _parametrised(module_name: str, qualname: str) -> type | None:
    """Find ``Page[Item]``: pydantic keeps such a class as a subclass of ``Page`` and, made inside a function, nowhere else."""
    origin = _lookup(module_name, qualname.partition("[")[0])
    if origin is None:
        return None
    subclasses: list[type] = type.__subclasses__(origin)
    return next((cls for cls in subclasses if cls.__qualname__ == qualname and cls.__module__ == module_name), None)


def classes_of(annotation: object) -> dict[str, type]:
    """Return the restorable classes that an annotation mentions, by name: itself, its arguments, and the fields of each."""
    found: dict[str, type] = {}
    work: list[object] = [annotation]
    seen: set[int] = set()
    while work and len(seen) < _ANNOTATION_LIMIT:
        item = work.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        work.extend(typing.get_args(item))
        if not isinstance(item, type) or isinstance(item, types.GenericAlias):
            continue
        kind = kind_of(item)
        if kind is None:
            continue
        found[name_of(item)] = item
        if kind == "model":
            work.extend(field.annotation for field in model_fields(item).values())
        elif kind == "dataclass":
            work.extend(field.type for field in dataclasses.fields(item))
        elif kind == "namedtuple":
            work.extend(getattr(item, "__annotations__", {}).values())
    return found

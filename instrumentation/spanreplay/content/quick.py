"""Frozen dataclasses that are made as fast as others: for those of which there is one for every span or step.

The ``__init__`` of a frozen dataclass stores each field by a call of ``object.__setattr__``, which takes five times as long as a plain
assignment. Here an object is of a sibling class, with the same slots and not frozen, while its fields are stored, and of its own class
before anybody else sees it.
"""

from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_become: Final = object.__setattr__


def quick(cls: type[_T]) -> type[_T]:
    """Put above ``@dataclass(frozen=True, slots=True, kw_only=True)``: the class stays as it is, and takes less time to make.

    For classes without a ``__post_init__``, all of whose fields are given to ``__init__``, and of which no other inherits.
    """
    alike = {name: cls.__dict__[name] for name in ("__slots__", "__orig_bases__") if name in cls.__dict__}
    known: dict[str, Any] = {"become": _become, "unset": MISSING, "cls": cls, "sibling": type(cls.__name__, cls.__bases__, alike)}
    of_class: tuple[Field[Any], ...] = fields(cls)  # type: ignore[arg-type]  # any dataclass
    given, stored = [], []
    for field in of_class:
        name = field.name
        known[f"default_{name}"] = field.default
        known[f"make_{name}"] = field.default_factory
        required = field.default is MISSING and field.default_factory is MISSING
        given.append(name if required else f"{name}=default_{name}")
        value = name if field.default_factory is MISSING else f"make_{name}() if {name} is unset else {name}"
        stored.append(f"self.{name} = {value}")
    lines = ["become(self, '__class__', sibling)", *stored, "self.__class__ = cls"]
    exec(f"def __init__(self, *, {', '.join(given)}):\n " + "\n ".join(lines), known)  # noqa: S102 - names of fields, as dataclass does it
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = cls.__init__.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    return cls

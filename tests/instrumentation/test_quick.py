"""Frozen dataclasses that are made as fast as others are what they were in everything else."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Generic, TypeVar

import pytest

from spanreplay.content.quick import quick

T = TypeVar("T")


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick(Generic[T]):
    must: T
    may: int | None = None
    own: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Generic[T]):
    must: T
    may: int | None = None
    own: dict[str, int] = field(default_factory=dict)


def test_it_is_of_its_own_class_and_frozen() -> None:
    made = Quick(must="a")
    assert type(made) is Quick
    assert made == Quick(must="a", may=None, own={})
    assert repr(made) == repr(Plain(must="a")).replace("Plain", "Quick")
    with pytest.raises(FrozenInstanceError):
        made.must = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        delattr(made, "must")


def test_defaults_are_made_for_each() -> None:
    one, other = Quick(must=1, may=2), Quick(must=1, may=2)
    assert (one.may, one.own) == (2, {})
    assert one.own is not other.own
    given = {"a": 1}
    assert Quick(must=1, own=given).own is given


def test_arguments_are_refused_as_before() -> None:
    of_any: type = Quick
    for wrong in ({}, {"must": 1, "more": 2}):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            of_any(**wrong)
    with pytest.raises(TypeError):
        of_any(1)
    assert [*inspect.signature(Quick).parameters] == [*inspect.signature(Plain).parameters]


def test_it_is_copied_replaced_and_pickled_as_before() -> None:
    made = Quick(must="a", own={"b": 1})
    assert replace(made, may=3) == Quick(must="a", may=3, own={"b": 1})
    assert copy.deepcopy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert len({Quick(must="a", own=None), Quick(must="a", own=None)}) == 1  # type: ignore[arg-type]


def test_each_object_takes_no_more_room() -> None:
    assert Quick(must=1).__sizeof__() == Plain(must=1).__sizeof__()
    assert not hasattr(Quick(must=1), "__dict__")

"""A scenario: a small agent program, the model it talks to, and what must hold of its replay."""

import importlib
import pkgutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from conformance.model import Asked, Reply
    from conformance.world import World

Expect: TypeAlias = Literal["same", "noticed", "contained"]
"""``same``: the same final output, no model request, no tool body run, nothing done outside, no difference told.
``noticed``: the program is changed in one place before it is replayed; a difference is told, or the program stopped; nothing live.
``contained``: nothing done outside, whatever else."""

GROUPS: Final = ("loops", "streams", "values", "errors", "concurrency", "effects", "changes", "determinism")
"""Modules of :mod:`conformance.scenarios`, in the order of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One program and what is expected.

    Attributes:
        name: unique.
        about: one line.
        program: given the world; a coroutine function is run in an event loop of its own.
        model: answers each request.
        requests: model requests of a recording.
        bodies: tool bodies that run while it is recorded.
        effects: things done outside while it is recorded.
        needs: constants of :mod:`conformance.driver`.
        steps: of a change: the calls that may be named as its place, from 1; beyond the last one for what is called after it.
        field: of a change: what the name of the differing part contains.
    """

    name: str
    group: str
    about: str
    program: "Callable[[World], Any]"
    model: "Callable[[Asked], Reply]"
    expect: Expect
    requests: int
    bodies: int
    effects: int
    needs: frozenset[str]
    steps: tuple[int, ...]
    field: str


_known: dict[str, Scenario] = {}


def scenario(
    *,
    model: "Callable[[Asked], Reply]",
    requests: int,
    bodies: int = 0,
    effects: int = 0,
    needs: Collection[str] = (),
    expect: Expect = "same",
    steps: tuple[int, ...] = (),
    field: str = "",
) -> "Callable[[Callable[[World], Any]], Callable[[World], Any]]":
    """Make a scenario of a program; its name is the function's, its line the first of the docstring."""

    def declare(program: "Callable[[World], Any]") -> "Callable[[World], Any]":
        name = program.__name__.replace("_", "-")
        if name in _known:
            raise ValueError(f"two scenarios are called {name}")
        _known[name] = Scenario(
            name=name,
            group=program.__module__.rpartition(".")[2],
            about=(program.__doc__ or "").strip().partition("\n")[0].rstrip("."),
            program=program,
            model=model,
            expect=expect,
            requests=requests,
            bodies=bodies,
            effects=effects,
            needs=frozenset(needs),
            steps=steps,
            field=field,
        )
        return program

    return declare


def scenarios() -> dict[str, Scenario]:
    """All of them by name, in the order of the table."""
    import conformance.scenarios as home

    for module in pkgutil.iter_modules(home.__path__):
        importlib.import_module(f"{home.__name__}.{module.name}")
    return dict(sorted(_known.items(), key=lambda item: GROUPS.index(item[1].group)))

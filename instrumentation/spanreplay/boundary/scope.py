"""Causal scopes: where in the run a call is made, independent of scheduling.

A scope is a run, the body of a step, or a task or thread forked inside one of these. Each counts, for each label, the steps
begun and the tasks forked in it, so that a path names the same logical call in every execution::

    ~Planner.search  # 2/tool_call:get_weather#0

is the first call of ``get_weather`` in the third task that runs ``Planner.search``.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from functools import lru_cache
from hashlib import sha256
from itertools import count
from threading import local
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from spanreplay.boundary.comprehensions import plain

if TYPE_CHECKING:
    from spanreplay.boundary.session import RunContext, Session
    from spanreplay.boundary.step import Step

_LONGEST: Final = 2000
"""Characters of a path. Tasks that start their successor for ever would lengthen theirs for ever."""
_ESCAPES: Final = str.maketrans({"%": "%25", "/": "%2F", "#": "%23", "~": "%7E"})


_new: Final = object.__new__


class Scope:
    """One place calls are made from."""

    __slots__ = ("__weakref__", "_counts", "_placed", "born", "label", "memo", "number", "parent", "path", "run", "session", "step")

    def __init__(
        self,
        *,
        session: "Session",
        run: "RunContext | None",
        parent: "Scope | None" = None,
        label: str = "",
        number: int = 0,
        step: "Step | None" = None,
        path: str = "",
    ) -> None:
        self.session = session
        self.run = run
        self.parent = parent
        self.label = label
        self.number = number
        self.step = step
        self.path = path
        self.memo: dict[str, object] = {}
        """Small facts that transports keep between calls made from here."""
        self._counts: dict[str, Callable[[], int]] = {}
        self._placed: dict[str, int] = {}
        self.born: int | None = None if parent is None else parent.born
        """Place in the session's order at which the task or thread around this scope was started."""

    def next(self, label: str) -> int:
        """The next number of ``label`` in this scope, from 0. Safe between threads: ``setdefault`` is atomic."""
        counter = self._counts.get(label)
        if counter is None:
            counter = self._counts.setdefault(label, count().__next__)
        return counter()

    def place(self, label: str) -> tuple[str, int]:
        """Reserve a place for a step: its path and its number."""
        counter = self._counts.get(label)
        if counter is None:
            counter = self._counts.setdefault(label, count().__next__)
        number = counter()
        self._placed[label] = number + 1
        return (f"{self.path}/{label}#{number}" if self.path else f"{label}#{number}"), number

    def give_back(self, label: str, number: int) -> None:
        """Of a step that is none after all: its place is the next one's, unless another one has been placed since."""
        if self._placed.get(label) == number + 1:
            self._placed[label] = number
            self._counts[label] = count(number).__next__

    def next_path(self, label: str) -> str:
        """The path that :meth:`place` gives next, unless another thread is faster."""
        number = self._placed.get(label, 0)
        return f"{self.path}/{label}#{number}" if self.path else f"{label}#{number}"

    def fork(self, name: str) -> "Scope":
        """The scope of a task or thread that is started here and runs ``name``."""
        label = _fork_label(self.session.name(name))
        number = (self._counts.get(label) or self._counts.setdefault(label, count().__next__))()
        self._placed[label] = number + 1
        path = f"{self.path}/{label}#{number}" if self.path else f"{label}#{number}"
        made = _new(Scope)  # a program may start a task for each await: as ``__init__`` would, without its call
        made.parent = self
        if len(path) > _LONGEST:
            path, made.parent = "~" + sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32], None
        made.session = session = self.session
        made.run = self.run
        made.label = label
        made.number = number
        made.step = self.step
        made.path = path
        made.memo = {}
        made._counts = {}
        made._placed = {}
        made.born = session.latest
        return made

    def has_forked(self, label: str, number: int) -> bool:
        """Whether the task or thread of this label (``~name``) and number has been started here."""
        return self._placed.get(label, 0) > number

    def inside(self, step: "Step") -> "Scope":
        """The scope of a step's body."""
        return Scope(session=self.session, run=self.run, parent=self, label=step.label, number=step.number, step=step, path=step.path)

    def keyed(self, key: str) -> "Scope":
        """A scope that the user named: the same whichever task or thread of the step around it enters it."""
        anchor = self
        while anchor.label.startswith("~") and anchor.parent is not None:
            anchor = anchor.parent
        label = "@" + self.session.name(key).translate(_ESCAPES)
        path, number = anchor.place(label)
        return Scope(session=self.session, run=self.run, parent=self, label=label, number=number, step=self.step, path=path)

    def is_below(self, other: "Scope") -> bool:
        """True when ``other`` is an ancestor of this scope."""
        scope = self.parent
        while scope is not None:
            if scope is other:
                return True
            scope = scope.parent
        return False


@lru_cache(maxsize=1024)
def _fork_label(name: str) -> str:
    return "~" + plain(name).translate(_ESCAPES)


@lru_cache(maxsize=1024)
def step_label(kind: str, name: str) -> str:
    """The path segment of a step, without its number. A model call's has no name: with another model it is still that call."""
    if kind == "model_call":
        return kind
    return f"{kind}:{name.translate(_ESCAPES)}"


_scope: ContextVar[Scope | None] = ContextVar("spanreplay.scope", default=None)


class _Thread(local):
    scope: Scope | None = None


_thread = _Thread()


class _Process:
    """Process-wide state. ``active`` is the one flag that a call looks at when spanreplay is off."""

    __slots__ = ("active", "root")

    def __init__(self) -> None:
        self.active = False
        self.root: Scope | None = None


process: Final = _Process()


of_task: Final[WeakKeyDictionary[Any, Scope]] = WeakKeyDictionary()
"""Scopes of tasks that were given a context of the caller's, which is not ours to write to."""
_of_task: Final[Mapping[Any, Any]] = vars(of_task)["data"]
"""What it is kept in: asking a weak dictionary whether it is empty costs more than the rest of a look at the scope."""


def current_scope() -> Scope | None:
    """The scope in force here, or ``None`` when nothing is recorded or replayed here.

    A job that brings a copied context of its own into a pool thread, or into a task, hides the scope of its fork: the scope of
    the thread or task wins where it lies below the context's.
    """
    scope = _scope.get()
    mine = _thread.scope
    if mine is not None and mine is not scope and (scope is None or mine.is_below(scope)):
        scope = mine
    if _of_task and asyncio._get_running_loop() is not None:
        task = asyncio.current_task()  # there is none in a callback of the loop
        mine = None if task is None else of_task.get(task)
        if mine is not None and mine is not scope and (scope is None or mine.is_below(scope)):
            scope = mine
    return scope if scope is not None else process.root


def enter(scope: Scope | None) -> Token[Scope | None]:
    """Make ``scope`` the one in force in this context."""
    return _scope.set(scope)


def leave(token: Token[Scope | None]) -> None:
    """Undo :func:`enter`, in whatever context this runs."""
    try:
        _scope.reset(token)
    except ValueError:  # a generator closed from another context: there is nothing to undo there
        return


def enter_thread(scope: Scope | None) -> Scope | None:
    """Make ``scope`` the one of this thread; returns what it replaces."""
    before = _thread.scope
    _thread.scope = scope
    return before


in_force: ContextVar[Mapping[str, Any]] = ContextVar("spanreplay.in_force", default=MappingProxyType({}))
"""Attributes that every model call made in this context carries: the prompt in force and its version."""

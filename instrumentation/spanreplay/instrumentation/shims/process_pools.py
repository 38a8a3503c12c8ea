"""Pools of processes: which worker does a job is chance, so every job runs at the place where it was handed over.

That place, and the run that it belongs to, go to the worker with the job. A worker that takes no part just does the job.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import wrapt

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunContext
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.jobs import JOB, named
from spanreplay.instrumentation.shims.threads import label_of

_EXECUTOR: Final = "concurrent.futures.process"
_POOL: Final = "multiprocessing.pool"

_patches = Patches()
_hooked: Final[set[str]] = set()
"""Modules with a post-import hook, which cannot be taken back."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a job was handed over; pickled."""

    path: str
    run_id: str | None
    name: str
    run_path: str
    agent: str | None
    command_id: str | None
    fallback: bool

    def scope(self, root: Scope) -> Scope:
        run = root.run
        if self.run_id is not None:
            run = RunContext(
                run_id=self.run_id,
                name=self.name,
                path=self.run_path,
                agent=self.agent,
                command_id=self.command_id,
                fallback=self.fallback or root.session.mode == "replay",  # there the worker finds out what it is in the record
            )
        return Scope(session=root.session, run=run, path=self.path)


def _here(scope: Scope, function: Callable[..., Any]) -> _Place:
    run, path = scope.run, scope.fork(JOB + label_of(function)).path
    if run is None:
        return _Place(path, None, "", "", None, None, False)
    return _Place(path, run.run_id, run.name, run.path, run.agent, run.command_id, run.fallback)


begun: Final[set[Callable[[str, str], None]]] = set()
"""Told of each job that begins: the path of its run, and where in that it was handed over."""


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job that runs where it was handed over; pickled, as the function was."""

    function: Callable[..., Any]
    place: _Place

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do it."""
        root = scopes.process.root if scopes.process.active else None
        if root is None:
            return self.function(*args, **kwargs)
        scope = self.place.scope(root)
        before = scopes.enter_thread(scope)
        token = scopes.enter(scope)
        for told in begun:
            told(self.place.run_path, self.place.path)
        try:
            return self.function(*args, **kwargs)
        finally:
            scopes.leave(token)
            scopes.enter_thread(before)


@dataclass(frozen=True, slots=True)
class _OfItem:
    """An item of ``map`` with the place that its job runs at."""

    item: Any
    place: _Place


@dataclass(frozen=True, slots=True)
class _Each:
    function: Callable[..., Any]
    star: bool = False

    def __call__(self, given: _OfItem) -> Any:
        job = PlacedJob(self.function, given.place)
        return job(*given.item) if self.star else job(given.item)


def _submitting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        scope = scopes.current_scope() if scopes.process.active else None
        if scope is None:
            return original(self, fn, *args, **kwargs)
        place = _here(scope, fn)
        return named(original(self, PlacedJob(fn, place), *args, **kwargs), place.path)

    return submit


def _scope_for(pool: Any) -> Scope | None:
    if not scopes.process.active or isinstance(pool, sys.modules[_POOL].ThreadPool):
        return None
    return scopes.current_scope()


def _applying(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply_async(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        scope = _scope_for(self)
        return original(self, func if scope is None else PlacedJob(func, _here(scope, func)), *args, **kwargs)

    return apply_async


def _mapping(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def mapping(self: Any, func: Callable[..., Any], iterable: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        scope = _scope_for(self)
        if scope is None:
            return original(self, func, iterable, *args, **kwargs)
        items: Iterable[Any] = _placed(iterable, scope, func)
        if hasattr(iterable, "__len__"):
            items = list(items)
        mapper = args[0] if args and callable(args[0]) else None  # ``_map_async`` is given mapstar or starmapstar
        star = mapper is not None and mapper.__name__ == "starmapstar"
        if star:
            args = (sys.modules[_POOL].mapstar, *args[1:])
        return original(self, _Each(func, star), items, *args, **kwargs)

    return mapping


def _placed(items: Iterable[Any], scope: Scope, function: Callable[..., Any]) -> Iterator[_OfItem]:
    return (_OfItem(item, _here(scope, function)) for item in items)


def _patch(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if not shims._installed:
        return
    if module.__name__ == _EXECUTOR:
        _patches.replace(module.ProcessPoolExecutor, "submit", _submitting)
        return
    _patches.replace(module.Pool, "apply_async", _applying)
    for name in ("_map_async", "imap", "imap_unordered"):
        _patches.replace(module.Pool, name, _mapping)


def install() -> None:
    """Patch pools of processes, when they are there or come."""
    for name in (_EXECUTOR, _POOL):
        if name in sys.modules:
            _patch(sys.modules[name])
        elif name not in _hooked:
            wrapt.register_post_import_hook(_patch, name)
            _hooked.add(name)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()

"""Randomness that a replay can make again: ``uuid``, ``random`` and names of ``tempfile``, from a seed kept with the recorded command.

A uuid comes from the seed, the causal scope and the module that ask for it and how many they have asked for. So it is the same however
tasks and threads are scheduled, and whatever is drawn by what does not run in a replay, or not as often: the body of a tool, a model SDK
that makes a key for each request. ``random`` is seeded once, when it is imported. What a task, a thread or a job of a pool draws comes from
a generator of its own, made from the seed and its causal path, and what a body, an SDK or its transport draws from another one, until the
program seeds ``random`` itself: then all draw from what it has seeded.

Each recorded process takes a seed of its own from the system. A forked child has one that is made from that and from where it was forked,
and a job of a pool of processes one from where it was handed over: no two processes give the same uuid, and a replay's give the same. What
``secrets`` gives stays the system's, as nobody may be able to make a secret again from a record, unless that was asked for; what
``os.urandom`` gives always does.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256, shake_256
from types import FrameType, ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import temporary_names
from spanreplay.instrumentation.shims.jobs import JOB
from spanreplay.instrumentation.shims.own_code import caller
from spanreplay.instrumentation.shims.process_pools import begun

_VERSIONS: Final = {"uuid1": 1, "uuid4": 4, "uuid6": 6, "uuid7": 7, "uuid8": 8}
_DRAWS: Final = (
    "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample", "shuffle", "triangular", "uniform",
    "vonmisesvariate", "weibullvariate",
)  # fmt: skip
_BY_MODULE: Final = ("2-", "3-", "4-")
"""How seeds begin that give each module uuids of its own; from any other, as recordings had once, those of a scope are one sequence."""
_BY_PLACE: Final = ("3-", "4-")
"""How seeds begin from which forked processes and jobs of pools have theirs, and each module that asks ``tempfile`` its own names."""
_BY_TASK: Final = "4-"
"""How a seed begins from which tasks, threads and their jobs each have a generator of ``random``; from any other, all share one."""
_MACHINERY: Final = frozenset({
    "aiohttp", "anthropic", "botocore", "google.api_core", "google.auth", "google.genai", "h11", "h2", "httpcore", "httpcore2", "httpx",
    "httpx2", "openai", "opentelemetry", "requests", "urllib3", "websockets",
})  # fmt: skip
"""Packages whose draws of ``random`` are none of the program: of a request that a replay may not make, of the ids of spans."""
_BODIES_RUN: Final = frozenset({"agent", "handoff"})
"""Kinds of steps whose bodies a replay runs too."""
_OURS: Final = "spanreplay.instrumentation."
_state: Final[dict[str, Any]] = {
    "seed": None,
    "by_module": False,
    "root": None,
    "by_place": False,
    "by_task": False,
    "fresh": False,
    "seeded_by_program": False,
    "secrets": False,
    "blocks": 0,
    "before": None,
    "hooked": False,
    "fork": None,
}
_lock: Final = threading.Lock()


def new_seed() -> str:
    """A seed that nobody else has."""
    return _BY_TASK + os.urandom(16).hex()


def left_out(scope: Scope, name: str = "uuid4") -> None:
    """A library is not asked for what it would have drawn a uuid for: where all draws of a scope are one sequence, that one is passed."""
    if _state["seed"] is not None and not _state["by_module"]:
        scope.next("!" + name)


def _module_of(frame: FrameType) -> str:
    """The name of the module whose code this is; that which runs as a program has the one under which others import it."""
    known = frame.f_globals
    name = known.get("__name__")
    if name == "__main__":
        name = getattr(known.get("__spec__"), "name", None) or os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]  # noqa: PTH119, PTH122
    return str(name)


def _stream(scope: Scope, name: str) -> bytes:
    """16 bytes: the next of this name in this scope. Paths are relative to the run, so the run's own is a part of it."""
    return sha256(f"{_place(scope)}|{name}|{scope.next('!' + name)}".encode("utf-8", "surrogatepass")).digest()[:16]


def _place(scope: Scope) -> str:
    """What no other scope has."""
    run = "" if scope.run is None else scope.run.path
    seed = _state["root"] if _state["by_place"] and JOB in scope.path else _state["seed"]  # any worker may do a job
    return f"{seed}|{run}|{scope.path}"


def _patch_uuid(module: ModuleType, patches: Patches) -> None:
    for name, version in _VERSIONS.items():
        if not hasattr(module, name):
            continue

        def observed(original: Callable[..., Any], name: str = name, version: int = version) -> Callable[..., Any]:
            @functools.wraps(original)
            def made(*args: Any, **kwargs: Any) -> Any:
                scope = here() if _state["seed"] is not None and not args and not kwargs else None
                if scope is None:
                    return original(*args, **kwargs)
                kind = f"{name}@{_module_of(caller())}" if _state["by_module"] else name
                return module.UUID(bytes=_stream(scope, kind), version=version)

            return made

        patches.replace(module, name, observed)


def _patch_random(module: ModuleType, patches: Patches) -> None:
    inside_tools = module.Random()
    make = module.Random

    def observed(original: Callable[..., Any]) -> Callable[..., Any]:
        name = original.__name__
        other = getattr(inside_tools, name)

        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            if _state["seeded_by_program"]:
                return original(*args, **kwargs)
            scope = here()
            if _is_apart(scope):
                return other(*args, **kwargs)
            own = None if scope is None else _own(scope, make)
            return original(*args, **kwargs) if own is None else getattr(own, name)(*args, **kwargs)

        return drawn

    def telling(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def getstate() -> Any:
            scope = None if _state["seeded_by_program"] else here()
            own = None if scope is None else _own(scope, make)
            return original() if own is None else own.getstate()

        return getstate

    def marking(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def by_program(*args: Any, **kwargs: Any) -> Any:
            _state["seeded_by_program"] = True
            return original(*args, **kwargs)

        return by_program

    if _state["fresh"]:
        module.seed(f"spanreplay {_state['seed']}")
    for name in _DRAWS:
        if hasattr(module, name):
            patches.replace(module, name, observed)
    for name in ("seed", "setstate"):
        patches.replace(module, name, marking)
    patches.replace(module, "getstate", telling)
    if not _state["hooked"] and hasattr(os, "register_at_fork"):
        _state["hooked"] = True
        os.register_at_fork(after_in_child=_seed_child)  # behind random's own, which seeds from the system


def _own(scope: Scope, make: Callable[[str], Any]) -> Any:
    """The generator of the task, thread or job around this scope, or of the scope that the program named; ``None`` in none of them.

    Args:
        scope: where is drawn. It remembers what is found, by the seed: a forked process has another.
        make: a generator from a seed.
    """
    seed = _state["seed"]
    if not _state["by_task"] or seed is None:
        return None
    try:
        return scope.memo[seed]
    except KeyError:
        pass
    around: Scope | None = scope
    while around is not None and not around.path.rpartition("/")[2].startswith(("~", "@")):  # paths, as a replay makes forks' scopes anew
        around = around.parent
    found = None
    if around is not None:
        found = around.memo.get(seed) or around.memo.setdefault(seed, make(f"spanreplay {_place(around)}"))
    return scope.memo.setdefault(seed, found)


def _is_apart(scope: Scope | None) -> bool:
    """Whether what draws does not do so in a replay, or not as often: see :data:`_MACHINERY`, and the bodies of steps that are answered."""
    name = str(caller(2).f_globals.get("__name__"))
    step = None if scope is None else scope.step
    if not _state["by_module"]:
        return name.startswith("opentelemetry.") or (step is not None and step.call.kind == "tool_call")
    package, _, rest = name.partition(".")
    if package in _MACHINERY or (package == "google" and f"google.{rest.partition('.')[0]}" in _MACHINERY):
        return True
    return step is not None and step.call.kind not in _BODIES_RUN and not step.call.passed


def _patch_secrets(module: ModuleType, patches: Patches) -> None:
    if not _state["secrets"]:
        return

    class Drawn(module.SystemRandom):  # type: ignore[misc, name-defined]
        """Draws what the system would give from the seed, as uuids are."""

        def randbytes(self, n: int) -> bytes:
            scope = here() if _state["seed"] is not None else None
            if scope is None:
                return bytes(super().randbytes(n))
            return shake_256(_stream(scope, "secrets")).digest(n)

        def getrandbits(self, k: int) -> int:
            if k < 0:
                raise ValueError("number of bits must be non-negative")
            return int.from_bytes(self.randbytes((k + 7) // 8), "big") >> (-k % 8)

        def random(self) -> float:
            return float(self.getrandbits(53)) * 2.0**-53

    drawn = Drawn()
    patches.replace(module, "_sysrand", lambda _: drawn)
    patches.replace(module, "randbits", lambda _: drawn.getrandbits)
    patches.replace(module, "choice", lambda _: drawn.choice)


def _patch_tempfile(module: ModuleType, patches: Patches) -> None:
    def draw(word: str, asks: FrameType) -> tuple[Scope, bytes] | None:
        scope = here() if _state["by_module"] and _state["seed"] is not None else None
        if scope is None:
            return None
        who: FrameType | None = asks
        while _state["by_place"] and who is not None and str(who.f_globals.get("__name__")).startswith(_OURS):
            who = who.f_back
        return scope, _stream(scope, f"{word}@{_module_of(who or asks)}")

    temporary_names.patch(module, patches, draw)


_hooks: Final = Hooks("randomness", {"uuid": _patch_uuid, "random": _patch_random, "secrets": _patch_secrets, "tempfile": _patch_tempfile})


def install(seed: str, *, fresh: bool, secrets: bool = False) -> None:
    """Take randomness from a seed. Idempotent; the first seed counts.

    Args:
        seed: any text.
        fresh: no line of the program has run yet, so that ``random`` may be seeded; otherwise the program may have done so.
        secrets: what the module ``secrets`` gives too: whoever has the seed can make it again.
    """
    if _state["seed"] is None:
        by_module = seed.startswith(_BY_MODULE)
        _state.update(seed=seed, root=seed, by_module=by_module, by_place=seed.startswith(_BY_PLACE))
        _state.update(by_task=seed.startswith(_BY_TASK))
        _state.update(fresh=fresh, seeded_by_program=not fresh, secrets=secrets)
        begun.add(begin_job)
        _hooks.install()


def uninstall() -> None:
    """Leave randomness to the system again."""
    _state["seed"] = None
    begun.discard(begin_job)
    _hooks.uninstall()


@contextmanager
def seeded(seed: str, *, fresh: bool = False) -> Iterator[None]:
    """Uuids are made from a seed in this block, unless they are made from one already; it ends with the last of several at once.

    Args:
        seed: any text.
        fresh: ``random`` too, which goes on after the block as if there had been none.
    """
    with _lock:
        counts = _state["seed"] is None or _state["blocks"] > 0
        if _state["seed"] is None:
            _state["before"] = _random().getstate() if fresh else None
            install(seed, fresh=fresh)
        _state["blocks"] += counts
    try:
        yield
    finally:
        with _lock:
            _state["blocks"] -= counts
            if counts and not _state["blocks"]:
                uninstall()
                if _state["before"] is not None:
                    _random().setstate(_state["before"])


@contextmanager
def untouched() -> Iterator[None]:
    """``random`` goes on after this block as if nothing had been drawn or seeded in it."""
    before = _random().getstate()
    try:
        yield
    finally:
        _random().setstate(before)


def _random() -> ModuleType:
    import random

    return random


def begin_job(run_path: str, path: str) -> None:
    """A job of a pool of processes draws from ``random`` what belongs to its place, whichever worker does it.

    Args:
        run_path: of the run that it belongs to.
        path: where it was handed over.
    """
    if _state["by_place"] and _state["seed"] is not None and _state["fresh"] and not _state["seeded_by_program"]:
        _seed_random(f"spanreplay {_state['root']}|{run_path}|{path}")


def _seed_random(seed: str) -> None:
    random = sys.modules.get("random")
    if random is not None:
        random._inst.seed(seed)  # the function of the module counts as the program's own


def _before_fork() -> None:
    """Reserve the place of a child, from which its seed is made."""
    scope = here() if _state["by_place"] and _state["seed"] is not None else None
    _state["fork"] = None if scope is None else _stream(scope, "fork").hex()


def _in_child() -> None:
    """A forked child is another process: what it draws must not be what its parent draws."""
    if _state["seed"] is None:
        return
    if _state["fork"] is not None:
        _state["seed"] = _state["seed"][:2] + _state["fork"]
    else:
        _state["seed"] = new_seed() if _state["by_module"] else os.urandom(16).hex()


def _seed_child() -> None:
    """``random`` seeds itself from the system in a child, also where the program has seeded it before."""
    if _state["seed"] is None or not _state["fresh"]:
        return
    if _state["fork"] is not None:
        _state["seeded_by_program"] = False
        _seed_random(f"spanreplay {_state['seed']}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)

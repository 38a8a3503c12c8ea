"""Randomness that a replay can make again: ``uuid`` and ``random``, from a seed that is kept with the recorded command.

A uuid comes from the seed, the causal scope that asks for it and how many it has asked for, so that it is the same however tasks and
threads are scheduled, and whatever the body of a tool takes for itself, which does not run in a replay. ``random`` is seeded once, when it
is imported; what a tool's body draws comes from another generator, for the same reason, until the program seeds it itself.

Each recorded process takes a seed of its own from the system, and a forked child leaves it: no two processes give the same uuid. What
``secrets`` gives stays the system's, as nobody may be able to make a secret again from a record, unless that was asked for; what
``os.urandom`` gives always does.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from hashlib import sha256, shake_256
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import here
from spanreplay.boundary.scope import Scope
from spanreplay.instrumentation.hooks import Hooks
from spanreplay.instrumentation.shims.patching import Patches

_VERSIONS: Final = {"uuid1": 1, "uuid4": 4, "uuid6": 6, "uuid7": 7, "uuid8": 8}
_DRAWS: Final = (
    "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample", "shuffle", "triangular", "uniform",
    "vonmisesvariate", "weibullvariate",
)  # fmt: skip
_state: Final[dict[str, Any]] = {"seed": None, "fresh": False, "seeded_by_program": False, "secrets": False}


def _stream(scope: Scope, name: str) -> bytes:
    """16 bytes: the next of this name in this scope. Paths are relative to the run, so the run's own is a part of it."""
    run = "" if scope.run is None else scope.run.path
    return sha256(f"{_state['seed']}|{run}|{scope.path}|{name}|{scope.next('!' + name)}".encode("utf-8", "surrogatepass")).digest()[:16]


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
                return module.UUID(bytes=_stream(scope, name), version=version)

            return made

        patches.replace(module, name, observed)


def _patch_random(module: ModuleType, patches: Patches) -> None:
    inside_tools = module.Random()

    def observed(original: Callable[..., Any]) -> Callable[..., Any]:
        other = getattr(inside_tools, original.__name__)

        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            return other(*args, **kwargs) if _is_apart() else original(*args, **kwargs)

        return drawn

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


def _is_apart() -> bool:
    """Whether what draws does not do so in a replay, or not as often: the body of a tool, the ids of spans."""
    if _state["seeded_by_program"]:
        return False
    if str(sys._getframe(2).f_globals.get("__name__")).startswith("opentelemetry."):
        return True
    scope = here()
    return scope is not None and scope.step is not None and scope.step.call.kind == "tool_call"


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


_hooks: Final = Hooks("randomness", {"uuid": _patch_uuid, "random": _patch_random, "secrets": _patch_secrets})


def install(seed: str, *, fresh: bool, secrets: bool = False) -> None:
    """Take randomness from a seed. Idempotent; the first seed counts.

    Args:
        seed: any text.
        fresh: no line of the program has run yet, so that ``random`` may be seeded; otherwise the program may have done so.
        secrets: what the module ``secrets`` gives too: whoever has the seed can make it again.
    """
    if _state["seed"] is None:
        _state.update(seed=seed, fresh=fresh, seeded_by_program=not fresh, secrets=secrets)
        _hooks.install()


def uninstall() -> None:
    """Leave randomness to the system again."""
    _state["seed"] = None
    _hooks.uninstall()


@contextmanager
def seeded(seed: str, *, fresh: bool = False) -> Iterator[None]:
    """Uuids are made from a seed in this block, unless they are made from one already.

    Args:
        seed: any text.
        fresh: ``random`` too, which goes on after the block as if there had been none.
    """
    if _state["seed"] is not None:
        yield
        return
    with untouched() if fresh else nullcontext():
        install(seed, fresh=fresh)
        try:
            yield
        finally:
            uninstall()


@contextmanager
def untouched() -> Iterator[None]:
    """``random`` goes on after this block as if nothing had been drawn or seeded in it."""
    import random

    before = random.getstate()
    try:
        yield
    finally:
        random.setstate(before)


def _in_child() -> None:
    """A forked child is another process: what it draws must not be what its parent draws."""
    if _state["seed"] is not None:
        _state["seed"] = os.urandom(16).hex()
        random = sys.modules.get("random")
        if random is not None and not _state["seeded_by_program"]:
            random.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

"""Randomness that a replay can make again: ``uuid``, ``random`` and names of ``tempfile``, from a seed kept with the recorded command.

A uuid comes from the seed, the causal scope and the module that ask for it and how many they have asked for. So it is the same however
tasks and threads are scheduled, and whatever is drawn by what does not run in a replay, or not as often: the body of a tool, a model SDK
that makes a key for each request. ``random`` is seeded once, when it is imported; what a body, an SDK or its transport draws comes from
another generator, for the same reason, until the program seeds it itself.

Each recorded process takes a seed of its own from the system, and a forked child leaves it: no two processes give the same uuid. What
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
from spanreplay.instrumentation.shims import temporary_names
from spanreplay.instrumentation.shims.patching import Patches

_VERSIONS: Final = {"uuid1": 1, "uuid4": 4, "uuid6": 6, "uuid7": 7, "uuid8": 8}
_DRAWS: Final = (
    "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample", "shuffle", "triangular", "uniform",
    "vonmisesvariate", "weibullvariate",
)  # fmt: skip
_BY_MODULE: Final = "2-"
"""How a seed begins that gives each module uuids of its own; from any other, as recordings had once, those of a scope are one sequence."""
_MACHINERY: Final = frozenset({
    "aiohttp", "anthropic", "botocore", "google.api_core", "google.auth", "google.genai", "h11", "h2", "httpcore", "httpcore2", "httpx",
    "httpx2", "openai", "opentelemetry", "requests", "urllib3", "websockets",
})  # fmt: skip
"""Packages whose draws of ``random`` are none of the program: of a request that a replay may not make, of the ids of spans."""
_BODIES_RUN: Final = frozenset({"agent", "handoff"})
"""Kinds of steps whose bodies a replay runs too."""
_state: Final[dict[str, Any]] = {
    "seed": None,
    "by_module": False,
    "fresh": False,
    "seeded_by_program": False,
    "secrets": False,
    "blocks": 0,
    "before": None,
}
_lock: Final = threading.Lock()


def new_seed() -> str:
    """A seed that nobody else has."""
    return _BY_MODULE + os.urandom(16).hex()


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
                kind = f"{name}@{_module_of(sys._getframe(1))}" if _state["by_module"] else name
                return module.UUID(bytes=_stream(scope, kind), version=version)

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
    """Whether what draws does not do so in a replay, or not as often: see :data:`_MACHINERY`, and the bodies of steps that are answered."""
    if _state["seeded_by_program"]:
        return False
    name = str(sys._getframe(2).f_globals.get("__name__"))
    scope = here()
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
        return None if scope is None else (scope, _stream(scope, f"{word}@{_module_of(asks)}"))

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
        _state.update(seed=seed, by_module=by_module, fresh=fresh, seeded_by_program=not fresh, secrets=secrets)
        _hooks.install()


def uninstall() -> None:
    """Leave randomness to the system again."""
    _state["seed"] = None
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


def _in_child() -> None:
    """A forked child is another process: what it draws must not be what its parent draws."""
    if _state["seed"] is not None:
        _state["seed"] = new_seed() if _state["by_module"] else os.urandom(16).hex()
        random = sys.modules.get("random")
        if random is not None and not _state["seeded_by_program"]:
            random.seed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

"""Names of temporary files that a replay can give again: those that ``tempfile`` makes for ``mkdtemp`` and the like.

A name comes from the seed, the causal scope and the module that ask for it, as a uuid does. ``tempfile`` itself makes sure that nobody else
has what it makes: it asks for the next name where one is taken, which is another one than was recorded, and is told to the session. Which
folder temporary files lie in is kept with the steps, as a replay has another one.
"""

import functools
import threading
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, Final
from weakref import WeakSet

from spanreplay.boundary.boundary import here
from spanreplay.boundary.orders import Channel
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import Session
from spanreplay.instrumentation.hooks import expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.own_code import caller

FOLDER: Final[Channel] = ("", "", "temporary folder")
"""Where the folder of temporary files is kept, as who came."""
_LENGTH: Final = 8
_told: Final["WeakSet[Session]"] = WeakSet()
"""Sessions that know the folder."""


class _Last(threading.local):
    name = ""


_last: Final = _Last()


def patch(module: ModuleType, patches: Patches, draw: Callable[[str, FrameType], tuple[Scope, bytes] | None]) -> None:
    """Take the names that ``tempfile`` makes from a seed.

    Args:
        module: ``tempfile``.
        patches: to put back what it was.
        draw: gives 16 bytes for a word and who asks, with the scope they are for; ``None`` where nothing is seeded.
    """
    names = getattr(module, "_RandomNameSequence", None)
    expect(names, "__next__", ["self"])
    expect(module, "gettempdir", [])

    def naming(original: Callable[[Any], str]) -> Callable[[Any], str]:
        @functools.wraps(original)
        def __next__(self: Any) -> str:  # noqa: N807 — it stands in for that
            try:
                name = _name(module, str(self.characters), caller(), draw)
            except Exception:  # noqa: BLE001 — telemetry never breaks the agent
                name = None
            return original(self) if name is None else name

        return __next__

    patches.replace(names, "__next__", naming)
    patches.replace(module, "gettempdir", _noting)


def _name(module: ModuleType, characters: str, asks: FrameType, draw: Callable[[str, FrameType], tuple[Scope, bytes] | None]) -> str | None:
    """The next name; ``None`` where it is to come from the system: who looks for a folder that can be written has no file in it."""
    if asks.f_globals is not vars(module) or asks.f_code.co_name == "_get_default_tempdir":
        return None
    program: FrameType | None = asks
    while program is not None and program.f_globals is vars(module):
        program = program.f_back
    attempt = asks.f_locals.get("seq", 0)
    drawn = None if program is None else draw(f"tempfile after {_last.name}" if attempt else "tempfile", program)
    if drawn is None:
        return None
    scope, seed = drawn
    number, name = int.from_bytes(seed, "big"), ""
    for _ in range(_LENGTH):
        number, at = divmod(number, len(characters))
        name += characters[at]
    if attempt and scope.session.on_taken is not None:
        scope.session.on_taken(_last.name, name)
    _last.name = name
    return name


def _noting(original: Callable[[], str]) -> Callable[[], str]:
    @functools.wraps(original)
    def gettempdir() -> str:
        folder = original()
        scope = here()
        if scope is not None and scope.session.orders is not None and scope.session not in _told and isinstance(folder, str):
            _told.add(scope.session)
            scope.session.orders.add(FOLDER, 0, (folder,))
        return folder

    return gettempdir

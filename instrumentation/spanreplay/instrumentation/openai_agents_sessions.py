"""Sessions of the OpenAI Agents SDK: what an agent remembers of a conversation is read and written through the record.

Any object with the methods of ``agents.memory.Session`` can be one, so its class is observed when a run is given it. A replay answers
from the record and opens no database.
"""

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from spanreplay.boundary.boundary import acall, here
from spanreplay.boundary.call import Call, Effect
from spanreplay.content import codec
from spanreplay.instrumentation.framework import attempt
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.untaped import unnamed

_METHODS: Final[Mapping[str, Effect]] = {"get_items": "read", "add_items": "write", "pop_item": "write", "clear_session": "write"}
_MEMORY: Final = ":memory:"

_observed: set[type] = set()
_patches: Final = Patches()


def observe(session: object) -> None:
    """Make the calls of a session's methods steps; ``None`` is no session."""
    owner = type(session)
    if session is None or owner in _observed:
        return
    _observed.add(owner)
    _watch(owner, _patches)


def patch_sqlite(module: ModuleType, patches: Patches) -> None:
    """Observe ``agents.memory.SQLiteSession``, which opens its file when it is made."""
    patches.replace(module.SQLiteSession, "__init__", _opened)
    _watch(module.SQLiteSession, patches)


def forget() -> None:
    """Leave every class as it was."""
    _patches.undo()
    _observed.clear()


def _watch(owner: Any, patches: Patches) -> None:
    for name, effect in _METHODS.items():
        if callable(getattr(owner, name, None)) and not hasattr(getattr(owner, name), "__spanreplay_session__"):
            patches.replace(owner, name, functools.partial(_method, name, effect))


def _opened(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def opened(self: Any, session_id: str, db_path: Any = _MEMORY, *args: Any, **options: Any) -> None:
        scope = here()
        if scope is not None and scope.session.mode == "replay":
            db_path = _MEMORY
        with unnamed():
            original(self, session_id, db_path, *args, **options)

    return opened


def _method(name: str, effect: Effect, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def method(self: Any, *args: Any, **options: Any) -> Any:
        scope = here()
        if scope is None or (scope.step is not None and scope.step.call.kind == "memory"):  # a session around another
            return await original(self, *args, **options)
        asked = {"session": getattr(self, "session_id", None), "arguments": list(args)}
        asked |= {key: value for key, value in options.items() if key != "wrapper"}  # the run's own context
        made = attempt(scope, f"what {name} was given", lambda: Call(kind="memory", name=name, input=codec.encode(asked), effect=effect))
        if made is None:
            return await original(self, *args, **options)

        async def invoke() -> Any:
            with unnamed():
                return await original(self, *args, **options)

        return await acall(scope, made, invoke)

    method.__spanreplay_session__ = True  # type: ignore[attr-defined]
    return method

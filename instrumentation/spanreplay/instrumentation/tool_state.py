"""State that a framework hands to its tools: what a tool changes in it is kept with its call, and changed again by a replay.

Of a dictionary its members, of any other object its attributes, count where they can be kept exactly: numbers, texts, containers, models
and dataclasses of them. Clients, connections and the like are left alone.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec

RESULT: Final = "result"
_LEFT: Final = "spanreplay_left"
"""Attribute of an exception while it is recorded: what the tool that raised it had changed."""
_LONGEST: Final = 262_144
"""Characters of a member above which it is left alone: it is written out before and after each call."""


@dataclass(frozen=True, slots=True)
class ToolState:
    """The state of one framework.

    Args:
        name: what it is called there; beside the result of a tool that changed it.
        without: members that the framework itself sees to.
    """

    name: str
    without: Collection[str] = ()

    def call(self, scope: Scope, made: Call, invoke: Callable[[], Any], holder: Any) -> Any:
        """Make a call of a tool, see :func:`spanreplay.boundary.boundary.call`; a replay changes what it changed.

        Args:
            scope: where it is made.
            made: the call.
            invoke: runs the tool.
            holder: the state that the tool is handed.
        """
        if holder is None and scope.session.mode == "record":  # there is nothing that could have been changed
            return self.result_of(boundary.call(scope, made, invoke))

        def body() -> Any:
            before = self.of(holder)
            with self.left(before, holder):
                return self.kept(invoke(), before, holder)

        with self.raised(scope, holder):
            value = boundary.call(scope, made, body)
        return self._given(scope, value, holder)

    async def acall(self, scope: Scope, made: Call, invoke: Callable[[], Awaitable[Any]], holder: Any) -> Any:
        """Make an asynchronous call, as :meth:`call` does."""
        if holder is None and scope.session.mode == "record":  # there is nothing that could have been changed
            return self.result_of(await boundary.acall(scope, made, invoke))

        async def body() -> Any:
            before = self.of(holder)
            with self.left(before, holder):
                return self.kept(await invoke(), before, holder)

        with self.raised(scope, holder):
            value = await boundary.acall(scope, made, body)
        return self._given(scope, value, holder)

    def _given(self, scope: Scope, value: Any, holder: Any) -> Any:
        return self.restored(value, holder) if scope.session.mode == "replay" else self.result_of(value)

    def of(self, holder: Any) -> dict[str, str] | None:
        """The members that can be kept, as texts of the typed codec; ``None`` where there can be none."""
        if holder is None or isinstance(holder, str | bytes | int | float | tuple):
            return None
        named = {name: value for name, value in _members(holder).items() if isinstance(name, str) and name not in self.without}
        found = {name: codec.encode(value) for name, value in named.items()}
        return {name: kept.text for name, kept in found.items() if not kept.lossy and len(kept.text) <= _LONGEST}

    def kept(self, result: Any, before: Mapping[str, str] | None, holder: Any) -> Any:
        """The result of a tool, and beside it what it changed, where it did.

        Args:
            result: what the tool returned.
            before: the state before it ran.
            holder: the state as it left it.
        """
        told = self.changes(before, holder)
        return result if told is None else {RESULT: result, self.name: told}

    def changes(self, before: Mapping[str, str] | None, holder: Any) -> dict[str, dict[str, Any]] | None:
        """What was changed since, ``before`` and ``after``; ``None`` where nothing was."""
        after = None if before is None else self.of(holder)
        if before is None or after is None:
            return None
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if not changed:
            return None
        return {
            when: {name: codec.decode(texts[name]) for name in changed if name in texts}
            for when, texts in (("before", before), ("after", after))
        }

    def restored(self, value: Any, holder: Any) -> Any:
        """The result of a recorded call; what it changed is changed in ``holder``."""
        if not self._stands_beside(value):
            return value
        self.change(value[self.name], holder)
        return value[RESULT]

    def change(self, told: Mapping[str, Mapping[str, Any]], holder: Any) -> None:
        """Change in ``holder`` what :meth:`changes` told."""
        for name in told["before"].keys() - told["after"].keys():
            if isinstance(holder, dict):
                holder.pop(name, None)
        for name, after in told["after"].items():
            _set(holder, name, after)

    def result_of(self, value: Any) -> Any:
        """The result alone, of a call that was made now."""
        return value[RESULT] if self._stands_beside(value) else value

    @contextmanager
    def left(self, before: Mapping[str, str] | None, holder: Any, also: Callable[[], Any] = lambda: None) -> Iterator[None]:
        """Around a tool: what it changed before it raised is kept with what it raised.

        Args:
            before: the state before it ran.
            holder: the state as it left it.
            also: what else it left behind.
        """
        try:
            yield
        except Exception as error:
            with suppress(Exception):  # classes of any kind
                left = also()
                kept = self.kept(left, before, holder)
                if kept is not None:
                    setattr(error, _LEFT, kept)
            raise

    @contextmanager
    def raised(self, scope: Scope, holder: Any, also: Callable[[Any], None] = lambda _: None) -> Iterator[None]:
        """Around the call: what a tool that raised had changed is changed again in a replay.

        Args:
            scope: where it is made.
            holder: the state that the tool is handed.
            also: is given what else it left behind.
        """
        try:
            yield
        except Exception as error:
            kept = getattr(error, "__dict__", {}).pop(_LEFT, None)
            if kept is not None and scope.session.mode == "replay":
                also(self.restored(kept, holder))
            raise

    def _stands_beside(self, value: Any) -> bool:
        return isinstance(value, dict) and value.keys() == {RESULT, self.name}


def _members(holder: Any) -> Mapping[Any, Any]:
    if isinstance(holder, dict):
        return dict(holder)
    if dataclasses.is_dataclass(holder):
        return {field.name: getattr(holder, field.name, None) for field in dataclasses.fields(holder)}
    return {name: value for name, value in getattr(holder, "__dict__", {}).items() if not name.startswith("_")}


def _set(holder: Any, name: str, value: Any) -> None:
    now: Any = holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)
    if type(now) is type(value) and isinstance(now, list | dict | set):  # others hold it too
        now.clear()
        (now.extend if isinstance(now, list) else now.update)(value)
    elif isinstance(holder, dict):
        holder[name] = value
    else:
        with suppress(Exception):  # frozen: what it holds is as it was
            setattr(holder, name, value)

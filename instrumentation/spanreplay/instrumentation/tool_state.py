"""State that a framework hands to its tools: what a tool changes in it is kept with its call, and changed again by a replay.

Of a dictionary its members, of any other object its attributes, count where they can be kept exactly: numbers, texts, containers, models
and dataclasses of them. Clients, connections and the like are left alone.
"""

import dataclasses
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.content import codec

RESULT: Final = "result"
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
        after = None if before is None else self.of(holder)
        if before is None or after is None:
            return result
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if not changed:
            return result
        told = {
            when: {name: codec.decode(texts[name]) for name in changed if name in texts}
            for when, texts in (("before", before), ("after", after))
        }
        return {RESULT: result, self.name: told}

    def restored(self, value: Any, holder: Any) -> Any:
        """The result of a recorded call; what it changed is changed in ``holder``."""
        if not self._stands_beside(value):
            return value
        told = value[self.name]
        for name in told["before"].keys() - told["after"].keys():
            if isinstance(holder, dict):
                holder.pop(name, None)
        for name, after in told["after"].items():
            _set(holder, name, after)
        return value[RESULT]

    def result_of(self, value: Any) -> Any:
        """The result alone, of a call that was made now."""
        return value[RESULT] if self._stands_beside(value) else value

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

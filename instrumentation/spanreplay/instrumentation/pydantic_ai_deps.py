"""``ctx.deps`` of Pydantic AI: what a tool changes in it is kept with its call, and changed again by a replay, which does not run the tool.

Of a dictionary its members, of any other object its attributes, count where they can be kept exactly: numbers, texts, containers, models
and dataclasses of them. Clients, connections and the like are left alone.
"""

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from spanreplay.content import codec

RESULT: Final = "result"
CHANGED: Final = "ctx.deps"
_LONGEST: Final = 262_144
"""Characters of a member above which it is left alone: it is written out before and after each call."""


def state(deps: Any) -> dict[str, str] | None:
    """The members of ``deps`` that can be kept, as texts of the typed codec; ``None`` where it can have none."""
    if deps is None or isinstance(deps, str | bytes | int | float | tuple):
        return None
    found = {name: codec.encode(value) for name, value in _members(deps).items() if isinstance(name, str)}
    return {name: kept.text for name, kept in found.items() if not kept.lossy and len(kept.text) <= _LONGEST}


def _members(deps: Any) -> Mapping[Any, Any]:
    if isinstance(deps, dict):
        return dict(deps)
    if dataclasses.is_dataclass(deps):
        return {field.name: getattr(deps, field.name, None) for field in dataclasses.fields(deps)}
    return {name: value for name, value in getattr(deps, "__dict__", {}).items() if not name.startswith("_")}


def kept(result: Any, before: Mapping[str, str] | None, deps: Any) -> Any:
    """The result of a tool, and beside it what it changed in ``deps``, where it did.

    Args:
        result: what the tool returned.
        before: the state before it ran.
        deps: as it left them.
    """
    after = None if before is None else state(deps)
    if before is None or after is None:
        return result
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not changed:
        return result
    told = {
        when: {name: codec.decode(texts[name]) for name in changed if name in texts}
        for when, texts in (("before", before), ("after", after))
    }
    return {RESULT: result, CHANGED: told}


def restored(value: Any, deps: Any) -> Any:
    """The result of a recorded call; what it changed is changed in ``deps``."""
    if not isinstance(value, dict) or value.keys() != {RESULT, CHANGED}:
        return value
    told = value[CHANGED]
    for name in told["before"].keys() - told["after"].keys():
        if isinstance(deps, dict):
            deps.pop(name, None)
    for name, after in told["after"].items():
        _set(deps, name, after)
    return value[RESULT]


def _set(deps: Any, name: str, value: Any) -> None:
    now: Any = deps.get(name) if isinstance(deps, dict) else getattr(deps, name, None)
    if type(now) is type(value) and isinstance(now, list | dict | set):  # others hold it too
        now.clear()
        (now.extend if isinstance(now, list) else now.update)(value)
    elif isinstance(deps, dict):
        deps[name] = value
    else:
        with suppress(Exception):  # frozen: what it holds is as it was
            setattr(deps, name, value)


def result_of(value: Any) -> Any:
    """The result alone, of a call that was made now."""
    return value[RESULT] if isinstance(value, dict) and value.keys() == {RESULT, CHANGED} else value

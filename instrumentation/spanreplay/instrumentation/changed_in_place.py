"""What a plain tool changes in place: lists, dictionaries and sets that it was given, and plain attributes of its own object.

It is kept with the call, as it was before and as the tool left it, and changed again where a replay answers the call. What the agent itself
has changed meanwhile is left alone: then nothing tells whose change is whose.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from spanreplay.content import codec

Texts: TypeAlias = dict[str, str]

_CONTAINERS: Final = frozenset({list, dict, set})
_GROUPS: Final = frozenset({list, set, tuple, frozenset})
_PLAIN: Final = frozenset({*_CONTAINERS, bool, int, float, str, type(None)})
_LONGEST: Final = 65_536
"""Characters of a value above which it is left alone: it is written out before and after each call."""
_COMPARED: Final = 500
"""Items of a list that are looked for among what it held; of a longer one only those at the same place."""
_REDACTED: Final = "[redacted:"
_REMEMBERED: Final = 4_096
_given: OrderedDict[tuple[int, str], Any] = OrderedDict()
"""What was made of a value by the last replayed call that changed it, as a tree."""


class Held:
    """What one call of a tool may change.

    Args:
        arguments: of the call, by name.
        own: the object whose method the tool is, if it is one.
    """

    __slots__ = ("_arguments", "_before", "_had", "_own")

    def __init__(self, arguments: Mapping[str, Any], own: object = None) -> None:
        self._arguments = {name: value for name, value in arguments.items() if type(value) in _CONTAINERS}
        self._own = own if isinstance(getattr(own, "__dict__", None), dict) and not isinstance(own, type) else None
        self._before: dict[str, Texts] | None = None
        self._had: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._arguments) or self._own is not None

    def begin(self) -> None:
        """The tool begins to run."""
        with suppress(Exception):  # objects of any kind
            places = dict(self._places())
            self._had = {place: set(members) for place, members in places.items()}
            self._before = {place: _texts(members) for place, members in places.items()}

    def left(self) -> str | None:
        """What it has changed since, ``before`` and ``after`` by ``arguments`` and ``self``, as typed JSON; ``None`` where nothing."""
        if self._before is None:
            return None
        with suppress(Exception):  # objects of any kind
            told = {}
            for place, members in self._places():
                before, after = self._before.get(place, {}), _texts(members)
                changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
                known = [name for name in changed if name in before or name not in self._had[place]]
                kept = [name for name in known if name in after or name not in members]  # else it cannot be kept, before or after
                if kept:
                    told[place] = f'{{"after":{_joined(after, kept)},"before":{_joined(before, kept)}}}'
            return "{" + ",".join(f"{json.dumps(place)}:{text}" for place, text in told.items()) + "}" if told else None
        return None

    def change(self, left: str) -> list[str]:
        """Change what :meth:`left` told; gives the names of what was left alone."""
        told = json.loads(left)
        alone: list[str] = []
        for place, members in self._places():
            found = told.get(place)
            if not isinstance(found, dict):
                continue
            before, after = found["before"], found["after"]
            names = [name for name in {**before, **after} if not self._change(members, name, before, after)]
            alone += [f"{place}.{name}" for name in names]
        return alone

    def _change(self, members: Mapping[str, Any], name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        now = members.get(name)
        key = (id(now), "") if type(now) in _CONTAINERS else (id(self._own), name)
        there = name in members
        seen = json.loads(codec.encode(now).text) if there else None
        as_before = there == (name in before) and (not there or seen == before[name])
        if not as_before and (key not in _given or seen != _given[key]):
            return False
        attributes = vars(self._own) if members is not self._arguments else None  # written to as it is: no setter of the agent's runs
        if name in after and _REDACTED in json.dumps(after[name]):
            return False
        if name not in after:
            return attributes is not None and attributes.pop(name, self) is not self
        value = codec.decode(json.dumps(after[name]))
        if there and type(now) is type(value) and type(now) in _CONTAINERS:
            _become(now, value)
        elif attributes is not None:
            attributes[name] = value
        else:
            return False
        _given[key] = after[name]
        _given.move_to_end(key)
        while len(_given) > _REMEMBERED:
            _given.popitem(last=False)
        return True

    def _places(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield "arguments", self._arguments
        if self._own is not None:
            yield "self", dict(vars(self._own))


def _texts(members: Mapping[str, Any]) -> Texts:
    found = {}
    for name, value in members.items():
        if type(value) in _PLAIN and _is_short(value):
            kept = codec.encode(value)
            if not kept.lossy and len(kept.text) <= _LONGEST:
                found[name] = kept.text
    return found


def _is_short(value: Any) -> bool:
    """Whether a value is not surely above the limit: what is, is not written out to find that."""
    waiting, room = [value], _LONGEST
    while waiting and room > 0:
        item = waiting.pop()
        kind = type(item)
        room -= len(item) + 2 if kind is str or kind is bytes else 1
        if kind is dict:
            room -= len(item)
            if room > 0:
                waiting += item.keys()
                waiting += item.values()
        elif kind in _GROUPS:
            room -= len(item)
            if room > 0:
                waiting += item
    return room > 0


def _joined(texts: Texts, names: list[str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{texts[name]}" for name in names if name in texts) + "}"


def _become(now: Any, after: Any) -> None:
    """Make a container what another one is, with the very objects that it holds already where they are equal: others may hold them too."""
    if isinstance(now, list):
        now[:] = _items(list(now), after)
    elif isinstance(now, dict):
        made = {key: _member(now[key], value) if key in now else value for key, value in after.items()}
        now.clear()
        now.update(made)
    else:
        now.intersection_update(after)
        now.update(after)


def _member(now: Any, after: Any) -> Any:
    if type(now) is type(after) and type(now) in _CONTAINERS:
        _become(now, after)
        return now
    return now if type(now) is type(after) and now == after else after


def _items(old: list[Any], after: list[Any]) -> list[Any]:
    free = dict(enumerate(old))
    made: dict[int, Any] = {}
    for at, value in enumerate(after):
        if at in free and type(free[at]) is type(value) and free[at] == value:
            made[at] = free.pop(at)
    for at, value in enumerate(after) if max(len(old), len(after)) <= _COMPARED else ():
        if at not in made:
            same = next((place for place, item in free.items() if type(item) is type(value) and item == value), None)
            if same is not None:
                made[at] = free.pop(same)
    for at, value in enumerate(after):
        if at not in made:
            made[at] = _member(free.pop(at), value) if at in free and len(old) == len(after) else value
    return [made[at] for at in range(len(after))]

"""Attributes that are one value, written one attribute a leaf: ``llm.input_messages.0.message.role`` and its siblings, put together again.

Numbers in names are places in a list. They are sorted as numbers, and one that is missing is missing: nothing moves up to take its place.
"""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import jsonable
from spanreplay.spans.record import Value

Node = dict[str, Json]
"""Leaves and further nodes, by the next part of the name."""

LEAF: Final = ""
"""The key of a value that has both a value and members of its own."""
_DEPTH: Final = 16
"""Parts of a name that are taken apart; what follows stays one name."""


def unflattened(attributes: Mapping[str, Value], *prefixes: str) -> dict[str, Node]:
    """What is written under each of some prefixes.

    Args:
        attributes: of a span.
        prefixes: names without the dot that follows.
    """
    found: dict[str, Node] = {prefix: {} for prefix in prefixes}
    for name, value in attributes.items():
        if value is None:
            continue
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in (".", "")), None)
        if prefix is None:
            continue
        whole = jsonable(value)
        if name == prefix and isinstance(whole, list) and any(isinstance(item, dict) for item in whole):
            whole = {str(place): item for place, item in enumerate(whole)}
        _put_all(found[prefix], name[len(prefix) + 1 :], whole)
    return found


def _put_all(node: Node, name: str, value: Json) -> None:
    """Back ends that take attributes apart themselves leave lists of objects, whose names may have dots in turn."""
    if isinstance(value, dict) and name.count(".") < _DEPTH:
        for key, member in value.items():
            _put_all(node, f"{name}.{key}" if name else key, member)
    else:
        _put(node, name.split(".", _DEPTH), value)


def _put(node: Node, path: list[str], value: Json) -> None:
    for part in path[:-1]:
        inner = node.get(part)
        if not isinstance(inner, dict):
            inner = {} if inner is None else {LEAF: inner}
            node[part] = inner
        node = inner
    last = path[-1]
    if isinstance(node.get(last), dict):
        node[last][LEAF] = value
    else:
        node[last] = value


def leaf(node: Mapping[str, Json], name: str) -> Json:
    """A member's own value; ``None`` where it has none."""
    value = node.get(name)
    return value.get(LEAF) if isinstance(value, dict) else value


def inner(node: Mapping[str, Json], name: str) -> Node:
    """A member's members; none where it has none."""
    value = node.get(name)
    return value if isinstance(value, dict) else {}


def items(node: Mapping[str, Json]) -> list[tuple[int, Json]]:
    """The members that are numbers, in the order of the numbers, each with its own."""
    return sorted(((int(name), value) for name, value in node.items() if name.isdecimal() and len(name) < 10), key=lambda pair: pair[0])


def listed(node: Mapping[str, Json]) -> list[Node]:
    """The members of a list that are nodes, in order."""
    return [value for _, value in items(node) if isinstance(value, dict)]


def gaps(node: Mapping[str, Json]) -> list[int]:
    """The numbers that are missing between the first and the last."""
    there = [place for place, _ in items(node)]
    return [] if not there or there[-1] - there[0] > 10_000 else sorted(set(range(there[0], there[-1])) - set(there))

"""Neighbouring records of equal resource and scope, as OTLP groups them."""

import json
from collections.abc import Iterable
from typing import TypeVar

from spanreplay.spans._anyvalue import write_attributes
from spanreplay.spans.record import LogRecord, Resource, Scope, SpanRecord

_R = TypeVar("_R", SpanRecord, LogRecord)


def consecutive(records: Iterable[_R]) -> list[tuple[Resource, list[tuple[Scope, list[_R]]]]]:
    """Groups records that follow each other, so that the order of the whole is kept.

    Equality is that of the OTLP values: ``1``, ``1.0`` and ``True`` differ, as do attributes in another order.
    """
    groups: list[tuple[Resource, list[tuple[Scope, list[_R]]]]] = []
    key = _Keys()
    last_resource = last_scope = None
    for record in records:
        resource, scope = key.of(record.resource), key.of(record.scope)
        if resource != last_resource:
            groups.append((record.resource, []))
            last_scope = None
        if scope != last_scope:
            groups[-1][1].append((record.scope, []))
        groups[-1][1][-1][1].append(record)
        last_resource, last_scope = resource, scope
    return groups


class _Keys:
    """The comparable text of a resource or scope, made once for each object."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Resource | Scope, str]] = {}

    def of(self, owner: Resource | Scope) -> str:
        # The object is kept beside its text, so that its id is not given to another one meanwhile.
        kept = self._made.get(id(owner))
        if kept is None:
            named = (owner.name, owner.version) if isinstance(owner, Scope) else ()
            parts = [named, owner.schema_url, owner.dropped_attributes, write_attributes(owner.attributes, [])]
            kept = self._made[id(owner)] = (owner, json.dumps(parts))
        return kept[1]

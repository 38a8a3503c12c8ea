"""OTLP JSON documents one after the other, as the Collector writes them: plain ones, with resources and scopes in common.

Gives the same as :mod:`spanreplay.spans.otlp_json`, which also says what is read.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from spanreplay.spans._json_records import read_span
from spanreplay.spans._plain_json import PlainDocument, read_plain
from spanreplay.spans.errors import Problem, Problems
from spanreplay.spans.otlp_json import decode_one, read_resource, read_scope
from spanreplay.spans.record import Record, Resource, Scope

__all__ = ["PlainDocument", "PlainDocuments"]

_HEADS: Final = 1024
_HEAD_BYTES: Final = 65_536
"""How many resources and scopes are remembered, and of which size."""

_Head = TypeVar("_Head", Resource, Scope)
_encode: Final = msgspec.json.Encoder().encode


class PlainDocuments:
    """Reads the spans of plain documents. Equal resources, and equal scopes, are one object.

    Args:
        problems: told about everything left out or altered, before the next record is given.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._resources: dict[bytes, Resource] = {}
        self._scopes: dict[bytes, Scope] = {}

    def decode(self, document: PlainDocument, where: str = "") -> Iterator[Record]:
        """The spans of a document, in its order.

        Args:
            document: the document.
            where: names it in problems, such as ``trace.json line 3``.
        """
        prefix = f"{where}: resourceSpans" if where else "resourceSpans"
        for number, group in enumerate(document.groups):
            path = f"{prefix}[{number}]"
            resource = self._head(self._resources, read_resource, {"resource": group.resource, "schemaUrl": group.schema_url}, path)
            for place, scoped in enumerate(group.scope_spans):
                scope_path = f"{path}.scopeSpans[{place}]"
                scope = self._head(self._scopes, read_scope, {"scope": scoped.scope, "schemaUrl": scoped.schema_url}, scope_path)
                for index, span in enumerate(scoped.spans):
                    record: Record | None = read_plain(span, resource, scope)
                    if record is None:
                        raw = document.raw_span(number, place, index)
                        record = decode_one(raw, f"{scope_path}.spans[{index}]", resource, scope, read_span, self._problems)
                    if record is not None:
                        yield record

    def _head(
        self, known: dict[bytes, _Head], read: Callable[[dict[str, Any], str, Problems], _Head], group: dict[str, Any], path: str
    ) -> _Head:
        """The resource or scope of a group; it is read again where there is something to tell about it."""
        key = _encode(group)
        found = known.get(key)
        if found is None:
            told: list[Problem] = []
            found = read(group, path, told.append)
            for problem in told:
                self._problems(problem)
            if not told and len(key) <= _HEAD_BYTES:
                if len(known) >= _HEADS:
                    known.clear()
                known[key] = found
        return found

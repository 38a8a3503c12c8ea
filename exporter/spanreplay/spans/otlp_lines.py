"""OTLP JSON documents one after the other, as the Collector writes them: plain ones, with resources and scopes in common.

Gives the same as :mod:`spanreplay.spans.otlp_json`, which also says what is read.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from spanreplay.spans._heads import Heads
from spanreplay.spans._json_records import read_span
from spanreplay.spans._plain_json import PlainDocument, read_plain
from spanreplay.spans.errors import Problems
from spanreplay.spans.otlp_json import decode_one, read_resource, read_scope
from spanreplay.spans.record import Record

__all__ = ["PlainDocument", "PlainDocuments"]

_encode: Final = msgspec.json.Encoder().encode


class PlainDocuments:
    """Reads the spans of plain documents. Equal resources, and equal scopes, are one object.

    Args:
        problems: told about everything left out or altered, before the next record is given.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._heads = Heads()

    def decode(self, document: PlainDocument, where: str = "") -> Iterator[Record]:
        """The spans of a document, in its order.

        Args:
            document: the document.
            where: names it in problems, such as ``trace.json line 3``.
        """
        prefix = f"{where}: resourceSpans" if where else "resourceSpans"
        for number, group in enumerate(document.groups):
            path = f"{prefix}[{number}]"
            head = {"resource": group.resource, "schemaUrl": group.schema_url}
            resource = self._heads.resources.get(_encode(head), partial(read_resource, head, path), self._problems)
            for place, scoped in enumerate(group.scope_spans):
                scope_path = f"{path}.scopeSpans[{place}]"
                head = {"scope": scoped.scope, "schemaUrl": scoped.schema_url}
                scope = self._heads.scopes.get(_encode(head), partial(read_scope, head, scope_path), self._problems)
                for index, span in enumerate(scoped.spans):
                    record: Record | None = read_plain(span, resource, scope)
                    if record is None:
                        raw = document.raw_span(number, place, index)
                        record = decode_one(raw, f"{scope_path}.spans[{index}]", resource, scope, read_span, self._problems)
                    if record is not None:
                        yield record

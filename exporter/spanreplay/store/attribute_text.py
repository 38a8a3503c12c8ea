"""The JSON text of attributes, put together from remembered pieces: most of what a span says, the one before it said too."""

from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import Final

from spanreplay.spans.record import Value
from spanreplay.store.encoding import BLOB_BYTES, Keep, encode_map, encode_value, to_json

_PIECES: Final = 4_096
_LARGE_INT: Final = 2**63


class AttributeText:
    """Writes attributes as ``to_json(encode_map(…))`` does.

    Args:
        keep: gets the long content; see :func:`spanreplay.store.encoding.encode_map`.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._names: dict[str, str] = {}
        self._pieces: dict[tuple[str, str], str] = {}

    def text(self, attributes: Mapping[str, Value]) -> str:
        """The JSON object.

        Raises:
            ContentLostError: ``keep`` could not keep something.
            UnencodableError: nested deeper than 100.
        """
        names, pieces = self._names, self._pieces
        parts: list[str] = []
        for key, value in attributes.items():
            kind = type(value)
            if kind is str:
                piece = pieces.get((key, value))  # type: ignore[arg-type]
                if piece is not None:
                    parts.append(piece)
                    continue
            name = names.get(key) or self._name(key)
            if name is None:
                return to_json(encode_map(attributes, self._keep))
            if kind is int and -_LARGE_INT < value < _LARGE_INT:  # type: ignore[operator]
                parts.append(f"{name}{value:d}")  # type: ignore[str-bytes-safe]
            elif kind is str:
                parts.append(self._piece(name, key, value))  # type: ignore[arg-type]
            else:
                parts.append(name + to_json(encode_value(value, self._keep, 1)))
        return "{" + ",".join(parts) + "}"

    def _name(self, key: object) -> str | None:
        """A key as it stands before its value; ``None`` for one that a plain JSON object cannot have."""
        if type(key) is not str or key[:1] == "$" or not key.isascii():
            return None
        name = quoted(key) + ":"
        if len(self._names) < _PIECES:
            self._names[key] = name
        return name

    def _piece(self, name: str, key: str, value: str) -> str:
        if len(value) >= BLOB_BYTES:
            return f'{name}{{"$blob":"{self._keep(value)}"}}'
        if not value.isascii():
            return name + to_json(encode_value(value, self._keep, 1))
        if len(self._pieces) >= _PIECES:
            self._pieces.clear()
        piece = self._pieces[key, value] = name + quoted(value)
        return piece

"""The JSON text of attributes, put together from remembered pieces: most of what a span says, the one before it said too."""

from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final

from spanreplay.content.redaction import Redactor
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
        self._clean: dict[tuple[str, Any], str] = {}
        self._clean_by: tuple[Redactor | None, object] = (None, None)

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

    def clean(self, attributes: Mapping[str, Any], redactor: Redactor | None) -> list[str] | None:
        """The members of the JSON object, of attributes as somebody else has given them.

        Args:
            attributes: any values.
            redactor: knows what is a secret; ``None``: nothing is.

        Returns:
            ``None`` where one of them has a secret, or is of a kind that takes more than this; some long content may be kept all the same.

        Raises:
            ContentLostError: ``keep`` could not keep something.
        """
        state = (redactor, None if redactor is None else redactor.knowledge)
        if state[0] is not self._clean_by[0] or state[1] is not self._clean_by[1] or len(self._clean) >= _PIECES:
            self._clean, self._clean_by = {}, state
        known = self._clean
        parts: list[str] = []
        for key, value in attributes.items():
            kind = type(value)
            if kind is str:
                if len(value) >= BLOB_BYTES:
                    name = self._names.get(key) or self._name(key)
                    if name is None or (redactor is not None and redactor.named(key, value)[1]):
                        return None
                    parts.append(f'{name}{{"$blob":"{self._keep(value)}"}}')
                    continue
            elif kind is int:
                name = self._names.get(key) or self._name(key)
                if name is None or not -_LARGE_INT < value < _LARGE_INT:
                    return None
                parts.append(f"{name}{value:d}")
                continue
            elif kind is tuple:
                if not all(type(item) is str for item in value):
                    return None
            elif kind is not bool and kind is not float:
                return None
            piece = known.get((key, value)) if kind is str or kind is tuple else None
            if piece is None:
                piece = self._clean_piece(key, value, kind, redactor)
                if piece is None:
                    return None
            parts.append(piece)
        return parts

    def _clean_piece(self, key: str, value: Any, kind: type, redactor: Redactor | None) -> str | None:
        name = self._names.get(key) or self._name(key)
        if name is None:
            return None
        if redactor is not None:
            if kind is str and redactor.named(key, value)[1]:
                return None
            if kind is tuple and any(redactor.named(key, item)[1] for item in value):
                return None
        piece = name + to_json(encode_value(value, self._keep, 1))
        if kind is str or (kind is tuple and sum(map(len, value)) < BLOB_BYTES):
            self._clean[key, value] = piece
        return piece

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

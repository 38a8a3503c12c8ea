"""The JSON text of attributes. What others say is put together from remembered pieces: most of it, the span before said too."""

from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final

from spanreplay.content.redaction import Redactor
from spanreplay.spans.record import Value
from spanreplay.store.encoding import BLOB_BYTES, Keep, encode_map, encode_value, to_json

_PIECES: Final = 4_096
_LARGE_INT: Final = 2**63


class _OutOfTheOrdinaryError(Exception):
    """Attributes have a secret, or something else that takes more than this."""


class _Members(dict[tuple[str, Any], str]):
    """Members of JSON objects by name and value; what is not there is made. One call looks up all that a span says.

    Of equal values only texts, and tuples of texts, are equal in JSON: nothing else is to be put there.

    Args:
        make: makes a member, and puts it there if that is of use.
        redactor: has found them clean, as long as it knows no more than this.
    """

    __slots__ = ("_make", "knowledge", "names", "redactor")

    def __init__(self, make: "Callable[[_Members, str, Any], str]", redactor: Redactor | None) -> None:
        self._make = make
        self.redactor = redactor
        self.knowledge = None if redactor is None else redactor.knowledge
        self.names: dict[str, str] = {}
        """Keys that are clean, as they stand before their values."""

    def __missing__(self, item: tuple[str, Any]) -> str:
        return self._make(self, *item)


class AttributeText:
    """Writes attributes as ``to_json(encode_map(…))`` does.

    Args:
        keep: gets the long content; see :func:`spanreplay.store.encoding.encode_map`.
        refer: gets long texts of others, and gives the JSON of a reference; without, they are kept as the rest is.
    """

    def __init__(self, keep: Keep, refer: Callable[[str], str] | None = None) -> None:
        self._keep = keep
        self._refer = refer or (lambda content: f'{{"$blob":"{keep(content)}"}}')
        self._names: dict[str, str] = {}
        self._clean = _Members(self._clean_member, None)

    def text(self, attributes: Mapping[str, Value]) -> str:
        """The JSON object.

        Raises:
            ContentLostError: ``keep`` could not keep something.
            UnencodableError: nested deeper than 100.
        """
        names = self._names
        parts: list[str] = []
        for key, value in attributes.items():
            kind = type(value)
            name = names.get(key) or self._name(key)
            if name is None:
                return to_json(encode_map(attributes, self._keep))
            if kind is str:
                text: str = value  # type: ignore[assignment]
                if len(text) >= BLOB_BYTES:
                    parts.append(name + self._refer(text))
                elif text.isascii():  # a memory of what was written before is cold when the next step looks: writing it takes less
                    parts.append(name + quoted(text))
                else:
                    parts.append(name + to_json(encode_value(text, self._keep, 1)))
            elif kind is int and -_LARGE_INT < value < _LARGE_INT:  # type: ignore[operator]
                parts.append(f"{name}{value:d}")  # type: ignore[str-bytes-safe]
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
        known = self._clean
        if known.redactor is not redactor or (redactor and redactor.knowledge is not known.knowledge) or len(known) >= _PIECES:
            known = self._clean = _Members(self._clean_member, redactor)
        try:
            return [*map(known.__getitem__, attributes.items())]
        except (_OutOfTheOrdinaryError, TypeError):  # what has no hash is out of the ordinary, too
            return None

    def _clean_member(self, known: _Members, key: str, value: Any) -> str:
        kind, redactor = type(value), known.redactor
        name = known.names.get(key) or self._clean_name(known, key)
        if kind is str:
            if redactor is not None and redactor.finds_in(key, value):
                raise _OutOfTheOrdinaryError
            if len(value) >= BLOB_BYTES:
                return name + self._refer(value)
        elif kind is int:
            if not -_LARGE_INT < value < _LARGE_INT:
                raise _OutOfTheOrdinaryError
            return f"{name}{value:d}"
        elif kind is tuple:
            if not all(type(item) is str for item in value) or (redactor and any(redactor.finds_in(key, item) for item in value)):
                raise _OutOfTheOrdinaryError
        elif kind is not bool and kind is not float:
            raise _OutOfTheOrdinaryError
        member = name + to_json(encode_value(value, self._keep, 1))
        if kind is str or (kind is tuple and sum(map(len, value)) < BLOB_BYTES):
            known[key, value] = member
        return member

    def _clean_name(self, known: _Members, key: str) -> str:
        name = self._names.get(key) or self._name(key)
        if name is None or (known.redactor is not None and known.redactor.name(key) != key):
            raise _OutOfTheOrdinaryError
        if len(known.names) < _PIECES:
            known.names[key] = name
        return name

    def _name(self, key: object) -> str | None:
        """A key as it stands before its value; ``None`` for one that a plain JSON object cannot have."""
        if type(key) is not str or key[:1] == "$" or not key.isascii():
            return None
        name = quoted(key) + ":"
        if len(self._names) < _PIECES:
            self._names[key] = name
        return name

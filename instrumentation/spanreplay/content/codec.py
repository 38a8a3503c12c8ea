"""The typed codec: any Python value to a JSON text and back.

``None``, ``bool``, ``int``, ``float``, ``str``, lists and string-keyed dicts are plain JSON. Everything else carries a tag,
``{"$t": NAME, "v": PAYLOAD}``:

* ``$t`` without a colon is a type of Python's own: ``tuple``, ``set``, ``frozenset``, ``deque``, ``bytes`` and ``bytearray``
  (UTF-8, or ``"e": "base64"``), ``datetime``, ``date``, ``time``, ``timedelta``, ``decimal``, ``uuid``, ``path``, ``complex``,
  ``dict`` and ``OrderedDict`` (pairs), ``int`` (hex, above 600 digits), ``str`` (pieces, where two lone surrogates are neighbours),
  ``request`` and ``response`` of httpx, httpx2 and requests (``c`` is the client), and ``text``: what could be kept as a description only.
  With ``c`` and ``a``, a ``text`` is a value of the standard library that is made again, and ``c`` beside ``dict`` and ``tuple`` is which
  of their subclasses there it was, from the closed table of ``_library``; who does not know it finds the text, ``dict`` or ``tuple``.
* ``$t`` with a colon is ``module:QualName`` of a class, and ``k`` its kind: ``model`` (pydantic; ``extra``,
  ``set``, ``private`` and ``state`` beside ``v``), ``dataclass``, ``namedtuple``, ``enum`` (``n`` is the member), ``exception``.

A class is restored only if its module is imported already, or if the annotation of the call site mentions it; and only if it is
of the recorded kind and has the recorded fields. It is filled without its constructor. In every other case the value comes back
as its plain JSON value, an exception as `RecordedError`. Nothing is ever imported, and nothing named in a text is called.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.content._decoding import Decoder
from spanreplay.content._encoding import DEPTH_LIMIT, INT_LIMIT, Encoder, safe_text
from spanreplay.content._plain import plain_tree, without_classes
from spanreplay.content._types import KIND, PAYLOAD, TAG, classes_of, name_of
from spanreplay.content.errors import CodecError, RecordedError
from spanreplay.content.json_text import LONG, encoder, readable

__all__ = [
    "CodecError",
    "Encoded",
    "RecordedError",
    "decode",
    "decode_exception",
    "encode",
    "encode_exception",
    "is_typed",
    "plain",
    "without_classes",
]

_LEAVES: Final = frozenset({str, float, bool, type(None)})
_QUOTED_TAG: Final = f'"{TAG}"'
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_to_readable: Final = encoder(ascii_only=False)
_to_ascii: Final = encoder()

_PLAIN: Final = 1
"""``json.dumps`` keeps the value exactly."""
_PLAIN_ASCII: Final = 2
"""And the faster of the encoders gives the same text."""
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value as text.

    Attributes:
        text: JSON, compact, characters as they are (escaped throughout only where a lone surrogate makes it necessary).
        lossy: Something in it was kept as a description, or cannot be restored to the very same type.
        typed: It holds at least one tag, so it is not the plain JSON of the value; see `plain`.
        lost: Of an exception: what of it is lossy, each by its place and type.
    """

    text: str
    lossy: bool
    typed: bool
    lost: tuple[str, ...] = ()


def encode(value: object) -> Encoded:
    """Take a snapshot of a value. Never raises an ``Exception``; the order of members is kept."""
    try:
        form = _look(value, DEPTH_LIMIT)
        if form:
            text = _text_of(value, form)
            if ("$" not in text or _QUOTED_TAG not in text) and (form == _PLAIN_ASCII or text.isascii() or _SURROGATE.search(text) is None):
                return Encoded(text, False, False)
    except (ValueError, RuntimeError, RecursionError):
        pass  # a huge integer, a dict changed by another thread, a deep stack: the careful way can do it
    try:
        encoder = Encoder()
        return Encoded(dump(encoder.value(value)), encoder.lossy, encoder.typed)
    except Exception:  # noqa: BLE001 - recording must not break the agent
        return Encoded(dump({TAG: "text", PAYLOAD: safe_text(value)}), True, True)


def encode_exception(exc: BaseException) -> Encoded:
    """Take a snapshot of an exception: type, message, args, attributes, and up to five causes. Never raises an ``Exception``."""
    try:
        encoder = Encoder()
        tree = encoder.value(exc)
        if tree.get(KIND) == "exception":
            return Encoded(dump(tree), encoder.lossy, True, tuple(encoder.lost))
    except Exception:  # noqa: BLE001, S110 - recording must not break the agent
        pass
    payload = {"message": safe_text(exc), "args": []}
    return Encoded(dump({TAG: name_of(type(exc)), PAYLOAD: payload, KIND: "exception"}), True, True)


def decode(text: str, annotation: object = None, *, explains: bool = False) -> Any:
    """Return the value of a text made by `encode`.

    Args:
        text: JSON, with or without tags.
        annotation: What the call site says the type is (a class, ``Optional[X]``, ``list[X]`` …): classes it mentions, and classes
            of their fields, may be restored even if ``sys.modules`` does not reach them.
        explains: An exception that is asked for an attribute that was not kept says so.

    Raises:
        CodecError: No JSON, or a tag whose payload does not fit.
    """
    tree = _load(text)
    if _QUOTED_TAG not in text:
        return tree
    try:
        return Decoder({} if annotation is None else classes_of(annotation), explains=explains).value(tree)
    except RecursionError:
        raise CodecError(f"expected at most {DEPTH_LIMIT} levels of nesting in a typed value, found more") from None


def decode_exception(text: str) -> BaseException:
    """Return the exception of a text made by `encode_exception`; a class that is not imported gives `RecordedError`.

    Raises:
        CodecError: No JSON, or no exception.
    """
    made = decode(text, explains=True)
    if not isinstance(made, BaseException):
        raise CodecError(f"expected a recorded exception, found a value of type {type(made).__name__}: {text[:80]!r}")
    return made


def is_typed(text: str) -> bool:
    """Whether a text made by `encode` may have type tags, so that its plain view is another text."""
    return _QUOTED_TAG in text


def plain(text: str) -> str:
    """Return the plain JSON view of a typed text: tags removed, readable. A text without tags is returned as it is.

    Raises:
        CodecError: No JSON.
    """
    if _QUOTED_TAG not in text:
        return text
    tree = _load(text)
    try:
        return dump(plain_tree(tree))
    except RecursionError:
        raise CodecError(f"expected at most {DEPTH_LIMIT} levels of nesting in a typed value, found more") from None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise CodecError(f"expected a JSON text, found {text[:80]!r} ({problem})") from problem


def dump(tree: Any) -> str:
    """Return the text of a tree that stands for a value."""
    text = _to_readable(tree)
    return text if text.isascii() or _SURROGATE.search(text) is None else _to_ascii(tree)


def _look(value: object, depth: int) -> int:
    """Tell whether ``json.dumps`` keeps the value exactly, and how it is best written: in one walk, for it is the agent that waits.

    Returns:
        `_PLAIN` or `_PLAIN_ASCII` for builtins only, no subclass, string keys, no huge integer; else 0.
    """
    form = _PLAIN_ASCII
    items: Iterable[object]
    kind = type(value)
    if kind is dict:
        for key in value:  # type: ignore[attr-defined]
            if type(key) is not str:
                return 0
            if not key.isascii() or "\x7f" in key:
                form = _PLAIN
        items = value.values()  # type: ignore[attr-defined]
    elif kind is list:
        items = value  # type: ignore[assignment]
    elif kind is str:
        return form if value.isascii() and "\x7f" not in value else _PLAIN  # type: ignore[attr-defined,operator]
    else:
        return form if kind in _LEAVES or (kind is int and -INT_LIMIT < value < INT_LIMIT) else 0  # type: ignore[operator]
    if depth == 0:
        return 0
    for item in items:
        kind = type(item)
        if kind is str:
            if not item.isascii() or "\x7f" in item:  # type: ignore[attr-defined,operator]
                form = _PLAIN
        elif kind not in _LEAVES:
            found = _look(item, depth - 1)
            if found < form:
                if not found:
                    return 0
                form = found
    return form


def _text_of(value: Any, form: int) -> str:
    """Write a plain value; a long text in it, as tools take and give them, the quick way."""
    encode = _to_ascii if form == _PLAIN_ASCII else _to_readable
    if type(value) is str:
        return readable(value) if len(value) >= LONG else encode(value)
    if type(value) is dict and len(value) <= _FEW:
        for item in value.values():
            if type(item) is str and len(item) >= LONG:
                members = [f"{encode(key)}:{readable(item) if type(item) is str else encode(item)}" for key, item in value.items()]
                return "{" + ",".join(members) + "}"
    return encode(value)

"""Bodies and headers of an HTTP exchange: content decoding, and the form in which bytes are kept as an attribute."""

import importlib
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final, Protocol, TypeAlias

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Name and value pairs in the order received, names as received; characters are latin-1, as on the wire."""

UTF_8: Final = "utf-8"
BASE64: Final = "base64"

MAX_BODY: Final = 64 * 2**20
"""Bytes of a body above which the exchange is kept without it, marked lossy: a download must not fill the agent's memory."""

MAX_DECODED: Final = 256 * 2**20
"""Bytes above which a compressed body is kept but not looked into: a few kilobytes can decompress to gigabytes."""

_ABOUT_THE_BYTES: Final = frozenset({"content-encoding", "content-length", "transfer-encoding", "content-md5", "digest"})
_TEXTUAL: Final = re.compile(r"text/|[/+](?:json|xml|x-www-form-urlencoded|javascript|yaml)")


class TextRedactor(Protocol):
    """The part of a redactor that a body needs."""

    def text(self, text: str, /) -> tuple[str, int]:
        """The text without secrets, and how many were replaced."""
        ...


def header(headers: Headers, name: str) -> str:
    """The value of a header, all its values joined by ``, ``; empty when there is none. ``name`` is lower-case."""
    size = len(name)
    return ", ".join([value for key, value in headers if len(key) == size and key.lower() == name])


def headers_json(headers: Headers) -> str:
    """Canonical JSON of the headers."""
    return "[" + ",".join([f"[{quoted(name)},{quoted(value)}]" for name, value in headers]) + "]"


def without_encoding(headers: Headers) -> list[tuple[str, str]]:
    """The headers of a body that is kept decoded or changed: those that speak of its bytes are left out."""
    return [(name, value) for name, value in headers if name.lower() not in _ABOUT_THE_BYTES]


def is_textual(content_type: str) -> bool:
    """Is this a media type of text?"""
    return _TEXTUAL.search(content_type.lower()) is not None


# ---- content decoding ---------------------------------------------------------------------------------------------


def content_decoded(body: bytes, content_encoding: str) -> bytes | None:
    """Undo ``Content-Encoding``, as far as the body goes: what a cut body holds comes out whole up to the cut.

    Args:
        body: bytes as received.
        content_encoding: value of the header: codings in the order applied (RFC 9110, section 8.4), separated by commas.

    Returns:
        The bytes, or ``None`` where they cannot be had: an unknown coding, one whose library is not installed (br, zstd), a broken
        body, or more than :data:`MAX_DECODED` bytes.
    """
    for coding in reversed([name.strip().lower() for name in content_encoding.split(",")]):
        if coding in ("", "identity") or not body:
            continue
        decode = _DECODERS.get(coding) or _optional(coding)
        if decode is None:
            return None
        try:
            body = decode(body)
        except Exception:  # noqa: BLE001 — every library has an error class of its own
            return None
    return body


def _inflate(body: bytes, window: int) -> bytes:
    machine = zlib.decompressobj(window)
    decoded = machine.decompress(body, MAX_DECODED)
    if machine.unconsumed_tail:
        raise ValueError("too large")
    while machine.eof and machine.unused_data and window > zlib.MAX_WBITS:  # gzip members may follow one another
        machine, rest = zlib.decompressobj(window), machine.unused_data
        decoded += machine.decompress(rest, MAX_DECODED)
        if machine.unconsumed_tail or len(decoded) > MAX_DECODED:
            raise ValueError("too large")
    return decoded


def _gzip(body: bytes) -> bytes:
    return _inflate(body, zlib.MAX_WBITS | 16)


def _deflate(body: bytes) -> bytes:
    try:
        return _inflate(body, zlib.MAX_WBITS)
    except zlib.error:  # many servers send the bare format
        return _inflate(body, -zlib.MAX_WBITS)


_DECODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate}
_LIBRARIES: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "br": (("brotli", "Decompressor", "process"), ("brotlicffi", "Decompressor", "decompress")),
    "zstd": (
        ("compression.zstd", "ZstdDecompressor", "decompress"),
        ("backports.zstd", "ZstdDecompressor", "decompress"),
        ("zstandard", "ZstdDecompressor", "stream"),
    ),
}
"""Coding to (module, class, method): what the HTTP clients themselves look for."""


def _optional(coding: str) -> Callable[[bytes], bytes] | None:
    for module_name, class_name, method in _LIBRARIES.get(coding, ()):
        try:
            machine: Any = getattr(importlib.import_module(module_name), class_name)()
        except (ImportError, AttributeError):
            continue
        if method == "stream":
            machine = machine.decompressobj()
            method = "decompress"  # noqa: PLW2901
        decode: Callable[[bytes], bytes] = getattr(machine, method)
        return decode
    return None


# ---- as an attribute ----------------------------------------------------------------------------------------------


def as_attribute(body: bytes) -> tuple[str, str]:
    """Bytes as the text of an attribute, and the encoding of that text: ``utf-8``, or ``base64`` where they are no UTF-8."""
    try:
        return body.decode("utf-8"), UTF_8
    except UnicodeDecodeError:
        return b64encode(body).decode("ascii"), BASE64


class Kept:
    """A body as it will be kept: exactly as received, or decoded and without the secrets it held.

    Attributes:
        text: value of the attribute. Where ``changed``, it still holds the secrets: the step replaces and counts them.
        encoding: ``utf-8`` or ``base64``.
        changed: a secret was found, so that neither the bytes nor their chunks are those received.
        size: bytes that the kept body will have.
        lossy: a secret was found in text that is no UTF-8; it is replaced already.
    """

    __slots__ = ("changed", "encoding", "lossy", "size", "text")

    def __init__(self, raw: bytes, headers: Headers, redactor: TextRedactor, view: bytes | None) -> None:
        """Look for secrets in ``view``, the body after content decoding (``None``: it could not be decoded)."""
        self.changed = self.lossy = False
        self.text, self.encoding = as_attribute(raw)
        self.size = len(raw)
        if not view:
            return
        try:
            seen = self.text if view is raw and self.encoding == UTF_8 else view.decode("utf-8")
        except UnicodeDecodeError:
            self._look_into_legacy_text(view, headers, redactor)
            return
        clean, replaced = redactor.text(seen)
        if replaced:
            self.changed = True
            self.text, self.encoding, self.size = seen, UTF_8, len(clean.encode("utf-8", "surrogatepass"))

    def _look_into_legacy_text(self, view: bytes, headers: Headers, redactor: TextRedactor) -> None:
        if not is_textual(header(headers, "content-type")):
            return
        clean, replaced = redactor.text(view.decode("latin-1"))
        if replaced:
            self.changed = self.lossy = True
            data = clean.encode("latin-1", "replace")
            self.text, self.encoding, self.size = b64encode(data).decode("ascii"), BASE64, len(data)


def joined(chunks: Iterable[bytes]) -> bytes:
    """The chunks as one body; the same object when there is only one."""
    parts = list(chunks)
    return parts[0] if len(parts) == 1 else b"".join(parts)

"""Bodies as they were before they were packed, and never more of them than the limit."""

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Final

from spanreplay.spans.errors import FormatError

_ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd")
"""In Python from 3.14 on."""
_WINDOW_LOG: Final = 26
"""A zstd frame may ask for a window of 2 ** 26 bytes, 64 MiB, and no more."""
_GZIP: Final = 31
_ZLIB: Final = 15
_RAW: Final = -15
_MEMBERS: Final = 10_000
"""Members of gzip and frames of zstd that a body may be made of: one, as a rule."""
_STEP: Final = 1_024


class TooLargeError(Exception):
    """A body is larger than the limit, packed or unpacked."""


def unpacked(data: bytes, encoding: str, limit: int) -> bytes:
    """The body.

    Args:
        data: as it was sent.
        encoding: one of :data:`ENCODINGS`.
        limit: bytes.

    Raises:
        TooLargeError: it is larger; no more than the limit has been unpacked.
        FormatError: it is not packed so.
    """
    body = _UNPACKERS[encoding](data, limit) if data else data
    if len(body) > limit:
        raise TooLargeError
    return body


def _gzip(data: bytes, limit: int) -> bytes:
    return _inflated(data, limit, _GZIP, "gzip")


def _deflate(data: bytes, limit: int) -> bytes:
    """``deflate`` is zlib (RFC 9110, 8.4.1.2); some send it bare."""
    bare = (data[0] & 0x0F) != 8 or int.from_bytes(data[:2], "big") % 31 != 0
    return _inflated(data, limit, _RAW if bare else _ZLIB, "deflate")


def _inflated(data: bytes, limit: int, how: int, name: str) -> bytes:
    try:
        return _joined(data, limit, lambda: zlib.decompressobj(how), name)
    except zlib.error as error:
        raise FormatError("", f"a body packed with {name}", str(error)) from None


def _zstd(data: bytes, limit: int) -> bytes:
    module = _zstd_module()
    options = {module.DecompressionParameter.window_log_max: _WINDOW_LOG}
    try:
        return _joined(data, limit, lambda: module.ZstdDecompressor(options=options), "zstd")
    except (module.ZstdError, ValueError) as error:
        raise FormatError("", "a body packed with zstd", str(error)) from None


def _joined(data: bytes, limit: int, unpacker_of_next: Callable[[], Any], name: str) -> bytes:
    """Members, or frames, that follow each other, unpacked.

    What an unpacker is given beyond its end it copies, so it is given little at first: else many small members would take for ever.
    """
    parts: list[bytes] = []
    view, place, size, members = memoryview(data), 0, 0, 0
    while place < len(data):
        members += 1
        if members > _MEMBERS:
            raise FormatError("", f"a body packed with {name}", f"one of more than {_MEMBERS} pieces")
        unpacker, step = unpacker_of_next(), _STEP
        while not unpacker.eof:
            if place >= len(data):
                raise FormatError("", f"a body packed with {name}", "one that ends too early")
            part = unpacker.decompress(view[place : place + step], limit + 1 - size)
            size += len(part)
            parts.append(part)
            if size > limit:
                raise TooLargeError
            place, step = min(place + step, len(data)), 2 * step
        place -= len(unpacker.unused_data)
    return b"".join(parts)


def _zstd_module() -> Any:
    for name in _ZSTD_MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise FormatError("", "a body that is not packed, or packed with gzip", "zstd")


def _as_it_is(data: bytes, _: int) -> bytes:
    return data


_UNPACKERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "identity": _as_it_is,
    "": _as_it_is,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "zstd": _zstd,
    "deflate": _deflate,
}
ENCODINGS: Final = frozenset(_UNPACKERS)
"""Values of ``Content-Encoding`` that are understood."""

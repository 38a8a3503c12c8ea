"""An input of bytes: its head looked at without being lost, gzip and zstd unpacked, and never more than the limits allow.

Packed data that is damaged, cut or far larger than it should be ends early instead of raising in the middle of a line: what came before is
still read, and :attr:`InputStream.fault` says why there is no more.
"""

import gzip
import importlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol

from spanreplay.spans.errors import FormatError

HEAD_BYTES: Final = 65_536
HEADS: Final = (HEAD_BYTES, 1 << 20, 16 << 20)
"""How much of an input is looked at to tell its format: more only where less was not enough."""

LAYERS: Final = 3
"""How often data may be packed: a file that a Collector compressed, packed by who rotates or keeps it, and once more."""
GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one input, in bytes."""

    document: int = 1 << 30
    """One JSON document, one line or one protobuf message."""
    unpacked: int = 256 << 20
    """Packed data that grows beyond this, and by more than ``ratio``, is taken for a decompression bomb."""
    ratio: int = 300


DEFAULT_LIMITS: Final = Limits()


class InputStream(io.BufferedReader):
    """A buffered reader over ``raw`` from its present position, unpacked. Closing it closes ``raw``, if ``owned``.

    Attributes:
        head: The first :data:`HEAD_BYTES` unpacked bytes, or as many as were looked at; they are still to be read.
        limits: The bounds that hold.
    """

    def __init__(self, raw: BinaryIO, limits: Limits = DEFAULT_LIMITS, *, owned: bool = True) -> None:
        self.limits = limits
        chunks = self._packed = _Counted(raw)
        self._unpacked: list[_Unpacked] = []
        while len(self._unpacked) < LAYERS and (unpack := _unpacker(chunks.look(8), chunks, limits)):
            self._unpacked.append(_Unpacked(unpack, self._packed, limits))
            chunks = _Counted(self._unpacked[-1])
        self.head = _fill(chunks, HEAD_BYTES)
        self._chunks = chunks
        self._joined = _Joined(self.head, chunks, raw if owned else None)
        super().__init__(self._joined, HEAD_BYTES)

    def look(self, size: int) -> bytes:
        """The first ``size`` unpacked bytes, or all there are; for use before anything was read."""
        if len(self.head) < size:
            self.head += _fill(self._chunks, size - len(self.head))
            self._joined.head = memoryview(self.head)
        return self.head

    @property
    def position(self) -> int:
        """Bytes taken from ``raw``, packed as they may be; some of them are still to be read."""
        return self._packed.count

    @property
    def fault(self) -> FormatError | None:
        """Why the unpacked data ended early, if it did."""
        return next((layer.fault for layer in self._unpacked if layer.fault is not None), None)


def document_limit(stream: BinaryIO) -> int:
    """How many bytes one document or message out of ``stream`` may have."""
    return stream.limits.document if isinstance(stream, InputStream) else DEFAULT_LIMITS.document


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _fill(stream: _Readable, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := stream.read1(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Counted:
    """A reader that counts what it gave, and can be looked into before."""

    def __init__(self, raw: "_Source") -> None:
        self._raw = raw
        self._ahead = b""
        self.count = 0

    def look(self, size: int) -> bytes:
        while len(self._ahead) < size and (part := self._raw.read(size - len(self._ahead))):
            self._ahead += part
        return self._ahead

    def read1(self, size: int = -1, /) -> bytes:
        if self._ahead:
            size = len(self._ahead) if size < 0 else size
            out, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            out = self._raw.read(size)
        self.count += len(out)
        return out

    read = read1

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class _Joined(io.RawIOBase):
    """The head again, then the rest."""

    def __init__(self, head: bytes, rest: _Readable, raw: BinaryIO | None) -> None:
        self.head = memoryview(head)
        self._rest = rest
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part: bytes | memoryview
        if self.head:
            part, self.head = self.head[: len(buffer)], self.head[len(buffer) :]
        else:
            part = self._rest.read1(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed and self._raw is not None:
            self._raw.close()
        super().close()


_DAMAGE: Final = (FormatError, EOFError, zlib.error, gzip.BadGzipFile)


class _Unpacked:
    """Unpacked data that ends at the first fault, or where it grows too large."""

    def __init__(self, stream: _Readable, packed: _Counted, limits: Limits) -> None:
        self._stream = stream
        self._packed = packed
        self._limits = limits
        self._count = 0
        self.fault: FormatError | None = None

    def read1(self, size: int, /) -> bytes:
        if self.fault is not None:
            return b""
        try:
            out = self._stream.read1(size)
        except Exception as error:
            if not isinstance(error, _DAMAGE) and type(error).__name__ != "ZstdError":
                raise
            place = f"packed byte {self._packed.count}"
            self.fault = error if isinstance(error, FormatError) else FormatError(place, "whole packed data", _reason(error))
            return b""
        self._count += len(out)
        if self._count > self._limits.unpacked and self._count > self._limits.ratio * self._packed.count:
            expected = f"packed data that grows less than {self._limits.ratio} times"
            self.fault = FormatError(f"packed byte {self._packed.count}", expected, f"{self._count} bytes already")
        return out

    read = read1


def _reason(error: Exception) -> str:
    return "the end of the file" if isinstance(error, EOFError) else str(error)[:120] or type(error).__name__


def _unpacker(start: bytes, packed: _Counted, limits: Limits) -> _Readable | None:
    if start[:2] == GZIP_MAGIC:
        return gzip.GzipFile(fileobj=packed, mode="rb")  # type: ignore[call-overload,no-any-return]
    if start[:4] == ZSTD_MAGIC:
        return _open_zstd(packed)
    if start[4:8] == ZSTD_MAGIC:
        return _Chunks(_framed_zstd(packed, limits))
    return None


class _Chunks:
    """A reader over chunks as they are made."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read1(self, size: int, /) -> bytes:
        while not self._left:
            part = next(self._chunks, None)
            if part is None:
                return b""
            self._left = part
        out, self._left = self._left[:size], self._left[size:]
        return out


# ---- zstd: in Python from 3.14 on, before that in either of two packages --------------------------------------------

_ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd", "zstandard")


def _zstd() -> Any:
    for name in _ZSTD_MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise FormatError("byte 0", "data that is not packed, or packed with gzip", "zstd (to read it: pip install backports.zstd)")


def _open_zstd(packed: _Counted) -> _Readable:
    try:
        module = _zstd()
    except FormatError as error:
        return _Failing(error)
    if hasattr(module, "ZstdFile"):
        return module.ZstdFile(packed)  # type: ignore[no-any-return]
    return module.ZstdDecompressor().stream_reader(packed, read_across_frames=True)  # type: ignore[no-any-return]


class _Failing:
    def __init__(self, error: FormatError) -> None:
        self._error = error

    def read1(self, size: int, /) -> bytes:
        raise self._error


def _framed_zstd(packed: _Counted, limits: Limits) -> Iterator[bytes]:
    """Unpacks a Collector file with ``compression: zstd``: each message is its packed length (4 bytes, big-endian) and a zstd frame.

    Protobuf messages keep a length before them, now that of the unpacked message; JSON documents get a line each. Form: README of
    the Collector's ``fileexporter`` (v0.159).
    """
    unpack = _one_frame(limits)
    while header := _fill(packed, 4):
        size = int.from_bytes(header, "big")
        at = packed.count - len(header)
        frame = _fill(packed, size) if len(header) == 4 and size <= limits.document else b""
        if len(frame) < size:
            raise FormatError(f"packed byte {at}", f"a packed message of {size} bytes", f"{len(frame)} bytes")
        data = unpack(frame)
        yield data + b"\n" if data[:1] in (b"{", b"[") else len(data).to_bytes(4, "big") + data


def _one_frame(limits: Limits) -> Callable[[bytes], bytes]:
    module = _zstd()
    if hasattr(module, "ZstdFile"):

        def unpack(frame: bytes) -> bytes:
            data: bytes = module.ZstdDecompressor().decompress(frame, limits.document)
            return data

    else:

        def unpack(frame: bytes) -> bytes:
            data: bytes = module.ZstdDecompressor().stream_reader(frame).read(limits.document)
            return data

    return unpack

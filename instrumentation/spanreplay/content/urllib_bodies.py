"""The body of a response of :mod:`http.client` that still comes over its connection: kept as it comes, never waited for."""

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from socket import SocketIO

MOST: Final = 1 << 20
"""Bytes that are kept of one response, with what its transfer coding adds."""
_PIECE: Final = 1 << 16
_NOT_YET: Final = frozenset({"BlockingIOError", "SSLWantReadError", "SSLWantWriteError"})


class Rest(NamedTuple):
    """What an agent has not read of a body at some time."""

    state: Mapping[str, Any]
    """The attributes of the response then, which say what of its lengths and chunks is still to come."""
    start: int
    """How many bytes of the connection it had read since that is watched."""


def hold(response: Any) -> "Arriving | None":
    """Keep what has come of a body, and from now on what comes of it. The agent reads all of it as before.

    Args:
        response: an ``http.client.HTTPResponse``.

    Returns:
        ``None`` where nothing comes any more, or where it comes by something else than a connection.
    """
    from socket import SocketIO

    buffer = response.fp
    raw = buffer.raw if type(buffer) is io.BufferedReader else None
    if isinstance(raw, Arriving):
        arriving = raw
    elif isinstance(raw, SocketIO):
        arriving = Arriving(raw)
        arriving.take_over(buffer)
        response.fp = io.BufferedReader(arriving)
    else:
        return None
    if (response.length or 0) <= MOST:
        arriving.take()
    return arriving


def decoded(state: Mapping[str, Any], wire: bytes | bytearray) -> tuple[bytes, bool]:
    """Read a body as the library does.

    Args:
        state: see :class:`Rest`.
        wire: what has come since.

    Returns:
        The body, and whether that is all that the response has promised; one without a length promises nothing.
    """
    from http.client import HTTPResponse

    copy: Any = HTTPResponse.__new__(HTTPResponse)
    vars(copy).update(state, fp=io.BytesIO(wire))
    body = bytearray()
    try:
        while piece := copy.read1(_PIECE):  # `read` gives nothing of a chunk of which something is missing
            body += piece
    except Exception:  # noqa: BLE001 — it is cut, or damaged: the agent meets that where it reads
        return bytes(body), False
    return bytes(body), not copy.length


@dataclass(slots=True, eq=False)
class _Follower:
    rest: Rest
    tell: Callable[[bytes, bool], None]
    told: tuple[int, bool]
    """Of how many bytes, and whether they were all."""


class Arriving(io.RawIOBase):
    """The connection of a response. It gives first what was taken off it before, then what comes.

    Args:
        raw: gives what comes; closed with this one.
    """

    def __init__(self, raw: "SocketIO") -> None:
        self._raw = raw
        self._wire = bytearray()
        """What has come, as far as it is kept."""
        self._came = 0
        """Bytes that have come."""
        self._given = 0
        """Bytes that the buffer above has got."""
        self._ended = False
        self._failure: OSError | None = None
        self._waits = True
        self._followers: list[_Follower] = []
        self._told = 0
        """Bytes that had come when they were told last."""

    # ---- for the agent ------------------------------------------------------------------------------------------

    def readable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """That of the connection."""
        return self._raw.fileno()

    def readinto(self, buffer: Any, /) -> int | None:
        """Give what is here, else what comes."""
        piece = self._wire[self._given : self._given + len(buffer)]
        if piece:
            buffer[: len(piece)] = piece
            self._given += len(piece)
            return len(piece)
        if not self._waits:
            return None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        size: int | None = self._raw.readinto(buffer)
        if size:
            self._keep(memoryview(buffer)[:size])
            self._given = self._came
        self._ended = size == 0
        if self._ended or (size and self._came >= 2 * self._told):
            self._tell()
        return size

    def close(self) -> None:
        """The agent reads no more."""
        if not self.closed:
            try:
                self._raw.close()
            finally:
                super().close()
                self._tell()
                self._followers.clear()

    # ---- for the record -----------------------------------------------------------------------------------------

    def take_over(self, buffer: io.BufferedReader) -> None:
        """Take what a buffer above the connection has read of it, and the connection."""
        with _unwaiting(self._raw) as failure:
            self._keep(buffer.peek())
        self._failure = failure[0] if failure else None
        buffer.detach()

    def take(self) -> None:
        """Take what has come by now off the connection, as far as it is kept."""
        if self._ended or self._failure is not None:
            return
        connection = self._raw._sock  # type: ignore[attr-defined]
        with _unwaiting(self._raw) as failure:
            while self._came < MOST and not self._ended:
                piece = connection.recv(min(_PIECE, MOST - self._came))
                self._keep(piece)
                self._ended = not piece
        self._failure = failure[0] if failure else None

    def rest(self, response: Any) -> Rest:
        """What the agent has not read yet of the response that this is the connection of."""
        self._waits = False
        try:
            ahead = len(response.fp.peek())
        finally:
            self._waits = True
        return Rest({name: value for name, value in vars(response).items() if name != "fp"}, self._given - ahead)

    def body(self, rest: Rest) -> tuple[bytes, bool]:
        """What has come of that and is kept, and whether it is all."""
        body, whole = decoded(rest.state, self._wire[rest.start :])
        if rest.state["length"] is None and not rest.state["chunked"]:  # it is all when the connection has ended
            whole = self._ended and self._came == len(self._wire)
        return body, whole

    def follow(self, rest: Rest, tell: Callable[[bytes, bool], None]) -> None:
        """Have it told when more has come than now: at the next piece, whenever it is twice as much, and at the end.

        Args:
            rest: of the body.
            tell: gets what :meth:`body` gives; not called again after it has got all. What it raises is lost.
        """
        self._told = 0
        body, whole = self.body(rest)
        self._followers.append(_Follower(rest, tell, (len(body), whole)))

    def _keep(self, piece: bytes | memoryview) -> None:
        if self._came == len(self._wire):
            self._wire += piece[: MOST - self._came]
        self._came += len(piece)

    def _tell(self) -> None:
        self._told = self._came
        for follower in list(self._followers):
            with contextlib.suppress(Exception):  # telemetry never breaks the agent
                body, whole = self.body(follower.rest)
                if whole:
                    self._followers.remove(follower)
                if follower.told != (len(body), whole):
                    follower.told = (len(body), whole)
                    follower.tell(body, whole)


@contextlib.contextmanager
def _unwaiting(raw: "SocketIO") -> Iterator[list[OSError]]:
    """In here the connection gives what it has, or nothing. What it raises else is in the list: it says that once."""
    connection = raw._sock  # type: ignore[attr-defined]
    failure: list[OSError] = []
    timeout = connection.gettimeout()
    connection.settimeout(0)
    try:
        yield failure
    except OSError as error:
        if type(error).__name__ not in _NOT_YET:
            failure.append(error)
    finally:
        connection.settimeout(timeout)

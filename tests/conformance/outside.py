"""What is outside of the agent: a folder, and a server on loopback that acts on whatever it is sent. Both remember."""

import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_ANSWER: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone"


class Outside:
    """``with Outside(folder) as outside``; :meth:`acts` says what was done since it was asked last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._received: list[str] = []
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def port(self) -> int:
        """Of the server."""
        return int(self._server.getsockname()[1])

    def acts(self) -> list[str]:
        """What was done, and forget it."""
        written = sorted(self.folder.iterdir())
        for path in written:
            path.unlink()
        with self._lock:
            received, self._received = self._received, []
        return [f"wrote {path.name}" for path in written] + received

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    text = connection.recv(1000).decode(errors="replace")
                    connection.sendall(_ANSWER)
                except OSError as error:
                    text = str(error)
            with self._lock:
                self._received.append(f"sent {text[:20]!r}")

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)

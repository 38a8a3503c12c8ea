"""One recording for all tests of this folder, and the folder that its agent would act on."""

import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from acceptance.commands import Desk, Done

AGENT = Path(__file__).parent / "agent.py"


@dataclass
class Outside:
    """What the agent could act on."""

    folder: Path
    port: int
    connections: list[str] = field(default_factory=list)

    def files(self) -> list[str]:
        """Names of the files there."""
        return sorted(file.name for file in self.folder.iterdir())


def agent(*arguments: str) -> list[str]:
    """The command of the agent."""
    return [sys.executable, str(AGENT), *arguments]


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """A folder, and a server that notes who connects."""
    folder = tmp_path_factory.mktemp("outside")
    listener = socket.create_server(("127.0.0.1", 0))
    made = Outside(folder=folder, port=listener.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            made.connections.append(str(address))
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield made
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, outside: Outside) -> tuple[Desk, Done]:
    """A recording of the agent, and how the command ended."""
    desk = Desk.laid_out(tmp_path_factory.mktemp("desk"), {"OUTSIDE": str(outside.folder), "PORT": str(outside.port)})
    done = desk.record(agent())
    for file in outside.folder.iterdir():
        file.unlink()
    return desk, done


@pytest.fixture
def desk(recorded: tuple[Desk, Done]) -> Desk:
    """The folder of the recording."""
    return recorded[0]

"""Ways to act on the outside: each is one function that takes a :class:`World` of its own and tries."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CONFESSED: Final[list[str]] = []


@dataclass(frozen=True, kw_only=True)
class World:
    """What an act may touch. Whatever changes in it, or is heard there, has got out."""

    out: Path
    """A folder with the files ``there`` and ``locked``, and the folder ``folder``."""
    port: int
    """Of a TCP and of a UDP server on 127.0.0.1."""
    abstract: str
    """Name, without its NUL, of an abstract Unix socket that listens; another listens at ``out / "s"``."""
    victim: int
    """A process, 0 where none was asked for."""
    name: str
    """A POSIX message queue, a named semaphore and a file in /dev/shm have it; the file without the slash."""
    key: int
    """Of System V shared memory, of a semaphore and of a message queue."""
    scratch: Path
    """Where writing is allowed."""

    @property
    def there(self) -> Path:
        """A file with the text ``untouched``."""
        return self.out / "there"

    @property
    def url(self) -> str:
        """Of the TCP server."""
        return f"http://127.0.0.1:{self.port}/"

    def confess(self) -> None:
        """Say that it worked, where nothing in this world shows it."""
        CONFESSED.append(self.out.name)


@dataclass(frozen=True, kw_only=True)
class Act:
    """One way."""

    name: str
    run: Callable[..., Any]
    needs: tuple[str, ...]
    """Modules without which it cannot be tried."""
    victim: bool
    before: Callable[[World], Any] | None
    """Opens, before the guard is armed, what the act then uses."""

    @property
    def is_possible(self) -> bool:
        """Whether what it needs is installed."""
        return all(importlib.util.find_spec(module) is not None for module in self.needs)


ACTS: Final[dict[str, Act]] = {}


def act(*, needs: str = "", victim: bool = False, before: Callable[[World], Any] | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Enter a function among the acts, by its name."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__.rstrip("_")
        assert name not in ACTS
        ACTS[name] = Act(name=name, run=function, needs=tuple(needs.split()), victim=victim, before=before)
        return function

    return enter


def module(name: str) -> Any:
    """Import a package that need not be installed, and has no types here."""
    return importlib.import_module(name)


def load() -> None:
    """Enter all of them. The folder ``tests`` must be on the path."""
    for file in sorted(Path(__file__).parent.glob("by_*.py")):
        importlib.import_module(f"replay.isolation.battery.{file.stem}")

"""What a recorder of agent runs must say of itself to be tested here: a file with a subclass of :class:`Driver`, or :class:`CommandDriver`.

The file is given to ``python -m conformance FILE``; the suite looks for its ``DRIVER``. A file of the same name that ends in ``.txt``
beside it holds pip requirements: then an environment of its own is made, and everything of the driver runs there. See
``docs/conformance.md``.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

Program: TypeAlias = Callable[[], str]
"""One agent run, from its beginning to its final output. A new client each time; asynchronous programs bring their own event loop."""

# What a program uses. A driver names those that its recorder has no means for, and may choose a mode by them.
OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
STREAMS: Final = "streams"
TOOLS: Final = "tools"
TOOL_OUTCOMES: Final = "tool outcomes"
"""What a tool returned or raised must come back, with its type."""
ASYNC: Final = "async"
CONCURRENT: Final = "concurrent calls"
THREADS: Final = "threads"
UNDECLARED: Final = "undeclared actions"
"""Something acts on the outside that nobody declared as a tool."""
HASH_SEED: Final = "hash seed"
"""The order of a set is a part of what the model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between the recorded run and the replayed one that the recorder told of, whether it stopped there or not."""

    text: str
    """For people; its first line is shown."""
    step: int | None = None
    """Which recorded call it is at, where the recorder says so: the model and tool calls of the run in the order they began, from 1."""
    field: str | None = None
    """Which part of the call, where the recorder says so: ``messages[0].content``, ``temperature``."""


@dataclass(slots=True, kw_only=True)
class Replayed:
    """How a replay ended."""

    value: str | None = None
    """The final output, when the program came to its end."""
    error: str | None = None
    """What the program, or the recorder, raised instead."""
    differences: list[Difference] = field(default_factory=list)


class Driver:
    """A recorder that records and replays a function in a process. Every recording, and every replay, is done in a process of its own."""

    name: ClassVar[str]
    """In the table, with the mode where a recorder has several: ``my-recorder``."""
    package: ClassVar[str]
    """Distribution whose version is shown."""
    mode: ClassVar[str] = ""
    """How it is used, for the reader of the table."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """What it has no means for, by its own documentation, and why: scenarios that need it are skipped. Keys are the constants above."""

    def version(self) -> str:
        """The version that is tested."""
        return version(self.package)

    def warm_up(self) -> None:
        """Import what recording and replaying import, once for all scenarios; need not be written. No thread may be left running."""

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        """The function, synchronous or not, declared as a tool in the recorder's way.

        Args:
            function: the tool.
            acts: it changes something outside.
        """
        return function

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        """Run ``program`` for real, keep what is needed to replay it, and return its output.

        Args:
            program: an agent run.
            folder: an empty folder for the recording.
            needs: what the program uses.
        """
        raise NotImplementedError

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        """Run ``program`` again, answered from what :meth:`record` has left in ``folder``.

        What is raised out of here counts as the recorder having stopped the program.
        """
        raise NotImplementedError


class CommandDriver(Driver):
    """A recorder that records and replays a command. Its tools are declared in the command's own process."""

    def record_command(self, command: Sequence[str], folder: Path) -> list[str]:
        """The command that runs ``command`` for real and keeps its recording in ``folder``."""
        raise NotImplementedError

    def replay_command(self, command: Sequence[str], folder: Path) -> list[str]:
        """The command that runs ``command`` again, answered from ``folder``."""
        raise NotImplementedError

    def told(self, code: int, out: str, err: str, folder: Path) -> list[Difference]:
        """The differences that the replay told of, from its exit code and what it printed."""
        raise NotImplementedError


class NoDriver(ValueError):
    """A file is no driver file."""


def load(path: Path) -> Driver:
    """The ``DRIVER`` of a driver file.

    Raises:
        NoDriver: the file has none.
    """
    spec = importlib.util.spec_from_file_location(f"conformance_driver_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise NoDriver("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver = getattr(module, "DRIVER", None)
    if not isinstance(driver, Driver):
        raise NoDriver(f"wanted DRIVER, an instance of a conformance.driver.Driver; found {driver!r}")
    return driver

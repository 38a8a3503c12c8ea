"""What a program has: clients of the real SDKs, tools, and an outside to act on."""

import os
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

    from conformance.driver import Driver

MODEL: Final = "gpt-5-mini"
CLAUDE: Final = "claude-sonnet-5"
MARK: Final = "@@ body of "
"""Begins the line that a tool's body leaves on standard error."""
_PAUSES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One recording or one replay of one scenario."""

    scenario: str
    driver: str
    """File of the driver."""
    replay: bool
    changed: bool
    """The program is the changed one."""
    folder: str
    """Of the recording."""
    url: str
    """Of the model server."""
    outside: str
    """Folder outside of the agent."""
    mail: int
    """Port of a server outside of the agent, on loopback."""
    result: str
    """File for how it ended."""

    @property
    def err(self) -> str:
        """File for what the process prints; the marks of tool bodies are in it."""
        return f"{self.result}.err"

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """From another process."""
        return cls(**value)


class World:
    """Given to every program.

    Attributes:
        changed: the program is to do what has changed since it was recorded.
        outside: a folder that lasts.
        mail: host and port of a server that acts on what it is sent.
    """

    def __init__(self, job: Job, driver: "Driver") -> None:
        self.changed = job.changed
        self.outside = Path(job.outside)
        self.mail = ("127.0.0.1", job.mail)
        self._url = job.url
        self._driver = driver
        # Drawn before a recorder begins, and not alike in a recording and its replay: the world's pace is no part of a run.
        pace = random.Random(f"{job.scenario} {job.replay}")
        self._pauses = [pace.random() * 0.03 for _ in range(_PAUSES)]

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A tool that only reads."""
        return self._driver.tool(function, acts=False)

    def acting_tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A tool that changes something outside."""
        return self._driver.tool(function, acts=True)

    def mark(self, name: str) -> None:
        """Say that the body of a tool runs. No library in between, and no file: nothing that a recorder or its guard could stop."""
        os.write(2, f"{MARK}{name}\n".encode())

    def pause(self, number: int) -> float:
        """Seconds that something takes; other ones in a replay."""
        return self._pauses[number % _PAUSES]

    def openai(self, **options: Any) -> "OpenAI":
        """A client of the OpenAI SDK."""
        from openai import OpenAI

        return OpenAI(**{"api_key": "a-key", "base_url": f"{self._url}/v1", "max_retries": 0, **options})

    def async_openai(self, **options: Any) -> "AsyncOpenAI":
        """An asynchronous client of the OpenAI SDK."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**{"api_key": "a-key", "base_url": f"{self._url}/v1", "max_retries": 0, **options})

    def anthropic(self, **options: Any) -> "Anthropic":
        """A client of the Anthropic SDK."""
        from anthropic import Anthropic

        return Anthropic(**{"api_key": "a-key", "base_url": self._url, "max_retries": 0, **options})

    def async_anthropic(self, **options: Any) -> "AsyncAnthropic":
        """An asynchronous client of the Anthropic SDK."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(**{"api_key": "a-key", "base_url": self._url, "max_retries": 0, **options})

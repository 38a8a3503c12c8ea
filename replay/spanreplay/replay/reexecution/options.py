"""How a replay is done: the same choices for a command, for a function in this process, and for a test."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.policy import NOTHING, Policy
from spanreplay.replay.reexecution.stepping import WHOLE, Stepping

Isolate: TypeAlias = Literal["auto", "net", "hook"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a replay may do, and how it compares. They reach every process of a replayed command as JSON."""

    allow_write: tuple[Path, ...] = ()
    """Files and folders that may be written."""
    allow_connect: tuple[tuple[str, int], ...] = ()
    """Hosts and ports that may be looked up and connected to, see :mod:`spanreplay.replay.isolation.reachable`."""
    guard: bool = True
    """Refuse every other action on the outside."""
    isolate: Isolate = "auto"
    """For a command, ``auto``: all that the machine offers; ``net``: besides, a network of its own, or nothing is run; ``hook``: Python's
    audit hook only."""
    accept_incomplete: bool = False
    """Steps whose record is known to lack something answer too, with what there is."""
    comparing: Comparing = EXACT
    """How inputs are compared, and whether the first difference stops the replay."""
    policy: Policy = NOTHING
    """What is live."""
    stepping: Stepping = WHOLE
    """Which part of the run."""
    fast: bool = False
    """Waits take no time, see :mod:`spanreplay.replay.reexecution.waits`."""
    shuffled: int | None = None
    """Chance decides what a program must not depend on, from this seed, see :mod:`spanreplay.replay.reexecution.shuffling`."""

    def to_json(self) -> dict[str, Any]:
        """As in the plan of a replayed command."""
        return {
            **asdict(self),
            "allow_write": [str(path.absolute()) for path in self.allow_write],
            "comparing": self.comparing.to_json(),
            "policy": self.policy.to_json(),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read :meth:`to_json` back."""
        connect = tuple((host, port) for host, port in found["allow_connect"])
        write = tuple(map(Path, found["allow_write"]))
        read = {
            "comparing": Comparing.from_json(found["comparing"]),
            "policy": Policy.from_json(found["policy"]),
            "stepping": Stepping.from_json(found["stepping"]),
        }
        return cls(**{**found, **read, "allow_write": write, "allow_connect": connect})


STRICT: Final = Options()
"""Nothing may be done or differ."""

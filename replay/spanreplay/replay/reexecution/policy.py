"""What of a re-execution is live, and what it may do there: a fork, a mix of recorded and live, one step alone, the rest of a run.

A policy is data: it travels to every process of a replayed command as JSON. What it means for a call is decided in
:mod:`spanreplay.replay.reexecution.live`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

FaultKind: TypeAlias = Literal["timeout", "error", "malformed", "rejected", "slow"]
FAULTS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

Choice: TypeAlias = Literal["done", "again", "fail"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

RESULT: Final = "result"
"""The one change that is no part of a model call."""

SLOW_S: Final = 1.0
"""How late the answer of a slow step comes, unless it is said."""

_FAULT: Final = re.compile(r"(?P<kind>[a-z]+)(?::(?P<seconds>\d+(?:\.\d+)?)s?)?(?:@(?P<step>[1-9]\d*))?")


class PolicyError(ValueError):
    """What is asked of a re-execution cannot be: says what was wanted, what was found and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that goes wrong at a step, as it would in life."""

    kind: FaultKind
    step: int
    """``seq`` of the step of the run forked from."""
    seconds: float = SLOW_S
    """How late a slow answer comes."""

    @classmethod
    def read(cls, text: str, at: int | None) -> Self:
        """A fault as people write it: ``timeout``, ``error@7``, ``slow:2@7``.

        Args:
            text: the fault.
            at: the step it happens at where it names none.

        Raises:
            PolicyError: it is none, or names no step.
        """
        found = _FAULT.fullmatch(text.strip())
        if found is None or found["kind"] not in FAULTS or (found["seconds"] and found["kind"] != "slow"):
            raise PolicyError(f"a fault is one of {', '.join(FAULTS)}, with @STEP behind it (error@7, slow:2@7); found {text!r}")
        step = int(found["step"]) if found["step"] else at
        if step is None:
            raise PolicyError(f"the fault {text!r} names no step; write {text}@STEP")
        return cls(kind=cast("FaultKind", found["kind"]), step=step, seconds=float(found["seconds"] or SLOW_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a call that began and never ended."""

    step: int
    choice: Choice
    """``done``: it acted, and gave ``result``. ``again``: it did not, and is made now. ``fail``: the agent is told that it failed."""
    result: str = "null"
    """JSON text."""
    run: str | None = None
    """How the id of its run begins; ``None`` for the run that the policy names, or the only one that has such a call."""

    @classmethod
    def read(cls, text: str) -> Self:
        """A decision as people write it: ``7=again``, ``7=fail``, ``7=done:"sent"``; of one run among several ``4f2a:7=again``.

        Raises:
            PolicyError: it is none.
        """
        place, equals, what = text.partition("=")
        run, colon, step = place.rpartition(":")
        choice, _, result = what.partition(":")
        if not equals or not step.isdigit() or bool(colon) != bool(run) or choice not in CHOICES or (result and choice != "done"):
            raise PolicyError(f"a decision is STEP=done:JSON, STEP=again or STEP=fail, or RUN:STEP=…; found {text!r}")
        if choice == "done" and not result:
            raise PolicyError(f"{text!r} does not say what the call gave: {place}=done:JSON, and {place}=done:null where it gave nothing")
        return cls(step=int(step), choice=choice, result=_json(result or "null", f"the result in {text!r}"), run=run or None)

    def is_on(self, run_id: str, step: int, named: str | None) -> bool:
        """Whether it is about this step.

        Args:
            run_id: of the step's run.
            step: its number there.
            named: id of the run that is meant where none is named.
        """
        return self.step == step and (run_id.startswith(self.run) if self.run is not None else named in (None, run_id))

    @property
    def place(self) -> str:
        """The step as people write it."""
        return f"{self.step}" if self.run is None else f"{self.run}:{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is live. The default: nothing."""

    run: str | None = None
    """The run whose steps are meant wherever a step is named by its number."""
    at: int | None = None
    """A fork: the steps before this one are answered from the record, everything from it on is live."""
    leave: bool = False
    """After the first difference it goes on as a fork."""
    finish: bool = False
    """What had ended when the run crashed is answered from the record; what had not is live."""
    only: int | None = None
    """This step is live, everything else is answered."""
    models: bool = False
    """Model calls are live, everything else is answered."""
    live: tuple[str, ...] = ()
    """Tools that are live."""
    live_read: tuple[str, ...] = ()
    """Tools that are live as long as their effect is ``read``."""
    refuse: tuple[str, ...] = ()
    """Tools that are answered in no way: a call of one is refused."""
    stub: tuple[str, ...] = ()
    """Tools that are answered in a live part too, where the very call is in the record."""
    allow_effect: tuple[str, ...] = ()
    """Tools that may act though their effect is above ``read``."""
    target: str | None = None
    """Where live tools act, as the user names it; not where the run was recorded."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What live calls are changed in: ``model``, ``prompt``, any parameter of a model call; ``result`` of the tool at step ``at``."""
    faults: tuple[Fault, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is live, refused or injected."""
        return self != NOTHING

    @property
    def is_fork(self) -> bool:
        """Whether it leaves the record: what comes after is another run, and is not compared with the recorded one."""
        return self.at is not None or self.leave or self.finish

    @property
    def is_kept(self) -> bool:
        """Whether the re-execution is recorded as a run of its own."""
        return self.is_fork or self.models or self.only is not None or bool(self.live or self.live_read or self.faults)

    @property
    def lets_models_run(self) -> bool:
        """Whether a model call may be live."""
        return self.is_fork or self.models or self.only is not None or bool(self.live or self.live_read)

    @property
    def lets_tools_run(self) -> bool:
        """Whether a tool may be live, which only a guard in this process can tell from the agent's own acts."""
        return self.is_fork or self.only is not None or bool(self.live or self.live_read)

    def to_json(self) -> dict[str, Any]:
        """As in the plan of a replayed command."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read :meth:`to_json` back."""
        lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
        faults = tuple(Fault(**fault) for fault in found["faults"])
        decisions = tuple(Decision(**decision) for decision in found["decisions"])
        return cls(**{**found, **lists, "faults": faults, "decisions": decisions})


NOTHING: Final = Policy()
"""Nothing is live."""


def read_change(text: str) -> tuple[str, Any]:
    """``KEY=VALUE`` as people write it: the value is JSON where it is any, else the text itself; that of ``result`` is JSON.

    Raises:
        PolicyError: there is no ``=``, no key, or no value; or it was meant to be JSON and is none.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise PolicyError(f"a change is KEY=VALUE, such as model=gpt-5-mini, prompt=…, temperature=0 or result=JSON; found {text!r}")
    if key == "prompt":
        return key, value
    if not value:
        raise PolicyError(
            f"{key}= has no value; {'name a model' if key == 'model' else 'null takes it out, and an empty text is written as JSON'}"
        )
    if key == "model":
        if not value.strip():
            raise PolicyError("model= has no value; name a model")
        return key, value
    if key == RESULT:
        return key, json.loads(_json(value, f"the result in {text!r}"))
    try:
        known = json.loads(value)
    except (ValueError, RecursionError):
        if value.lstrip()[:1] in _OPENING:
            _json(value, f"the value in {text!r}")
        return key, value
    _json(value, f"the value in {text!r}")
    return key, known


_OPENING: Final = frozenset('{["')
"""What begins with these is meant as JSON."""


def _json(text: str, what: str) -> str:
    """The text, which is JSON.

    Raises:
        PolicyError: it is none, or has numbers that JSON has not.
    """
    try:
        json.dumps(json.loads(text), allow_nan=False)
    except (ValueError, RecursionError) as error:
        quoted = "" if text.lstrip()[:1] in _OPENING else "; a text needs double quotes"
        raise PolicyError(f"{what} is no JSON{quoted}: {error}") from error
    return text

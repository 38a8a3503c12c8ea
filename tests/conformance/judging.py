"""Whether what a replay did is what has to hold."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from conformance.driver import Difference
from conformance.scenario import Scenario

Status: TypeAlias = Literal["pass", "fail", "skipped"]

_SHOWN: Final = 110
_AROUND: Final = 24
_NO_END: Final = "it did not end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What was seen of one recording or replay."""

    ended: bool = True
    value: str | None = None
    error: str | None = None
    differences: Sequence[Difference] = ()
    requests: int = 0
    bodies: Sequence[str] = ()
    acts: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One cell of the table."""

    status: Status
    detail: str = ""
    """Of a failure what was seen, of what was skipped why, of a change where it was said to be."""

    def to_json(self) -> dict[str, Any]:
        """For the results file."""
        return {"status": self.status, "detail": self.detail}


@dataclass(slots=True)
class _Wrongs:
    found: list[str] = field(default_factory=list)

    def verdict(self, passed: str = "") -> Verdict:
        return Verdict(status="fail", detail="; ".join(self.found)) if self.found else Verdict(status="pass", detail=passed)


def judge(scenario: Scenario, recorded: Phase, replayed: Phase, control: Phase | None = None) -> Verdict:
    """The verdict of a scenario.

    Args:
        scenario: what is expected.
        recorded: the recording.
        replayed: the replay.
        control: the replay of the unchanged program, where ``replayed`` is one of a changed program; it has to differ in nothing. What
            runs live in it is judged by other scenarios.
    """
    spoiled = recording_spoiled(scenario, recorded)
    if spoiled:
        return Verdict(status="fail", detail=f"while recording: {spoiled}")
    if control is not None:
        unchanged = _Wrongs()
        _differing(recorded, control, unchanged)
        if unchanged.found:
            return Verdict(status="fail", detail=f"unchanged already: {'; '.join(unchanged.found)}")
    if scenario.expect == "same":
        return _same(recorded, replayed).verdict()
    wrongs = _live(replayed)
    if not replayed.ended:
        wrongs.found.append(_NO_END)
    if scenario.expect == "contained":
        return wrongs.verdict()
    if replayed.error is None and not replayed.differences:
        wrongs.found.append("the change was not noticed")
    where = _where(scenario, replayed.differences, wrongs)
    return wrongs.verdict(where)


def recording_spoiled(scenario: Scenario, recorded: Phase) -> str:
    """What a recording did to the program; empty when nothing."""
    if not recorded.ended:
        return _NO_END
    if recorded.error is not None or recorded.value is None:
        return _short(recorded.error or "no output")
    seen = (recorded.requests, len(recorded.bodies), len(recorded.acts))
    wanted = (scenario.requests, scenario.bodies, scenario.effects)
    if seen != wanted:
        return "wanted {} model requests, {} tool bodies, {} acts".format(*wanted) + ", saw {}, {}, {}".format(*seen)
    return ""


def _live(replayed: Phase) -> _Wrongs:
    wrongs = _Wrongs()
    if replayed.acts:
        wrongs.found.append("acted outside: " + ", ".join(replayed.acts))
    if replayed.bodies:
        counted = Counter(replayed.bodies)
        wrongs.found.append("tool bodies ran: " + ", ".join(f"{n} {name}" for name, n in counted.items()))
    if replayed.requests:
        wrongs.found.append(f"{replayed.requests} live model request{'s' * (replayed.requests > 1)}")
    return wrongs


def _same(recorded: Phase, replayed: Phase) -> _Wrongs:
    wrongs = _live(replayed)
    _differing(recorded, replayed, wrongs)
    return wrongs


def _differing(recorded: Phase, replayed: Phase, wrongs: _Wrongs) -> None:
    """What an unchanged program has of a difference: an end before its end, another output, a difference that is told."""
    if not replayed.ended:
        wrongs.found.append(_NO_END)
    if replayed.error is not None:
        told = "".join(f" ({_short(d.text)})" for d in replayed.differences[:1] if d.text not in replayed.error)
        wrongs.found.append(f"stopped: {_short(replayed.error)}{told}")
    elif replayed.ended and replayed.value != recorded.value:
        wrongs.found.append(f"another output: {_apart(recorded.value or '', replayed.value or '')}")
    if replayed.differences and replayed.error is None:
        wrongs.found.append(f"told a difference where there is none: {_short(replayed.differences[0].text)}")


def _where(scenario: Scenario, differences: Sequence[Difference], wrongs: _Wrongs) -> str:
    """Where the change was said to be: of the first difference. A wrong place is a failure, none is not."""
    if not differences:
        return ""
    first = differences[0]
    if first.step is not None and first.step not in scenario.steps:
        wrongs.found.append(f"said to be at step {first.step}, and is at {' or '.join(map(str, scenario.steps))}")
    if first.field is not None and scenario.field not in first.field:
        wrongs.found.append(f"said to be in {first.field}, and is in {scenario.field}")
    said = [f"step {first.step}"] if first.step is not None else []
    return ", ".join([*said, *([first.field] if first.field is not None else [])])


def _apart(recorded: str, replayed: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(recorded, replayed, strict=False)) if a != b), min(len(recorded), len(replayed)))
    start = max(0, at - _AROUND // 2)
    return f"{recorded[start : at + _AROUND]!a} came back as {replayed[start : at + _AROUND]!a}"


def _short(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

"""What was live in a re-execution, where it left the record, and what it was kept as, as lines for people."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from spanreplay.replay.lines import DIM, LOUD, Line, Piece
from spanreplay.replay.model import Step
from spanreplay.replay.showing import safe, short_id

if TYPE_CHECKING:  # a list of runs need not wait for what re-executes them
    from spanreplay.replay.reexecution.verdict import Verdict

_NAMED: Final = 6
_NEVER_ANSWERED: Final = frozenset({"agent", "handoff", "decision"})


def fork_notes(step: Step, *, forked: bool = False) -> list[str]:
    """What a fork did at one of its steps: nothing of a step in any other run.

    Args:
        step: the step.
        forked: its run is a fork: what was answered from no record was live, also in the place of no recorded step.
    """
    notes = [f"answered from step {step.answered_from[1]}"] if step.answered_from is not None else []
    if step.answered_from is None and not step.injected:
        new = forked and not step.passed and step.kind not in _NEVER_ANSWERED
        notes += [f"{_how(step)} for step {step.stands_for}"] if step.stands_for is not None else ["live"] if new else []
    notes += [f"{safe(step.injected)} injected"] if step.injected else []
    notes += [f"changed: {safe(', '.join(step.changed))}"] if isinstance(step.changed, dict) else []
    return notes


def _how(step: Step) -> str:
    changed = step.changed if isinstance(step.changed, dict) else {}
    return "decided" if "decision" in changed else "given" if "result" in changed and step.kind != "model_call" else "live"


def ran_live(verdict: "Verdict") -> int:
    """How many calls were live, or failed on purpose: not those that were given a result."""
    return sum(not call.get("given") for call in verdict.live)


def live_lines(verdict: "Verdict") -> list[Line]:
    """Where it left the record, what was live, and what was changed or failed on purpose."""
    lines: list[Line] = []
    faults: list[Line] = []
    for left in verdict.left:
        place = "" if left["step"] is None else f" at step {left['step']}"
        lines.append([Piece(safe(f"left the record{place}, {left['name']}: live from there"), LOUD)])
    for how, words in (("set", "given by --set, not called"), ("decided", "decided, not called"), (None, "live")):
        ran = Counter(call["name"] for call in verdict.live if not call["injected"] and call.get("given") == how)
        if ran:
            told = [name if number == 1 else f"{name} (x{number})" for name, number in ran.items()]
            more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
            lines.append([Piece(safe(f"{words}: {', '.join(told[:_NAMED])}{more}"))])
    changed = Counter(", ".join(call["changed"]) for call in verdict.live if call["changed"] and not call.get("given"))
    lines += [[Piece(safe(f"changed: {what}, in {number} call{'' if number == 1 else 's'}"))] for what, number in changed.items()]
    again = 0
    for call in reversed(verdict.live):
        if call["injected"] and call["step"] is None:
            again += 1
        elif call["injected"]:
            attempts = f", and into {again} further attempt{'' if again == 1 else 's'}" if again else ""
            faults.append([Piece(safe(f"injected at step {call['step']}: {call['injected']}, into {call['name']}{attempts}"))])
            again = 0
    return [*lines, *reversed(faults), *(_unmet(unmet, whole=verdict.equal) for unmet in verdict.never_reached)]


def _unmet(unmet: Mapping[str, Any], *, whole: bool) -> Line:
    step, value = unmet["step"], unmet["value"]
    match unmet["what"]:
        case "fork" if whole:
            return [Piece(f"step {step} was never reached: everything was answered from the record, and nothing was live", LOUD)]
        case "fork":
            what = f"step {step}, from where on it was to be live"
        case "fault":
            what = f"the fault {value} at step {step}"
        case "set":
            what = f"a call whose {value} was to be changed" if step is None else f"step {step}, whose {value} was to be given"
        case "decide":
            what = f"step {step}, decided as {value}"
        case "only":
            what = f"step {step}, to be live"
        case _:
            what = f"a call of {value}, to be live"
    if unmet.get("refused"):
        return [Piece(safe(f"reached, and refused: {what}"), LOUD)]
    return [Piece(safe(f"never reached: {what}: the run ended before, or went another way"), LOUD)]


def kept_lines(verdict: "Verdict") -> list[Line]:
    """The new runs, and those they are forked from."""
    named = verdict.begun
    lines: list[Line] = [
        [Piece(f"kept as run {short_id(new)}, forked from {short_id(of)}: spanreplay show {short_id(new)}")]
        for new, of in list(named.items())[:_NAMED]
    ]
    if len(named) > _NAMED:
        lines.append([Piece(f"and {len(named) - _NAMED} more runs: spanreplay runs", DIM)])
    return lines

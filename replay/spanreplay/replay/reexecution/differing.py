"""Differences as they are entered: step, field, the diff of the whole input, the nearest recorded calls, and what tells the cause."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import FrameType
from typing import Any, Final

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation.probes import is_installed
from spanreplay.replay.isolation.callers import is_ours, user_line
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.changed_texts import skill_texts
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.diff import ABSENT, ValueDifference, differences, shown, unified
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.forms import comparable, parsed, telling
from spanreplay.replay.reexecution.ledger import Difference, DifferenceKind
from spanreplay.replay.reexecution.likening import named_keys
from spanreplay.replay.reexecution.matched import Missed
from spanreplay.replay.reexecution.matching import RecordedRun
from spanreplay.replay.reexecution.nearest import nearest
from spanreplay.replay.reexecution.places import Keys
from spanreplay.replay.reexecution.stepwise import step_changes
from spanreplay.semconv.attributes import GEN_AI_SKILL_SOURCE_URI

_FIELDS: Final = 50
"""Differing values of one input that are named."""
_BESIDE: Final = 10
_PACKAGES: Final = 12
_FRAMES: Final = 200
_MOST: Final = 1000


def of_input(
    step: LiveStep, expected: Step, recorded: RecordedRun, wanted: str | None, asked: str | None, comparing: Comparing, where: str | None
) -> list[Difference]:
    """Every value that counts in which the input of a call differs from that of its recorded step; the first has the diff of the whole.

    Args:
        step: the call.
        expected: its recorded step.
        recorded: the run of that.
        wanted: the comparable input of the recorded step.
        asked: the comparable input of the call.
        comparing: what does not count.
        where: ``file:line`` of the call, where it is another one than this.
    """
    found = _counted(wanted, asked, comparing, lambda keys: named_keys(expected, keys))
    made = [
        Difference(
            kind="input",
            run_id=recorded.run.run_id,
            step=expected.seq,
            name=f"{expected.kind} {expected.name}",
            where=where or user_line(sys._getframe(1)),
            **_value(value),
        )
        for value in found
    ]
    if not made:  # they differ as texts only
        name = f"{expected.kind} {expected.name}"
        left, right, _ = ValueDifference(keys=(), recorded=wanted, actual=asked).texts()
        made = [
            Difference(
                kind="input",
                run_id=recorded.run.run_id,
                step=expected.seq,
                name=name,
                field="input",
                recorded=left,
                actual=right,
                where=where,
            )
        ]
    changed = [*step_changes(expected, step, parsed(asked)), *recorded.changed]
    evidence = {"changed": changed, "packages": packages(sys._getframe(1))}
    return _whole(made, parsed(wanted), parsed(asked), evidence)


def of_meaning(step: LiveStep, expected: Step, run_id: str | None, wanted: Any, asked: Any, comparing: Comparing) -> list[Difference]:
    """The same of a step that others recorded.

    Args:
        step: the call.
        expected: the recorded step.
        run_id: of its run.
        wanted: what that asked, as far as it is compared.
        asked: what the call asks, as far as it is compared.
        comparing: what does not count.
    """
    found = _values(wanted, asked, comparing, lambda keys: meant_keys(expected, keys))
    name, where = f"{expected.kind} {expected.name}", user_line(sys._getframe(1))
    made = [Difference(kind="input", run_id=run_id, step=expected.seq, name=name, where=where, **_value(value)) for value in found]
    made = made or [Difference(kind="input", run_id=run_id, step=expected.seq, name=name, field="input", where=where)]
    evidence = {"changed": step_changes(expected, step, parsed(step.input)), "packages": packages(sys._getframe(1))}
    return _whole(made, wanted, asked, evidence)


def let_differ(expected: Step, wanted: Any, asked: Any, comparing: Comparing) -> tuple[ValueDifference, ...] | None:
    """What differs of a step that others recorded, where none of it counts; ``None`` where some does."""
    if not comparing.tolerant:
        return None
    found = [
        ValueDifference(keys=meant_keys(expected, value.keys), recorded=value.recorded, actual=value.actual)
        for value in islice(differences(wanted, asked), _MOST)
    ]
    counts = len(found) == _MOST or any(not comparing.ignores(value.keys, value.recorded, value.actual) for value in found)
    return None if counts else tuple(found)


def meant_keys(step: Step, keys: Keys) -> Keys:
    """A place in what others recorded, as differences name it."""
    return ("arguments", *keys) if step.kind == "tool_call" and keys else keys


def of_run_input(recorded: RecordedRun, name: str, wanted: str | None, asked: str | None, comparing: Comparing) -> list[Difference]:
    """The same of what a run was asked; nothing, where nothing that counts differs."""
    if wanted == asked:
        return []
    found = _counted(wanted, asked, comparing, lambda keys: ("input", *keys))
    where = user_line(sys._getframe(1))
    made = [Difference(kind="input", run_id=recorded.run.run_id, step=None, name=name, where=where, **_value(value)) for value in found]
    return _whole(made, parsed(wanted), parsed(asked), {"packages": packages(sys._getframe(1))})


def of_output(
    run_id: str | None,
    seq: int | None,
    name: str,
    wanted: str,
    got: str | None,
    comparing: Comparing,
    evidence: Mapping[str, Any] | None = None,
) -> list[Difference]:
    """The same of what a run or a passed step gave, with further evidence."""
    found = _counted(wanted, got, comparing, lambda keys: ("output", *keys))
    made = [Difference(kind="output", run_id=run_id, step=seq, name=name, **_value(value)) for value in found]
    return _whole(made, parsed(wanted), parsed(got), dict(evidence or {}))


def of_end(
    run_id: str | None, seq: int | None, step: LiveStep, outcome: str, result: str | None, comparing: Comparing
) -> Iterator[Difference]:
    """How the end of a run or of a passed step differs from the recorded ``outcome`` and ``result``."""
    name = f"{step.call.kind} {step.call.name}"
    if outcome not in ("unknown", step.outcome):
        recorded, actual = shown(outcome), shown(step.outcome)
        yield Difference(kind="outcome", run_id=run_id, step=seq, name=name, field="outcome", recorded=recorded, actual=actual)
    wanted, got = comparable(result), comparable(step.result)
    if wanted is not None and wanted != got and outcome == "ok":
        source = step.call.attributes.get(GEN_AI_SKILL_SOURCE_URI)
        skill = {"skill": skill_texts(parsed(wanted), parsed(got), str(source))} if source is not None else None
        found = of_output(run_id, seq, name, wanted, got, comparing, skill)
        yield from each(found) if comparing.all_differences else found[:1]


def of_leaving(run_id: str | None, found: Step, step: LiveStep) -> Difference:
    """A stream that was read to its end, and is now left before."""
    return Difference(
        kind="outcome",
        run_id=run_id,
        step=found.seq,
        name=f"{found.kind} {found.name}",
        field="outcome",
        recorded=shown("ok"),
        actual=shown(step.outcome),
        detail="it was read to its end, and is now left before",
    )


def of_call(
    step: LiveStep,
    kind: DifferenceKind,
    expected: Step | None,
    recorded: RecordedRun | None,
    asked: str | None,
    detail: str,
    where: str | None,
    alike: Sequence[Step] = (),
) -> Difference:
    """A call that is not to come now, or is in no record.

    Args:
        step: the call.
        kind: what of it differs.
        expected: the recorded step that is concerned, if any.
        recorded: the run.
        asked: the comparable input of the call.
        detail: said of it.
        where: ``file:line`` of the call, where it is another one than this.
        alike: recorded calls that may be near.
    """
    named = step.call if expected is None else expected
    return Difference(
        kind=kind,
        run_id=None if recorded is None else recorded.run.run_id,
        step=None if expected is None else expected.seq,
        name=f"{named.kind} {named.name}",
        actual=None if asked is None else shown(telling(step.call.kind, parsed(asked))),
        detail=detail,
        where=where or user_line(sys._getframe(1)),
        nearest=() if recorded is None else nearest(recorded, alike, asked),
        evidence={"removed": [], "added": fragments(ABSENT, parsed(asked))[1], "packages": packages(sys._getframe(1))},
    )


def each(made: Sequence[Difference]) -> Iterator[Difference]:
    """The differences of one value, each by itself: none names the others, which are told too."""
    return (replace(difference, also=()) for difference in made)


def told_again(made: Sequence[Difference], known: dict[tuple[str | None, ...], int]) -> Iterator[Difference]:
    """The differences of one step, each by itself; one that was told at an earlier step already names that step.

    Args:
        made: the differences of one step.
        known: what was told so far; added to.
    """
    for difference in each(made):
        key = (difference.run_id, difference.field, difference.recorded, difference.actual)
        first = known.setdefault(key, difference.step or 0)
        yield replace(difference, same_as=None if first == (difference.step or 0) else first)


def unknown_detail(missed: Missed) -> str:
    """What is said of a call that no recorded step is left for."""
    again = missed.kind == "already_used"
    what = "one call more than was recorded: the same was asked and answered before" if again else "it was never recorded"
    if missed.next is not None:
        what += f"; step {missed.next.seq}, {missed.next.kind} {missed.next.name}, was to come next"
    return what


def with_again(difference: Difference, again: Step | None) -> Difference:
    """The difference, with what else it may be where the call before asked just this."""
    if again is None:
        return difference
    return replace(difference, detail=f"or it is one call more than was recorded: step {again.seq}, the one before, asked just this")


def packages(frame: FrameType | None) -> list[str]:
    """The installed packages between a call and the user's own line that made it, by their import names."""
    found: dict[str, None] = {}
    for _ in range(_FRAMES):
        if frame is None or len(found) == _PACKAGES:
            break
        file, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
        if isinstance(module, str) and not is_ours(module, file):
            if not is_installed(file) and not file.startswith("<") and user_line(frame) == f"{file}:{frame.f_lineno}":
                break
            if is_installed(file):
                found[module.partition(".")[0]] = None
        frame = frame.f_back
    return list(found)


def _counted(wanted: str | None, asked: str | None, comparing: Comparing, name: Callable[[Keys], Keys]) -> list[ValueDifference]:
    return _values(parsed(wanted), parsed(asked), comparing, name)


def _values(wanted: Any, asked: Any, comparing: Comparing, name: Callable[[Keys], Keys]) -> list[ValueDifference]:
    found = (ValueDifference(keys=name(value.keys), recorded=value.recorded, actual=value.actual) for value in differences(wanted, asked))
    return list(islice((v for v in found if not comparing.ignores(v.keys, v.recorded, v.actual)), _FIELDS))


def _value(value: ValueDifference) -> dict[str, Any]:
    left, right, _ = value.texts()
    removed, added = fragments(value.recorded, value.actual)
    evidence = {"keys": list(_short(value.keys)), "removed": removed, "added": added}
    return {"field": value.path or "input", "recorded": left, "actual": right, "evidence": evidence}


def _short(keys: Keys) -> Keys:
    return keys[:20]


def is_reordered(wanted: Any, asked: Any) -> bool:
    """Whether two requests offer the same tools in another order."""
    was, now = ([canonical_json(tool) for tool in _tools(side)] for side in (wanted, asked))
    return was != now and sorted(was) == sorted(now)


def _tools(asked: Any) -> list[Any]:
    """The tools that a request offers; Gemini, and Bedrock, have lists of them one level below."""
    body = asked.get("body", asked) if isinstance(asked, dict) else None
    tools = body.get("tools", body.get("toolConfig")) if isinstance(body, dict) else None
    tools = tools.get("tools") if isinstance(tools, dict) else tools
    found: list[Any] = []
    for tool in tools if isinstance(tools, list) else ():
        below = tool.get("functionDeclarations") if isinstance(tool, dict) else None
        found += below if isinstance(below, list) else [tool]
    return found


def _whole(made: list[Difference], wanted: Any, asked: Any, evidence: dict[str, Any]) -> list[Difference]:
    """The first of them with the diff of the whole input and the names of the others."""
    if not made:
        return made
    first, others = made[0], [d.field for d in made[1:] if d.field is not None]
    diff = unified(wanted, asked)
    if is_reordered(wanted, asked):
        evidence = {**evidence, "reordered": True}
    if len(made) > 1:
        evidence = {**evidence, "beside": [text for d in made[1:_BESIDE] for text in (d.evidence or {}).get("added", ())]}
    return [
        replace(first, diff=diff, also=tuple(others), evidence={**(first.evidence or {}), **evidence}),
        *(replace(d, evidence={**(d.evidence or {}), **evidence}) for d in made[1:]),
    ]

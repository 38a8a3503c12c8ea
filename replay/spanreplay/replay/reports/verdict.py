"""The result of a re-execution as text for people."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from spanreplay.replay.forked_lines import kept_lines, live_lines, ran_live
from spanreplay.replay.isolation.refusal import FILES
from spanreplay.replay.lines import BAD, DIM, GOOD, LOUD, Line, Piece, rendered
from spanreplay.replay.model import GRADE_ORDER, GRADE_WORDS, Grade, Run
from spanreplay.replay.reexecution.ledger import CHANGE, Difference
from spanreplay.replay.reexecution.unmade import told
from spanreplay.replay.reexecution.verdict import Verdict
from spanreplay.replay.showing import safe

_DIFF_LINES = 16
_LONG = 100
"""Characters of a value from which on it is shown as a diff too."""
_NAMED = 6


def render_verdict(verdict: Verdict, runs: Sequence[Run], *, colour: bool | None = None, whole: bool = False) -> str:
    """What was answered, what differs, what was refused, and what was not judged.

    Args:
        verdict: the result.
        runs: the runs it was judged against.
        colour: with terminal colours; left out, whether stdout is a terminal that wants them.
        whole: with all that was ignored, and with diffs as long as they are.
    """
    lines = [[Piece(_answered(verdict))]]
    for difference in verdict.differences:
        if difference.same_as is None:
            lines += _difference(difference, whole=whole)
    lines += _again(verdict)
    for difference in verdict.drift:
        lines += _difference(difference, "drift", whole=whole)
    lines += _ignored(verdict, whole=whole)
    lines += live_lines(verdict)
    lines += _notes(verdict, runs)
    if verdict.processes == 0:
        lines.append([Piece("nothing was replayed", BAD)])
        return rendered(lines, colour)
    number = sum(difference.same_as is None for difference in verdict.differences)
    lines.append([Piece(f"{number} difference{'' if number == 1 else 's'}", BAD if number else GOOD)])
    if calls := sum(not difference.name.startswith("agent ") for difference in verdict.drift):
        lines.append([Piece(f"{calls} live call{'' if calls == 1 else 's'} gave something else", BAD)])
    changes = sum(refusal.get("action") == CHANGE for refusal in verdict.refusals)
    for refused, what in (
        (len(verdict.refusals) - changes, ("action on the outside", "actions on the outside")),
        (changes, ("change", "changes")),
    ):
        if refused:
            lines.append([Piece(f"{refused} {what[refused > 1]} refused", BAD)])
    grades = {run.grade for run in runs}
    worst: Grade | None = next((grade for grade in GRADE_ORDER[::-1] if grade in grades), None)
    if worst is not None and worst != "exact":
        judged = " and is judged as far as it goes" if worst == "incomplete" and verdict.accept_incomplete else ""
        lines.append([Piece(f"the record {'is ' if worst in ('structure', 'incomplete') else ''}{GRADE_WORDS[worst]}{judged}")])
    lines.append([Piece(f"isolation: {verdict.isolation}", DIM)])
    lines += kept_lines(verdict)
    return rendered(lines, colour)


def _probes(notices: Sequence[Mapping[str, Any]]) -> str:
    """What was asked, each once: a process by its executable and first argument; all of it is in the JSON."""
    found: dict[str, None] = {}
    for notice in notices:
        action, target = str(notice.get("action")), str(notice.get("target"))
        words = target.split()
        short = " ".join((PurePath(words[0]).name, *words[1:2])) if action == "process" and words else target
        found.setdefault(short if action == "process" else f"{action} {short}")
    return ", ".join(found)


def _notes(verdict: Verdict, runs: Sequence[Run]) -> list[Line]:
    """What was refused, left out, or not compared."""
    lines: list[Line] = []
    tried = Counter(str(refusal.get("text")) for refusal in verdict.refusals)  # a library can try to connect without end
    acts = {str(refusal.get("text")): refusal for refusal in verdict.refusals}
    for text, refusal in acts.items():
        often = "" if tried[text] == 1 else f" ({tried[text]} times)"
        lines.append([Piece(safe(f"refused: {text}{often}"), BAD)])
        if refusal.get("action") in FILES and (allowed := _paths(str(refusal.get("action")), str(refusal.get("target")))):
            options = " ".join(f"--allow-write {shlex.quote(path)}" for path in allowed)
            lines.append([Piece(safe(f"  to let the agent write it: {options}"), DIM)])
    if verdict.notices:
        lines.append([Piece(safe(f"note: refused, as libraries' probes and no attempts: {_probes(verdict.notices)}"), DIM)])
    for facts in verdict.alone:
        what = ", ".join(facts["names"][:_NAMED])
        lines.append([Piece(safe(f"note: not changed again, as it is not what the tool of step {facts['step']} was given then: {what}"))])
    if not any(difference.cause_kind == "error_class" for difference in verdict.differences):
        lines += [[Piece(safe(f"note: {told(facts)}"))] for facts in verdict.unmade]
    lines += [[Piece(safe(f"note: a difference may come from missing state: {text}"))] for text in verdict.missing_state]
    if verdict.telemetry_dropped:
        lines.append([Piece(f"note: telemetry was not sent ({verdict.telemetry_dropped} connections)", DIM)])
    if verdict.not_compared:
        lines.append([Piece(f"note: not compared, as the record does not show it: {', '.join(verdict.not_compared)}", DIM)])
    if (number := verdict.matched_by_chance) > 0:
        calls = "1 call was" if number == 1 else f"{number} calls were"
        why = "several recorded at once ask the same, have other answers, and nothing tells which is which"
        advice = "" if verdict.matched_by_meaning else "; around each item of a worker that takes from a queue, with scope(key): would"
        lines.append([Piece(f"note: {calls} answered by one of several recorded calls, by chance: {why}{advice}", DIM)])
    if verdict.inside:
        lines.append([Piece(safe(f"note: not compared, as the tool around it was answered whole: {_inside(verdict, runs)}"), DIM)])
    return lines


def _inside(verdict: Verdict, runs: Sequence[Run]) -> str:
    """What was called inside answered tools, by name, with the numbers of the steps."""
    places: dict[str, list[int]] = {}
    steps = {(run.run_id, step.seq): step for run in runs for step in run.steps}
    for place in verdict.inside:
        step = steps.get(place)
        if step is None:  # it is behind the place where a fork left the record
            places.setdefault("calls", []).append(place[1])
        else:
            agent = f" of {step.agent}" if step.agent and step.kind != "agent" else ""
            places.setdefault(f"{step.kind} {step.name}{agent}", []).append(step.seq)
    told = [f"{what} (step{'s' if len(at) > 1 else ''} {_some(at)})" for what, at in places.items()]
    return ", ".join(told[:_NAMED]) + (f" and {len(told) - _NAMED} more" if len(told) > _NAMED else "")


def _some(places: Sequence[int]) -> str:
    return ", ".join(map(str, places[:_NAMED])) + (" …" if len(places) > _NAMED else "")


def _paths(action: str, target: str) -> list[str]:
    """The paths of a refusal: two of a rename; none where the text does not tell where one ends."""
    if target.startswith(("/proc/", "/sys/", "/dev/")):
        return []  # no files that an agent keeps
    between = {"rename": " to ", "link": " for "}.get(action)
    paths = target.split(between) if between else [target]
    return paths if len(paths) <= (2 if between else 1) else []


def _answered(verdict: Verdict) -> str:
    if verdict.left:  # how many could have answered is not known: what comes after need not be as it was
        text = f"{verdict.matched} recorded step{'' if verdict.matched == 1 else 's'} answered a call"
    else:
        text = f"{verdict.matched} of {verdict.recorded} recorded steps answered a call"
    if live := ran_live(verdict):
        text += f", {live} {'was' if live == 1 else 'were'} live"
    if verdict.matched_by_meaning:
        text += (
            ", found by their meaning" if verdict.matched_by_meaning == verdict.matched else f", {verdict.matched_by_meaning} by meaning"
        )
    if verdict.covered:
        text += f", {verdict.covered} ran inside an answered tool"
    if verdict.passed:
        text += f", {sum(verdict.passed.values())} needed no answer ({', '.join(verdict.passed)})"
    if verdict.told_by_others:
        text += f", {verdict.told_by_others} {'was' if verdict.told_by_others == 1 else 'were'} told of by other instrumentation alone"
    if verdict.matched_by_input:
        text += f"; {verdict.matched_by_input} matched by input, away from their place"
    if verdict.matched_by_renaming:
        text += f"; {verdict.matched_by_renaming} matched by renaming, as ids or times that the program makes itself are others"
    if verdict.matched_by_tolerance:
        text += f"; {verdict.matched_by_tolerance} matched by tolerance"
    if verdict.matched_by_place:
        text += f"; {verdict.matched_by_place} matched by place, though their input differs"
    if verdict.order_relaxed:
        text += f"; {verdict.order_relaxed} finished out of the recorded order"
    return text


def _difference(difference: Difference, what: str = "difference", *, whole: bool = False) -> list[Line]:
    if difference.step is not None:
        place = f"step {difference.step}"
    else:
        place = "a call that is not in the record" if difference.kind in ("never_recorded", "already_used") else "the run"
    lines: list[Line] = [[Piece(safe(f"{what} at {place}: {difference.name}"), LOUD)]]
    if difference.field is not None:
        lines.append([Piece(safe(f"  {difference.field}"))])
    if difference.field is not None or difference.recorded is not None:
        lines.append([Piece(safe(f"    recorded: {difference.recorded}"))])
    if difference.instead is not None:
        lines.append([Piece(safe(f"    instead:  {difference.instead}{'' if difference.actual is None else f': {difference.actual}'}"))])
    elif difference.actual is not None:
        lines.append([Piece(safe(f"    actual:   {difference.actual}"))])
    if difference.also:
        more = f" and {len(difference.also) - _NAMED} more" if len(difference.also) > _NAMED else ""
        lines.append([Piece(safe(f"  also: {', '.join(difference.also[:_NAMED])}{more}"))])
    if difference.detail:
        lines.append([Piece(safe(f"  {difference.detail}"))])
    lines += _nearest(difference)
    if difference.diff and (whole or any(_is_long(text) for text in (difference.recorded, difference.actual))):
        diff = difference.diff.splitlines()[2:]
        shown = diff if whole else diff[:_DIFF_LINES]
        lines += [[Piece(safe(f"    {line}"), BAD if line[:1] == "-" else GOOD if line[:1] == "+" else DIM)] for line in shown]
        if len(shown) < len(diff):
            lines.append([Piece(f"    … {len(diff) - len(shown)} more lines; -v shows them", DIM)])
    if difference.cause:
        lines.append([Piece(safe(f"  cause: {difference.cause}"))])
    if difference.where:
        did = "ended" if difference.kind in ("unreached", "exit_code") and difference.instead is None else "called"
        lines.append([Piece(safe(f"  {did} at {difference.where}"), DIM)])
    return lines


def _is_long(text: str | None) -> bool:
    return text is not None and (len(text) > _LONG or text[:1] in "{[")


def _nearest(difference: Difference) -> list[Line]:
    """The nearest recorded calls, the nearest first, each with what differs."""
    lines: list[Line] = []
    for near in difference.nearest:
        where = f"step {near['step']}, {near['name']}{' (it has answered a call)' if near['answered'] else ''}"
        if not near["differs"]:
            told = "asked the same"
        else:
            more = f", and {near['differs'] - 1} more" if near["differs"] > 1 else ""
            told = f"{near['field']}: recorded {near['recorded']}, actual {near['actual']}{more}"
        lines.append([Piece(safe(f"    near: {where}: {told}"), DIM)])
    return lines


def _again(verdict: Verdict) -> list[Line]:
    """Values that differed at an earlier step already."""
    places: dict[tuple[int | None, str | None], list[int]] = {}
    for difference in verdict.differences:
        if difference.same_as is not None and difference.step is not None:
            places.setdefault((difference.same_as, difference.field), []).append(difference.step)
    return [
        [Piece(safe(f"the same again: {field} as at step {first}, at step{'s' if len(at) > 1 else ''} {_some(at)}"))]
        for (first, field), at in places.items()
    ]


def _ignored(verdict: Verdict, *, whole: bool) -> list[Line]:
    """What was let differ."""
    if not verdict.ignored:
        return []
    fields = dict.fromkeys(str(value.get("field")) for value in verdict.ignored)
    lines: list[Line] = [[Piece(safe(f"note: let differ: {', '.join(list(fields)[:_NAMED])}{' …' if len(fields) > _NAMED else ''}"), DIM)]]
    if whole:
        for value in verdict.ignored:
            told = f"step {value.get('step')}, {value.get('field')}: recorded {value.get('recorded')}, actual {value.get('actual')}"
            lines.append([Piece(safe(f"  {told}"), DIM)])
    return lines

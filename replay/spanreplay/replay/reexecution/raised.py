"""The exception that a run, a sub-agent or a command ended with, against the recorded one: class and text, also of those inside a group.

Compared are texts without what differs in every execution: addresses in memory, names that ``tempfile`` makes and where they lie, numbers
of processes, moments, and durations.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.crashes import told as crash_told
from spanreplay.replay.reexecution.diff import shown
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.ledger import Difference, Totals
from spanreplay.semconv import attributes as names

_COMPARED: Final = frozenset({"error", "timeout", "tool_error", "malformed"})
"""Outcomes whose exception is the agent's own."""
_Told: TypeAlias = list[tuple[str, str]]
_DEEPEST: Final = 8
_MOST: Final = 100
_EACH_TIME: Final = (
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "0x…"),
    (re.compile(r"(?:/[^\s/'\"]+)*/tmp[a-z0-9_]{8}(?![a-z0-9_])"), "$TMPDIR/tmp…"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "…"),
    (re.compile(r"\b\d+\.\d+(?= ?(?:s|sec|secs|seconds?|ms|milliseconds?)\b)"), "…"),
    (re.compile(r"\b(pid|process)([ =:]{1,2})\d+", re.IGNORECASE), r"\1\2…"),
)


def of_end(
    run_id: str | None, seq: int | None, step: LiveStep, outcome: str, error: str | None, comparing: Comparing
) -> Iterator[Difference]:
    """How the exception that a run or a sub-agent ended with differs, where it ended with one both times.

    Args:
        run_id: of the record.
        seq: of the recorded step, if it is none that is a run.
        step: as it ended.
        outcome: as recorded.
        error: the recorded exception, as typed text; ``None`` where an older recording has none.
        comparing: what does not count.
    """
    if error is None or outcome != step.outcome or outcome not in _COMPARED:
        return
    raised = (step.view or {}).get(names.STEP_ERROR)
    found = _differing(_told(error), _told(raised) if isinstance(raised, str) else None, comparing)
    if found is not None:
        field, recorded, actual = found
        name = f"{step.call.kind} {step.call.name}"
        yield Difference(kind="outcome", run_id=run_id, step=seq, name=name, field=field, recorded=recorded, actual=actual)


def of_command(runs: Sequence[Run], totals: Totals, comparing: Comparing) -> Difference | None:
    """How the exception that has ended the Python process of a command differs; ``None`` where it does not, or none is kept.

    Args:
        runs: of the command.
        totals: what its processes have entered.
        comparing: what does not count.
    """
    recorded = next((run.ended_by for run in runs if run.is_command), None)
    if recorded is None or totals.first != 1:  # of several, the record does not keep how each has ended
        return None
    crashes = [facts for facts in totals.crashes if isinstance(facts.get("error"), str)]
    found = _differing(_of_all(recorded), _of_all([facts["error"] for facts in crashes]), comparing)
    if found is None:
        return None
    field, wanted, actual = found
    crashed: Mapping[str, Any] = crashes[0] if crashes else {}
    detail = crash_told(crashed) if crashed else "no exception has ended the agent"
    where = crashed.get("where")
    return Difference(
        kind="outcome", run_id=None, step=None, name="the command", field=field, recorded=wanted, actual=actual, detail=detail, where=where
    )


def _of_all(typed: Sequence[str]) -> _Told | None:
    """What several processes ended with, in the order of that: which of them is first is not known."""
    found = [_told(text) for text in typed]
    whole = [told for told in found if told is not None]
    return [one for told in sorted(whole, key=_in_order) for one in told] if len(whole) == len(found) else None


def _in_order(told: _Told) -> _Told:
    return [(type_, _bare(text)) for type_, text in told]


def _differing(wanted: _Told | None, got: _Told | None, comparing: Comparing) -> tuple[str, str, str] | None:
    """The field that differs, and its two values."""
    if wanted is None or got is None:
        return None
    for (type_, text), (other, words) in zip(wanted, got, strict=False):
        if _last(type_) != _last(other) and not comparing.ignores(("error", "type"), type_, other):
            return "error", shown(_line(type_, text)), shown(_line(other, words))
        if _bare(text) != _bare(words) and not comparing.ignores(("error", "message"), text, words):
            return "error.message", shown(text), shown(words)
    if len(wanted) == len(got):
        return None
    return "error", _all(wanted), _all(got)


def _all(told: Sequence[tuple[str, str]]) -> str:
    return shown("; ".join(_line(*one) for one in told)) if told else "no exception"


def _line(type_: str, text: str) -> str:
    name = type_.removeprefix("builtins:").removeprefix("__main__:").replace(":", ".")
    return f"{name}: {text}" if text else name


def _last(type_: str) -> str:
    """Its name alone: what ran as ``__main__`` may be imported now."""
    return type_.rpartition(":")[2].rpartition(".")[2]


def _bare(text: str) -> str:
    for pattern, made in _EACH_TIME:
        text = pattern.sub(made, text)
    return text


def _told(typed: str) -> _Told | None:
    """Class and text of an exception, then of those inside a group, in the order of these; ``None`` where it is no record of one."""
    try:
        tree = json.loads(comparable(typed) or "")
    except (ValueError, RecursionError):
        return None
    found = list(_walk(tree, _DEEPEST))[:_MOST]
    return [*found[:1], *sorted(found[1:])] or None


def _walk(tree: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(tree, list):
        for one in tree:
            yield from _walk(one, depth)
        return
    payload = tree.get("v") if isinstance(tree, dict) and tree.get("k") == "exception" else None
    if not isinstance(payload, dict) or depth == 0:
        return
    yield str(tree.get("$t")), str(payload.get("message") or "")
    args = payload.get("args")
    if isinstance(args, list):
        for one in args:
            if isinstance(one, list):
                yield from _walk(one, depth - 1)

"""Why a run has the grade it has: that of its worst step, and what is missing, doubted or worth knowing about the whole."""

from collections.abc import Iterable, Sequence
from typing import Final

from spanreplay.replay.model import Grade, Reason, Step
from spanreplay.replay.reading.dialect import RunDraft
from spanreplay.replay.reasons import (
    CYCLE,
    DOUBLED,
    FOREIGN,
    JOINED,
    LOG_WITHOUT_SPAN,
    MISSING_PARENT,
    NO_CALLS,
    NO_ROOT,
    RECORDS_DROPPED,
    SEVERAL_ROOTS,
    UNTAPED,
    untaped,
    worst,
)
from spanreplay.replay.rebuilding.assembly import Assembly
from spanreplay.replay.rebuilding.origin import OWN, told_in
from spanreplay.replay.rebuilding.tree import SpanKey
from spanreplay.semconv import attributes as a

_PASSED: Final = frozenset({"agent", "handoff", "decision"})
"""Kinds of steps that a replay passes through: it answers none of them."""
_MAKING: Final = "create_agent"


def grade(assembly: Assembly, root: RunDraft | None, steps: Sequence[Step]) -> tuple[Grade, tuple[Reason, ...]]:
    """The grade of a run, and the reasons for it, those of its steps last.

    Args:
        assembly: its spans.
        root: what its root says, if it has one.
        steps: in order.
    """
    forest, keys = assembly.forest, assembly.group.keys
    ours = (root is not None and (root.path is not None or root.is_command)) or any(step.path is not None for step in steps)
    told_of = told_in(steps) if ours else frozenset()
    answering = [step for step in steps if step.seq not in told_of]
    grades: list[Grade] = [step.grade for step in answering]
    reasons: list[Reason] = []
    if assembly.group.joined is not None:
        reasons.append(Reason(code=JOINED, detail=assembly.group.joined))
    if not answering:
        grades.append("exact" if assembly.group.named and root is not None else "structure")
    if not assembly.group.named and all(step.kind in _PASSED for step in answering):
        reasons.append(Reason(code=NO_CALLS, detail=_no_calls(assembly)))
    if root is not None:
        reasons += root.reasons
        if root.grade == "incomplete":
            grades.append("incomplete")
        if root.dropped:
            grades.append("incomplete")
            reasons.append(Reason(code=RECORDS_DROPPED, detail=f"{root.dropped} records could not be kept while this run was recorded"))
        reasons += [Reason(code=UNTAPED, detail=untaped(what)) for what in root.untaped]
        told = assembly.root_step.reasons if assembly.root_step is not None else ()
        reasons += [reason for reason in told if reason.code == DOUBLED]
        if assembly.root is not None and (copies := forest.copies.get(assembly.root)):
            reasons.append(
                Reason(code=DOUBLED, detail=f"the run came twice, under other span ids too (span {copies[0].span_id}); counted once")
            )
    elif assembly.roots:
        names = ", ".join(forest.spans[key].span_id for key in assembly.roots)
        reasons.append(Reason(code=SEVERAL_ROOTS, detail=f"no span is around all others; outermost agents: {names}"))
    else:
        what = "the root of this run is not here" if assembly.group.named else "no agent or workflow span is around the steps"
        reasons.append(Reason(code=NO_ROOT, detail=what))
    others = sorted({step.dialect for step in steps if step.grade == "semantic" and step.dialect != OWN})
    if others:
        count = sum(step.grade == "semantic" and step.dialect != OWN for step in steps)
        who = f"{count} step{'s were' if count > 1 else ' was'} recorded by other instrumentation ({', '.join(others)})"
        detail = f"{who}{' alone: no replay waits for a call of it' if ours else ': the messages are here, not the exact exchange'}"
        reasons.append(Reason(code=FOREIGN, detail=detail))
    reasons += _orphans(assembly, steps)
    for key in keys:
        fault = assembly.readings[key].fault
        if fault is not None:
            grades.append("incomplete")
            reasons.append(fault)
        if key in forest.cycles:
            detail = f"span {key.span_id} is said to be inside a span that is inside it; kept under the run"
            reasons.append(Reason(code=CYCLE, detail=detail))
    reasons += _lost_spans(assembly)
    for step in answering:
        reasons += step.reasons
    reasons += [reason for step in steps if step.seq in told_of for reason in step.reasons if reason.code == DOUBLED]
    return worst(grades), tuple(dict.fromkeys(reasons))


def _no_calls(assembly: Assembly) -> str:
    spans = [assembly.forest.spans[key] for key in assembly.group.keys]
    if all(span.attributes.get(a.GEN_AI_OPERATION_NAME) == _MAKING for span in spans):
        return "an agent was made here, and nothing asked of it: its runs are in other traces"
    return "no span is of a call of a model or a tool: none was made, or its span was never ended, as that of a stream that was left"


def _lost_spans(assembly: Assembly) -> list[Reason]:
    traces = {key.trace_id for key in assembly.group.keys}
    absent = {key: logs for key, logs in assembly.forest.logs.items() if key not in assembly.forest.spans and key.trace_id in traces}
    return [
        Reason(code=LOG_WITHOUT_SPAN, detail=f"{len(logs)} log records were written in span {key.span_id}, which is not here")
        for key, logs in sorted(absent.items())
    ]


def _orphans(assembly: Assembly, steps: Iterable[Step]) -> list[Reason]:
    """One reason for each absent span that spans which are no steps name as their parent."""
    shown = {SpanKey(step.trace_id, step.span_id) for step in steps}
    counts: dict[str, int] = {}
    for key in assembly.group.keys:
        missing = assembly.forest.orphans.get(key)
        if missing is not None and key not in shown:
            counts[missing] = counts.get(missing, 0) + 1
    return [
        Reason(
            code=MISSING_PARENT,
            detail=f"{count} span{'s' if count > 1 else ''} inside span {missing}, which is not here; kept under the run",
        )
        for missing, count in counts.items()
    ]

"""Records to runs, and the runs of a store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.assembly import Assembly, assemble, ordered_steps, orphan_reasons
from spanreplay.replay.dialect import RunDraft, StepDraft
from spanreplay.replay.fields import Fields
from spanreplay.replay.grouping import group, read_spans
from spanreplay.replay.model import Grade, Reason, Run, Step
from spanreplay.replay.reasons import CYCLE, FOREIGN, LOG_WITHOUT_SPAN, NO_ROOT, RECORDS_DROPPED, SEVERAL_ROOTS, UNTAPED, untaped, worst
from spanreplay.replay.rows import run_row, step_row
from spanreplay.replay.tree import build
from spanreplay.replay.versions import run_versions
from spanreplay.semconv.attributes import PROCESS_ID, RUN_COMMAND_ID, SERVICE_NAME
from spanreplay.spans.record import STATUS_ERROR, Record, SpanRecord

if TYPE_CHECKING:
    from spanreplay.store.store import Store

OWN: Final = "spanreplay"
"""The dialect whose steps hold the exact exchange."""
TRACES_AT_ONCE: Final = 64
"""Traces whose runs are derived together."""
_YEAR_NS: Final = 365 * 24 * 3600 * 10**9


def build_runs(records: Iterable[Record], *, losses: Mapping[str, int] | None = None) -> list[Run]:
    """All runs that some records hold, in order of their start.

    Total: whatever is missing, doubled or damaged about the records lowers a grade and gives a reason, and costs nothing else. No record is
    dropped: a span that is no step is counted in ``unclassified_spans`` of its run.

    Args:
        records: spans and logs, in any order and however often.
        losses: how many records each process (``spanreplay.process.id``) is known to have lost; runs with spans of it are incomplete.
    """
    forest = build(records)
    readings = read_spans(forest)
    runs = [_run(assemble(forest, members, readings), losses or {}) for members in group(forest, readings)]
    return sorted(runs, key=lambda run: (run.started_ns, run.run_id))


def _run(assembly: Assembly, losses: Mapping[str, int]) -> Run:
    forest, group_ = assembly.forest, assembly.group
    steps = tuple(ordered_steps(assembly))
    root = assembly.root_draft
    draft = root or _joined(assembly)
    spans = [forest.spans[key] for key in group_.keys]
    named = assembly.root
    started = forest.spans[named].start_ns if named is not None else min(span.start_ns for span in spans)
    if started == 0 and any((span.end_ns or 0) > _YEAR_NS for span in spans):  # the record of a start is lost
        started = min(moment for span in spans if (moment := span.start_ns or span.end_ns))
    outcome, error = (root.outcome, root.error) if root is not None else (_outcome_without_root(assembly), None)
    grade, reasons = _grade(assembly, root, steps)
    processes = {Fields(span.attributes).identifier(PROCESS_ID) for span in spans}
    lost = {process: count for process, count in losses.items() if process in processes and count}
    if lost:
        grade = "incomplete"
        reasons = (*(Reason(code=RECORDS_DROPPED, detail=f"process {name} lost {count} records") for name, count in lost.items()), *reasons)
    of_spans = len(assembly.folded.steps) + (named is not None)
    return Run(
        run_id=group_.run_id,
        trace_ids=tuple(dict.fromkeys(key.trace_id for key in sorted(group_.keys, key=lambda key: (forest.spans[key].start_ns, key)))),
        session_id=draft.session_id or next((s.session_id for s in _drafts(assembly) if s.session_id), None),
        agent_name=draft.agent_name or next((step.agent for step in steps if step.agent), None),
        agent_version=draft.agent_version,
        started_ns=started,
        ended_ns=forest.spans[named].end_ns if named is not None else _last_end(spans),
        outcome=outcome,
        error=error,
        grade=grade,
        grade_reasons=reasons,
        definition=draft.definition,
        input=draft.input,
        output=draft.output,
        artifacts=draft.artifacts,
        versions=run_versions(draft.versions, steps, draft.definition),
        steps=steps,
        unclassified_spans=len(group_.keys) - of_spans,
        orphan_spans=sum(key in forest.orphans for key in group_.keys),
        path=draft.path,
        command_id=draft.command_id or next((c for s in spans if (c := Fields(s.attributes).identifier(RUN_COMMAND_ID))), None),
        is_command=draft.is_command,
        exit_code=draft.exit_code,
        typed_input=draft.typed_input,
        typed_output=draft.typed_output,
        redaction=draft.redaction,
        dropped=draft.dropped + sum(lost.values()),
        untaped=draft.untaped,
    )


def _drafts(assembly: Assembly) -> Iterable[StepDraft]:
    return (candidate.draft for candidate in assembly.folded.steps.values())


def _last_end(spans: Sequence[SpanRecord]) -> int | None:
    ends = [span.end_ns for span in spans if span.end_ns is not None]
    return max(ends) if len(ends) == len(spans) else None


def _joined(assembly: Assembly) -> RunDraft:
    """What several outermost agents say together: the input of the first, the output of the last."""
    said = [run for key in assembly.roots if (draft := assembly.draft(key)) is not None and (run := draft.run) is not None]
    if not said:
        return RunDraft()
    return RunDraft(
        agent_name=said[0].agent_name,
        agent_version=said[0].agent_version,
        session_id=said[0].session_id,
        input=said[0].input,
        output=said[-1].output,
    )


def _outcome_without_root(assembly: Assembly) -> OutcomeName:
    """Of the outermost spans: an error there is the run's only where there is but one of them."""
    tops = [assembly.forest.spans[key] for key in assembly.group.keys if assembly.forest.parents.get(key) is None]
    if not tops or any(span.end_ns is None for span in tops):
        return "unknown"
    if any(span.status == STATUS_ERROR for span in tops):
        return "error" if len(tops) == 1 else "unknown"
    return "ok"


def _grade(assembly: Assembly, root: RunDraft | None, steps: Sequence[Step]) -> tuple[Grade, tuple[Reason, ...]]:
    forest, keys = assembly.forest, assembly.group.keys
    grades: list[Grade] = [step.grade for step in steps]
    reasons: list[Reason] = []
    if not steps:
        grades.append("exact" if assembly.group.named and root is not None else "structure")
    if root is not None:
        reasons += root.reasons
        if root.grade == "incomplete":
            grades.append("incomplete")
        if root.dropped:
            grades.append("incomplete")
            reasons.append(Reason(code=RECORDS_DROPPED, detail=f"{root.dropped} records could not be kept while this run was recorded"))
        reasons += [Reason(code=UNTAPED, detail=untaped(what)) for what in root.untaped]
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
        detail = f"{who}: the messages are here, not the exact exchange"
        reasons.append(Reason(code=FOREIGN, detail=detail))
    reasons += orphan_reasons(assembly, steps)
    for key in keys:
        fault = assembly.readings[key].fault
        if fault is not None:
            grades.append("incomplete")
            reasons.append(fault)
        if key in forest.cycles:
            detail = f"span {key.span_id} is said to be inside a span that is inside it; kept under the run"
            reasons.append(Reason(code=CYCLE, detail=detail))
    reasons += _lost_spans(assembly)
    for step in steps:
        reasons += step.reasons
    return worst(grades), tuple(dict.fromkeys(reasons))


def _lost_spans(assembly: Assembly) -> list[Reason]:
    traces = {key.trace_id for key in assembly.group.keys}
    absent = {key: logs for key, logs in assembly.forest.logs.items() if key not in assembly.forest.spans and key.trace_id in traces}
    return [
        Reason(code=LOG_WITHOUT_SPAN, detail=f"{len(logs)} log records were written in span {key.span_id}, which is not here")
        for key, logs in absent.items()
    ]


# ---- the runs of a store -----------------------------------------------------------------------------------------


def index(store: "Store") -> int:
    """Derives the runs and steps of every trace that changed since it was last done, a group of connected traces at a time.

    Returns:
        How many runs were written.

    Raises:
        StoreError: The store cannot be read or written.
    """
    stale = store.stale_traces()
    if not stale:
        return 0
    written = 0
    for batch in _batches(store.connected(stale)):
        runs, services = _load(store, batch)
        rows = [run_row(run, services) for run in runs]
        store.put_runs(batch, rows, [step_row(run, step) for run in runs for step in run.steps])
        written += len(rows)
    return written


def _batches(groups: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    # Opening the database costs more than reading a small trace: small groups go together, a group is never split.
    batch: list[str] = []
    for connected in groups:
        if batch and len(batch) + len(connected) > TRACES_AT_ONCE:
            yield batch
            batch = []
        batch += connected
    if batch:
        yield batch


def _load(store: "Store", trace_ids: Sequence[str]) -> tuple[list[Run], dict[str, str]]:
    """The runs of some traces, and the service that each trace is from."""
    services: dict[str, str] = {}
    processes: set[str] = set()
    records: list[Record] = []
    for span in store.traces(trace_ids):
        records.append(span)
        service = Fields(span.resource.attributes).text(SERVICE_NAME)
        if service is not None:
            services.setdefault(span.trace_id, service)
        process = Fields(span.attributes).identifier(PROCESS_ID)
        if process is not None:
            processes.add(process)
    records += store.logs(trace_ids)
    return build_runs(records, losses=store.losses(sorted(processes)) if processes else {}), services


def load_run(store: "Store", run_id: str) -> Run:
    """One run of a store, rebuilt from its spans.

    Raises:
        LookupError: The store has no spans of it.
        StoreError: The store cannot be read.
    """
    traces = [trace for connected in store.connected(store.traces_of(run_id)) for trace in connected]
    for run in _load(store, traces)[0] if traces else ():
        if run.run_id == run_id:
            return run
    raise LookupError(f"run {run_id} has no spans in this store")


def load_command(store: "Store", run: Run) -> list[Run]:
    """All runs that were recorded by the same command, the run itself among them, in order of their start.

    Raises:
        LookupError: The store has no spans of the run.
        StoreError: The store cannot be read.
    """
    if run.command_id is None:
        return [load_run(store, run.run_id)]
    traces = [*store.traces_of(run.run_id), *store.traces_of_command(run.command_id)]
    whole = dict.fromkeys(trace for connected in store.connected(traces) for trace in connected)
    return [found for found in _load(store, list(whole))[0] if found.command_id == run.command_id]

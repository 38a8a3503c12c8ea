"""Records to runs, and the runs of a store."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from spanreplay.replay.inputs.source_losses import Losses, loss_reasons
from spanreplay.replay.model import Reason, Run, Step
from spanreplay.replay.reading.dialect import RunDraft
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.versions import run_versions
from spanreplay.replay.reasons import BESIDE_CUT, RECORDS_DROPPED
from spanreplay.replay.rebuilding.alike import alike
from spanreplay.replay.rebuilding.assembly import Assembly, assemble
from spanreplay.replay.rebuilding.dangling import dangling
from spanreplay.replay.rebuilding.ends import ends, from_model_calls, outcome_without_root
from spanreplay.replay.rebuilding.grading import grade
from spanreplay.replay.rebuilding.grouping import group, read_spans
from spanreplay.replay.rebuilding.histories import mixed
from spanreplay.replay.rebuilding.joins import Join, session_of
from spanreplay.replay.rebuilding.joins import join as join_groups
from spanreplay.replay.rebuilding.rows import run_row, step_row
from spanreplay.replay.rebuilding.steps import Ordered, ordered
from spanreplay.replay.rebuilding.tree import build
from spanreplay.semconv.attributes import PROCESS_ID, RUN_COMMAND_ID, SERVICE_NAME
from spanreplay.spans.record import Record, SpanRecord
from spanreplay.store.rows import RunRow, StepRow

if TYPE_CHECKING:
    from spanreplay.store.store import Store

TRACES_AT_ONCE: Final = 64
"""Traces that are read together, at most."""
BYTES_AT_ONCE: Final = 24_000_000
"""What these traces may hold together; what is made of it takes several times the room."""
_NAMED: Final = 3
_YEAR_NS: Final = 365 * 24 * 3600 * 10**9


def build_runs(
    records: Iterable[Record],
    *,
    losses: Mapping[str, int] | None = None,
    source_losses: Losses | None = None,
    join: Join | None = None,
    only: Collection[str] | None = None,
) -> list[Run]:
    """All runs that some records hold, in order of their start.

    Total: whatever is missing, doubled or damaged about the records lowers a grade and gives a reason, and costs nothing else. No record is
    dropped: a span that is no step is counted in ``unclassified_spans`` of its run.

    Args:
        records: spans and logs, in any order and however often.
        losses: how many records each process (``spanreplay.process.id``) is known to have lost; runs with spans of it are incomplete.
        source_losses: what the inputs of each trace are known to have lost; runs with spans of it are incomplete.
        join: makes one run of traces that share a conversation, or of which one holds calls that another asked for; left out, a trace that
            names no run is one.
        only: the ids of the runs that are wanted, which are as they are among all.
    """
    forest = build(records)
    readings = read_spans(forest)
    groups = group(forest, readings)
    if join is not None:
        groups, forest = join_groups(groups, forest, readings, join)
    runs = [
        _run(assemble(forest, members, readings), losses or {}, source_losses or {})
        for members in groups
        if only is None or members.run_id in only
    ]
    return sorted(runs, key=lambda run: (run.started_ns, run.run_id))


def sessions(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Runs by their session, each session's in order of their start; runs without one are left out."""
    found: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.started_ns, run.run_id)):
        if run.session_id is not None:
            found.setdefault(run.session_id, []).append(run)
    return found


def _run(assembly: Assembly, losses: Mapping[str, int], source_losses: Losses) -> Run:
    forest, keys = assembly.forest, assembly.group.keys
    made = ordered(assembly)
    spans = [forest.spans[key] for key in keys]
    root, named = assembly.root_draft, assembly.root
    told = ends(made.placed)
    draft = root or _without_root(assembly, made)
    first, last = told.first if draft.input is None else None, told.last if draft.output is None else None
    lacking = dangling(made.links.open, made.placed, [draft.output])
    steps = _with_reasons(made.steps, lacking.of_steps)
    graded, reasons = grade(assembly, root, steps)
    also = [*lacking.of_run, *mixed(steps, made.placed), *alike(made.placed)]
    also += from_model_calls(first, last)
    if not made.overlaps.whole:
        also.append(Reason(code=BESIDE_CUT, detail="too many steps ran at the same time; not all are listed as beside each other"))
    lost = _losses(spans, losses)
    missing = [Reason(code=RECORDS_DROPPED, detail=f"process {name} lost {n} records") for name, n in lost.items()]
    if source_losses:
        missing += loss_reasons((key.trace_id for key in keys), source_losses)
    if missing:
        graded = "incomplete"
    reasons = (*missing, *reasons, *also)
    of_spans = len(assembly.folded.steps) + (named is not None)
    copies = sum(len(forest.copies.get(key, ())) for key in keys) if forest.copies else 0
    return Run(
        run_id=assembly.group.run_id,
        trace_ids=tuple(dict.fromkeys(key.trace_id for key in keys)),
        session_id=draft.session_id or _session(assembly, steps),
        agent_name=draft.agent_name or next((step.agent for step in steps if step.agent), None),
        agent_version=draft.agent_version,
        started_ns=_started(spans, forest.spans[named] if named is not None else None),
        ended_ns=forest.spans[named].end_ns if named is not None else _last_end(spans),
        outcome=draft.outcome,
        error=draft.error,
        grade=graded,
        grade_reasons=reasons,
        definition=draft.definition,
        input=draft.input if first is None else first.draft.input,
        output=draft.output if last is None else last.draft.output,
        artifacts=draft.artifacts,
        versions=run_versions(draft.versions, steps, draft.definition, draft.code),
        steps=steps,
        unclassified_spans=len(keys) - of_spans + copies,
        orphan_spans=sum(key in forest.orphans for key in keys),
        path=draft.path,
        command_id=draft.command_id or _command_id(spans),
        is_command=draft.is_command,
        exit_code=draft.exit_code,
        typed_input=draft.typed_input,
        typed_output=draft.typed_output,
        typed_error=draft.typed_error,
        ended_by=draft.ended_by,
        redaction=draft.redaction,
        seed=draft.seed,
        random_seeded=draft.random_seeded,
        hash_seed=draft.hash_seed,
        clock_reads=draft.clock_reads,
        orders=draft.orders,
        code=draft.code,
        state=draft.state,
        variables=draft.variables,
        dropped=draft.dropped + sum(lost.values()),
        untaped=draft.untaped,
        root=None if named is None else (named.trace_id, named.span_id),
        forked_from=draft.forked_from,
    )


def _without_root(assembly: Assembly, made: Ordered) -> RunDraft:
    """A run that no one span is: what its outermost agents say together, and how it ended."""
    said = [run for key in assembly.roots if (draft := assembly.draft(key)) is not None and (run := draft.run) is not None]
    first = said[0] if said else RunDraft()
    tops = [assembly.forest.spans[key] for key in assembly.group.keys if assembly.parents.get(key) is None]
    outcome, error = outcome_without_root(tops, made.placed)
    return RunDraft(
        agent_name=first.agent_name,
        agent_version=first.agent_version,
        session_id=first.session_id,
        outcome=outcome,
        error=error,
    )


def _with_reasons(steps: Sequence[Step], more: Mapping[int, Sequence[Reason]]) -> tuple[Step, ...]:
    return tuple(
        replace(step, reasons=(*step.reasons, *(replace(reason, step=step.seq) for reason in more[step.seq]))) if step.seq in more else step
        for step in steps
    )


def _session(assembly: Assembly, steps: Sequence[Step]) -> str | None:
    """That of the first step that names one, else of the first span that does."""
    named = next((step.conversation_id for step in steps if step.conversation_id is not None), None)
    if named is not None:
        return named
    spans = ((key, assembly.forest.spans[key]) for key in assembly.group.keys)
    found = ((span.start_ns, key, session) for key, span in spans if (session := session_of(span, None)) is not None)
    first = min(found, default=None)
    return None if first is None else first[2]


def _command_id(spans: Iterable[SpanRecord]) -> str | None:
    """The command that the first span names that names one."""
    naming = (Fields(span.attributes) for span in spans if RUN_COMMAND_ID in span.attributes)
    return next((found for fields in naming if (found := fields.identifier(RUN_COMMAND_ID))), None)


def _started(spans: Sequence[SpanRecord], root: SpanRecord | None) -> int:
    started = root.start_ns if root is not None else min(span.start_ns for span in spans)
    if started == 0 and any((span.end_ns or 0) > _YEAR_NS for span in spans):  # the record of a start is lost
        started = min(moment for span in spans if (moment := span.start_ns or span.end_ns))
    return started


def _last_end(spans: Sequence[SpanRecord]) -> int | None:
    ends = [span.end_ns for span in spans if span.end_ns is not None]
    return max(ends) if len(ends) == len(spans) else None


def _losses(spans: Iterable[SpanRecord], losses: Mapping[str, int]) -> dict[str, int]:
    if not losses:
        return {}
    processes = {Fields(span.attributes).identifier(PROCESS_ID) for span in spans}
    return {process: count for process, count in losses.items() if process in processes and count}


# ---- the runs of a store -----------------------------------------------------------------------------------------


def index(store: "Store", *, damaged: list[str] | None = None, advance: Callable[[int], object] | None = None) -> int:
    """Derives the runs and steps of every trace that changed since it was last done, a group of connected traces at a time.

    What is not what was written counts as lost: the run that has it is incomplete, and the others are as they were.

    Args:
        store: the store.
        damaged: gets a line on each of these.
        advance: called with how many traces were done.

    Returns:
        How many runs were written.

    Raises:
        StoreError: The store cannot be read or written.
    """
    with store.reading():
        stale = store.stale_traces()
        if not stale:
            return 0
        batches = list(_batches(store.connected(stale), store.sizes(stale)))
    written = 0
    for groups in batches:
        traces = [trace_id for connected in groups for trace_id in connected]
        found: list[str] = []
        rows, steps = derive_groups(store, groups, found)
        store.put_runs(traces, rows, steps)
        written += len(rows)
        if damaged is not None:
            damaged += _of_runs(store, groups, found)
        if advance is not None:
            advance(len(traces))
    return written


def derive_groups(store: "Store", groups: Sequence[Sequence[str]], damaged: list[str] | None = None) -> tuple[list[RunRow], list[StepRow]]:
    """The runs of groups of connected traces, and all their steps, as the database has them.

    Args:
        store: the store.
        groups: see :meth:`~spanreplay.store.store.Store.connected`.
        damaged: gets a line on what is not what was written, and counts as lost.
    """
    rows: list[RunRow] = []
    steps: list[StepRow] = []
    traces = [trace_id for connected in groups for trace_id in connected]
    with store.reading():
        records = _by_trace(store, traces, damaged)
        losses, source_losses = _lost_by_processes(store, records.values()), store.source_losses(traces)
    for connected in groups:
        group_ = [record for trace_id in connected for record in records.pop(trace_id, ())]
        made = derive(group_, losses=losses, source_losses=source_losses)
        rows += made[0]
        steps += made[1]
    return rows, steps


def _of_runs(store: "Store", groups: Sequence[Sequence[str]], found: Sequence[str]) -> list[str]:
    """What is damaged about a batch, each with the traces that have it."""
    if not found:
        return []
    lines = []
    for connected in groups:
        lines_of: list[str] = []
        with store.reading():
            _by_trace(store, connected, lines_of)
        names = ", ".join(connected[:_NAMED]) + (f" and {len(connected) - _NAMED} more" if len(connected) > _NAMED else "")
        lines += [f"trace {names}: {line}" for line in dict.fromkeys(lines_of)]
    return lines


def derive(
    records: Sequence[Record], *, losses: Mapping[str, int] | None = None, source_losses: Losses | None = None
) -> tuple[list[RunRow], list[StepRow]]:
    """The runs that some records hold, and all their steps, as the database has them; the arguments are those of :func:`build_runs`."""
    runs = build_runs(records, losses=losses, source_losses=source_losses)
    services = _services(records)
    return [run_row(run, services) for run in runs], [step_row(run, step) for run in runs for step in run.steps]


def _batches(groups: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> Iterator[list[Sequence[str]]]:
    # Opening the database costs more than reading a small trace: small groups are read together, a group is never split.
    batch: list[Sequence[str]] = []
    count = held = 0
    for connected in groups:
        size = sum(sizes.get(trace_id, 0) for trace_id in connected)
        if batch and (count + len(connected) > TRACES_AT_ONCE or held + size > BYTES_AT_ONCE):
            yield batch
            batch, count, held = [], 0, 0
        batch.append(connected)
        count += len(connected)
        held += size
    if batch:
        yield batch


def _by_trace(store: "Store", trace_ids: Sequence[str], damaged: list[str] | None = None) -> dict[str, list[Record]]:
    records: dict[str, list[Record]] = {}
    everything: Iterable[Record] = chain(store.traces(trace_ids, damaged=damaged), store.logs(trace_ids, damaged=damaged))
    for record in everything:
        if record.trace_id is not None:
            records.setdefault(record.trace_id, []).append(record)
    return records


def _services(records: Iterable[Record]) -> dict[str, str]:
    """The service that each trace is from: the first that a span names."""
    services: dict[str, str] = {}
    for record in records:
        if isinstance(record, SpanRecord) and record.trace_id not in services:
            service = Fields(record.resource.attributes).text(SERVICE_NAME)
            if service is not None:
                services[record.trace_id] = service
    return services


def _lost_by_processes(store: "Store", traces: Iterable[Iterable[Record]]) -> dict[str, int]:
    """What the processes that recorded these spans are known to have lost."""
    spans = (record for records in traces for record in records if isinstance(record, SpanRecord))
    processes = {process for span in spans if (process := Fields(span.attributes).identifier(PROCESS_ID)) is not None}
    return store.losses(sorted(processes)) if processes else {}


def _load(store: "Store", trace_ids: Sequence[str], only: Collection[str] | None = None) -> list[Run]:
    """The runs of some traces, or only those of them that are wanted."""
    with store.reading():  # one connection: opening costs more than reading, and a run may have thousands of traces
        records = _by_trace(store, trace_ids)
        losses, source_losses = _lost_by_processes(store, records.values()), store.source_losses(trace_ids)
    return build_runs([record for trace in records.values() for record in trace], losses=losses, source_losses=source_losses, only=only)


def load_run(store: "Store", run_id: str) -> Run:
    """One run of a store, rebuilt from its spans.

    Raises:
        LookupError: The store has no spans of it.
        StoreError: The store cannot be read.
    """
    traces = [trace for connected in store.connected(store.traces_of(run_id)) for trace in connected]
    for run in _load(store, traces, [run_id]) if traces else ():
        return run
    raise LookupError(f"run {run_id} has no spans in this store")

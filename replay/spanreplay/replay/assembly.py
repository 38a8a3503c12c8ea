"""The spans of one run to its ordered steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spanreplay.boundary.call import OutcomeName
from spanreplay.replay.asked import as_asked
from spanreplay.replay.dialect import RunDraft, StepDraft
from spanreplay.replay.doubles import Candidate, Folded, fold
from spanreplay.replay.events import Decided, decisions
from spanreplay.replay.fields import Fields
from spanreplay.replay.grouping import Group, Reading
from spanreplay.replay.links import Request, requests
from spanreplay.replay.model import Json, Reason, Step
from spanreplay.replay.order import Moment, in_order
from spanreplay.replay.overlap import overlapping
from spanreplay.replay.reasons import MISSING_PARENT
from spanreplay.replay.tree import Forest, SpanKey
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

_DECISION_OUTCOMES: Mapping[str | None, OutcomeName] = {"allow": "ok", "deny": "rejected", "require_approval": "deferred"}


@dataclass(slots=True, kw_only=True)
class Assembly:
    """A run being put together: its root, its steps without doubles, its place in the forest."""

    forest: Forest
    group: Group
    readings: Mapping[SpanKey, Reading]
    root: SpanKey | None
    roots: tuple[SpanKey, ...]
    """Where no span is the root of the run alone: the outermost agents, in order of time."""
    folded: Folded
    decided: dict[SpanKey, Decided] = field(default_factory=dict)
    """Decisions that no step carries, by a key made up for each."""
    decided_for: dict[SpanKey, Decided] = field(default_factory=dict)
    """Decisions by the step that carries them."""
    agents: dict[SpanKey, str | None] = field(default_factory=dict)
    """The nearest agent at or around a span, as far as looked up."""

    @property
    def root_draft(self) -> RunDraft | None:
        """What the root says about the run."""
        reading = self.readings.get(self.root) if self.root is not None else None
        return reading.draft.run if reading is not None and reading.draft is not None else None

    def draft(self, key: SpanKey) -> StepDraft | None:
        """What the dialect read in a span of the forest."""
        reading = self.readings.get(key)
        return None if reading is None else reading.draft


def assemble(forest: Forest, group: Group, readings: Mapping[SpanKey, Reading]) -> Assembly:
    """Finds the root of a run and folds its doubles."""
    members = set(group.keys)
    drafts = {key: draft for key in group.keys if (draft := readings[key].draft) is not None}
    root, roots = _root(forest, group, drafts)
    steps = [key for key, draft in drafts.items() if key != root and not draft.frame]
    around = _around(forest, members, set(steps))
    candidates = [
        Candidate(
            key=key,
            draft=drafts[key],
            dialect=readings[key].dialect or "",
            scope=forest.spans[key].scope.name,
            start_ns=forest.spans[key].start_ns,
        )
        for key in steps
    ]
    assembly = Assembly(forest=forest, group=group, readings=readings, root=root, roots=roots, folded=fold(candidates, around))
    _place_decisions(assembly)
    return assembly


def _around(forest: Forest, members: set[SpanKey], wanted: set[SpanKey]) -> dict[SpanKey, SpanKey]:
    """For each of the wanted spans the nearest of them around it, within the run."""
    known: dict[SpanKey, SpanKey | None] = {}
    for start in wanted:
        walked = [start]
        here = forest.parents.get(start)
        while here is not None and here in members and here not in wanted and here not in known:
            walked.append(here)
            here = forest.parents.get(here)
        found = None if here is None or here not in members else here if here in wanted else known[here]
        known.update(dict.fromkeys(walked[1:], found))
        known[start] = found
    return {key: outer for key in wanted if (outer := known[key]) is not None}


def _root(forest: Forest, group: Group, drafts: Mapping[SpanKey, StepDraft]) -> tuple[SpanKey | None, tuple[SpanKey, ...]]:
    """The root of a run: the span that says so; else the outermost agent or workflow, or of several the one that spans all others."""

    def begun(key: SpanKey) -> tuple[int, SpanKey]:
        return forest.spans[key].start_ns, key

    declared = sorted((key for key, draft in drafts.items() if draft.root and draft.run is not None), key=begun)
    if declared:
        exact = [key for key in declared if (run := drafts[key].run) is not None and run.run_id == group.run_id]
        return (exact or declared)[0], ()
    if group.named:
        return None, ()
    members = set(group.keys)
    for wanted in (drafts, {key: draft for key, draft in drafts.items() if not draft.frame}):
        inside = _around(forest, members, set(wanted))
        tops = sorted((key for key in wanted if key not in inside), key=begun)
        outermost = [key for key in tops if wanted[key].run is not None]
        if not any(wanted[key].frame for key in tops):
            break
        if wanted[tops[0]].run is not None and _spans_all(forest, tops):
            return tops[0], ()
    if len(outermost) <= 1:
        return (outermost[0] if outermost else None), ()
    return (outermost[0], ()) if _spans_all(forest, outermost) else (None, tuple(outermost))


def _spans_all(forest: Forest, keys: Sequence[SpanKey]) -> bool:
    """Whether the first of some spans, in order of their start, ends after all others."""
    end = forest.spans[keys[0]].end_ns
    ends = [forest.spans[key].end_ns for key in keys[1:]]
    return not ends or (end is not None and all(other is not None and other <= end for other in ends))


def _place_decisions(assembly: Assembly) -> None:
    told: list[Decided] = []
    for key in assembly.group.keys:
        told += decisions(assembly.forest.spans[key], assembly.forest.logs.get(key, ()))
    by_call: dict[str, list[SpanKey]] = {}
    for key, candidate in sorted(assembly.folded.steps.items(), key=lambda item: (item[1].start_ns, item[0])):
        if candidate.draft.call_id is not None and candidate.draft.kind != "model_call":
            by_call.setdefault(candidate.draft.call_id, []).append(key)
    for number, decided in enumerate(told):
        step = _decided_step(assembly, decided, by_call)
        if step is not None:
            assembly.decided_for.setdefault(step, decided)
        else:
            assembly.decided[SpanKey(decided.trace_id, f"{decided.span_id}/{number}")] = decided


def _decided_step(assembly: Assembly, decided: Decided, by_call: Mapping[str, Sequence[SpanKey]]) -> SpanKey | None:
    steps = assembly.folded.steps
    here = assembly.folded.step_of(SpanKey(decided.trace_id, decided.span_id))
    if here in steps and steps[here].draft.kind in ("tool_call", "decision", "human", "handoff"):
        return here
    called = [key for key in by_call.get(decided.call_id or "", ()) if key not in assembly.decided_for]
    # A decision comes before the call it is about; ids are reused, so the nearest later call is meant.
    return next((key for key in called if steps[key].start_ns >= decided.time_ns), None)


# ---- order and steps ---------------------------------------------------------------------------------------------


def ordered_steps(assembly: Assembly) -> list[Step]:
    """All steps of the run in total order, with parents, requesters, retries and overlaps."""
    forest, folded = assembly.forest, assembly.folded
    members = [_moment(key, forest.spans[key], forest.parents.get(key), assembly.draft(key)) for key in assembly.group.keys]
    for key, decided in assembly.decided.items():
        around = SpanKey(decided.trace_id, decided.span_id)
        members.append(Moment(key=key, parent=around, start_ns=decided.time_ns, end_ns=decided.time_ns, tie=key.span_id))
    moments = {moment.key: moment for moment in members}
    order = [key for key in in_order(members) if key in folded.steps or key in assembly.decided]
    seq = {key: number for number, key in enumerate(order, 1)}
    parents = _parents(assembly, seq)
    nested = [replace(moments[key], parent=parents.get(key)) for key in order]
    beside = overlapping(nested)
    by_span = _by_span(assembly)
    steps: list[Step] = []
    for key in order:
        parent = parents.get(key)
        shared = {
            "seq": seq[key],
            "parent_seq": None if parent is None else seq[parent],
            "overlaps": tuple(seq[other] for other in beside.get(key, ())),
        }
        if key in folded.steps:
            steps.append(_step(assembly, key, shared, seq, by_span))
        else:
            steps.append(_decision_step(assembly, key, shared))
    asked = requests(steps)
    return [_requested(step, asked[step.seq]) if step.seq in asked else step for step in steps]


def _requested(step: Step, request: Request) -> Step:
    by = request.seq if step.requested_by is None else step.requested_by
    return as_asked(replace(step, requested_by=by), request.asked, seq=step.seq)


def _moment(key: SpanKey, span: SpanRecord, parent: SpanKey | None, draft: StepDraft | None) -> Moment[SpanKey]:
    fields = Fields(span.attributes)
    process = draft.process if draft is not None else fields.identifier(a.PROCESS_ID)
    return Moment(
        key=key,
        parent=parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        process=process,
        seq_start=fields.integer(a.STEP_SEQ_START),
        seq_end=fields.integer(a.STEP_SEQ_END),
        clock=_clock(span),
        tie=f"{key.span_id}{key.trace_id}",
    )


def _clock(span: SpanRecord) -> str:
    resource = Fields(span.resource.attributes)
    return "/".join(resource.identifier(name) or "" for name in (a.HOST_NAME, a.SERVICE_NAME, a.PROCESS_PID))


def _by_span(assembly: Assembly) -> dict[str, SpanKey]:
    """Spans of the run by span id alone, as steps name each other."""
    return {key.span_id: assembly.folded.step_of(key) for key in assembly.group.keys}


def _parents(assembly: Assembly, seq: Mapping[SpanKey, int]) -> dict[SpanKey, SpanKey]:
    """For each step the step inside which it ran: the one it names, else the nearest around it. Always an earlier one."""
    forest, folded = assembly.forest, assembly.folded
    by_span = {key.span_id: key for key in assembly.group.keys}
    members = set(assembly.group.keys)
    known: dict[SpanKey, SpanKey | None] = {}

    def nearest(start: SpanKey | None, own: SpanKey) -> SpanKey | None:
        walked: list[SpanKey] = []
        here = start
        while here is not None and here in members and here not in known:
            if folded.step_of(here) in seq and folded.step_of(here) != own:
                break
            walked.append(here)
            here = forest.parents.get(here)
        outside = here is None or here not in members
        found = None if here is None or outside else known[here] if here in known else folded.step_of(here)
        # What was walked through the step's own doubles holds for this step only.
        if found != own and not any(folded.step_of(key) == own for key in walked):
            known.update(dict.fromkeys(walked, found))
        return found

    parents: dict[SpanKey, SpanKey] = {}
    for key in seq:
        if key in assembly.decided:
            decided = assembly.decided[key]
            choices = [SpanKey(decided.trace_id, decided.span_id)]
        else:
            named = by_span.get(folded.steps[key].draft.parent_span or "")
            choices = [choice for choice in (named, forest.parents.get(key)) if choice is not None]
        for choice in choices:
            if choice == assembly.root:
                break
            parent = nearest(choice, key)
            if parent is not None and seq[parent] < seq[key]:
                parents[key] = parent
                break
    return parents


def _agent(assembly: Assembly, key: SpanKey) -> str | None:
    """The agent that a step without a name of one belongs to: the nearest around it, else the run's."""
    walked: list[SpanKey] = []
    found: str | None = None
    for outer in assembly.forest.ancestors(key):
        if outer in assembly.agents:
            found = assembly.agents[outer]
            break
        draft = assembly.draft(outer)
        walked.append(outer)
        if draft is not None and draft.agent is not None and draft.kind == "agent":
            found = draft.agent
            break
    assembly.agents.update(dict.fromkeys(walked, found))
    run = assembly.root_draft
    return found if found is not None or run is None else run.agent_name


def _step(assembly: Assembly, key: SpanKey, shared: Mapping[str, Json], seq: Mapping[SpanKey, int], by_span: Mapping[str, SpanKey]) -> Step:
    candidate = assembly.folded.steps[key]
    draft, span = candidate.draft, assembly.forest.spans[key]
    reasons = list(draft.reasons)
    missing = assembly.forest.orphans.get(key)
    if missing is not None:
        reasons.append(Reason(code=MISSING_PARENT, detail=f"its parent, span {missing}, is not here; kept under the run"))
    decided = assembly.decided_for.get(key)
    asked_by, retried = by_span.get(draft.requested_by_span or ""), by_span.get(draft.retry_of_span or "")
    return Step(
        seq=shared["seq"],
        kind=draft.kind,
        name=draft.name,
        call_id=draft.call_id,
        trace_id=key.trace_id,
        span_id=key.span_id,
        parent_seq=shared["parent_seq"],
        requested_by=seq.get(asked_by) if asked_by is not None else None,
        attempt=draft.attempt,
        retry_of=seq.get(retried) if retried is not None else None,
        agent=draft.agent or _agent(assembly, key),
        input=draft.input,
        output=draft.output,
        outcome=draft.outcome,
        error=draft.error,
        usage=draft.usage,
        effect=draft.effect,
        action_id=draft.action_id,
        decision=draft.decision if draft.decision is not None or decided is None else decided.record,
        target=draft.target,
        resources=draft.resources,
        versions=draft.versions,
        started_ns=span.start_ns,
        ended_ns=span.end_ns,
        overlaps=shared["overlaps"],
        grade=draft.grade,
        reasons=tuple(replace(reason, step=shared["seq"]) for reason in reasons),
        dialect=candidate.dialect,
        path=draft.path,
        process=draft.process,
        seq_fork=draft.seq_fork,
        seq_start=draft.seq_start,
        seq_end=draft.seq_end,
        typed_input=draft.typed_input,
        typed_result=draft.typed_result,
        typed_error=draft.typed_error,
        typed_items=draft.typed_items,
        wire=draft.wire,
    )


def _decision_step(assembly: Assembly, key: SpanKey, shared: Mapping[str, Json]) -> Step:
    decided = assembly.decided[key]
    around = SpanKey(decided.trace_id, decided.span_id)
    return Step(
        seq=shared["seq"],
        kind="decision",
        name=decided.tool or a.GEN_AI_TOOL_CALL_DECISION_EVENT,
        call_id=decided.call_id,
        trace_id=decided.trace_id,
        span_id=decided.span_id,
        parent_seq=shared["parent_seq"],
        requested_by=None,
        attempt=1,
        retry_of=None,
        agent=_agent(assembly, around),
        input=None,
        output=None,
        outcome=_DECISION_OUTCOMES.get(decided.outcome, "unknown"),
        error=None,
        usage={},
        effect=None,
        action_id=None,
        decision=decided.record,
        target=None,
        resources=(),
        versions={},
        started_ns=decided.time_ns,
        ended_ns=decided.time_ns,
        overlaps=shared["overlaps"],
        grade="semantic",
        reasons=(),
        dialect=assembly.readings[around].dialect or "gen_ai" if around in assembly.readings else "gen_ai",
    )


def orphan_reasons(assembly: Assembly, steps: Iterable[Step]) -> list[Reason]:
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

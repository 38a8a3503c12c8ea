"""The spans of one run, sorted: its root, its steps without doubles, what is around what, the decisions that were told."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from spanreplay.replay.reading.dialect import RunDraft, StepDraft
from spanreplay.replay.reading.events import Decided, decisions
from spanreplay.replay.rebuilding.doubles import fold
from spanreplay.replay.rebuilding.folded import Folded
from spanreplay.replay.rebuilding.grouping import Group, Reading, group
from spanreplay.replay.rebuilding.roots import around, frame_of_all, nearest, root_of
from spanreplay.replay.rebuilding.same_call import Candidate, Recorder
from spanreplay.replay.rebuilding.subagents import Placing, placed, without_loops
from spanreplay.replay.rebuilding.tree import Forest, SpanKey
from spanreplay.replay.rebuilding.untyped_tools import untyped_tools
from spanreplay.spans.record import KIND_SERVER


@dataclass(slots=True, kw_only=True)
class Assembly:
    """A run being put together."""

    forest: Forest
    group: Group
    """Its keys in order of start: nothing depends on the order in which the records came."""
    members: AbstractSet[SpanKey]
    """The spans of the group."""
    readings: Mapping[SpanKey, Reading]
    root: SpanKey | None
    root_step: StepDraft | None
    """What the root says, its doubles included."""
    roots: tuple[SpanKey, ...]
    """Where no span is the root of the run alone: the outermost agents, in order of time."""
    folded: Folded
    """The steps; the root is none of them."""
    at: Mapping[SpanKey, SpanKey]
    """For each span the nearest at or around it that was read as a step, whatever became of that."""
    parents: Mapping[SpanKey, SpanKey]
    """The tree of the forest, with sub-agents inside the tool calls that ran them."""
    placing: Placing
    decided: dict[SpanKey, Decided] = field(default_factory=dict)
    """Decisions that no step carries, by a key made up for each."""
    decided_for: dict[SpanKey, Decided] = field(default_factory=dict)
    """Decisions by the step that carries them."""
    _agents: dict[SpanKey, str | None] = field(default_factory=dict)
    """The nearest agent at or around a span, as far as looked up."""
    _by_id: dict[str, SpanKey] = field(default_factory=dict)

    @property
    def root_draft(self) -> RunDraft | None:
        """What the root says about the run."""
        return self.root_step.run if self.root_step is not None else None

    def draft(self, key: SpanKey) -> StepDraft | None:
        """What the dialect read in a span of the forest."""
        reading = self.readings.get(key)
        return None if reading is None else reading.draft

    def step_at(self, span: SpanKey) -> SpanKey | None:
        """The step at or around a span; ``None`` right under the run."""
        at = self.at.get(span)
        step = None if at is None else self.folded.step_of(at)
        return step if step in self.folded.steps else None

    def span_named(self, span_id: str | None, trace_id: str) -> SpanKey | None:
        """The span of the run that another one names by its id alone, of the same trace if one there has it."""
        if span_id is None:
            return None
        key = SpanKey(trace_id, span_id)
        if not self._by_id:
            self._by_id.update((member.span_id, member) for member in self.group.keys)
        found = self._by_id.get(span_id)
        return key if found is not None and key in self.members else found

    def agent_of(self, key: SpanKey) -> str | None:
        """The agent that a step without a name of one belongs to: the nearest around it, else the run's."""
        walked: list[SpanKey] = []
        found: str | None = None
        outer = self.parents.get(key)
        while outer is not None:
            if outer in self._agents:
                found = self._agents[outer]
                break
            draft = self.draft(outer)
            walked.append(outer)
            if draft is not None and draft.agent is not None and draft.kind == "agent":
                found = draft.agent
                break
            outer = self.parents.get(outer)
        self._agents.update(dict.fromkeys(walked, found))
        run = self.root_draft
        return found if found is not None or run is None else run.agent_name


def assemble(forest: Forest, group: Group, readings: Mapping[SpanKey, Reading]) -> Assembly:
    """Folds the doubles of a run, finds its root, and puts sub-agents where they ran."""
    group = replace(group, keys=tuple(sorted(group.keys, key=lambda key: (forest.spans[key].start_ns, key))))
    drafts = {key: draft for key in group.keys if (draft := readings[key].draft) is not None}
    if untyped := untyped_tools(forest, drafts):
        drafts |= untyped
        told = {key: replace(readings[key], draft=draft) for key, draft in untyped.items()}
        readings = ChainMap(told, readings)  # type: ignore[arg-type]  # nothing is written to it
    frames = {key: draft for key, draft in drafts.items() if draft.frame}
    steps = [key for key in drafts if key not in frames]
    members = set(group.keys)
    at = nearest(forest, members, set(steps))
    folded = fold((_candidate(forest, readings[key], key, drafts[key]) for key in steps), around(forest, at, steps))
    root, roots = root_of(forest, group, folded, frames)
    top = drafts[root] if root is not None and root in frames else None
    if root is not None and root in folded.steps:
        top = folded.steps[root].draft
    if top is not None and root is not None and frames:
        top = _with_frame(top, frame_of_all(forest, root, frames, folded.steps, members))
    placing = placed(folded, root, top.run.agent_name if top is not None and top.run is not None else None)
    if root is not None:
        folded.steps.pop(root, None)
    known_better = {key: parent for key, double in folded.inside.items() if (parent := forest.parents.get(double)) is not None}
    assembly = Assembly(
        forest=forest,
        group=group,
        members=members,
        readings=readings,
        root=root,
        root_step=top,
        roots=roots,
        folded=folded,
        at=at,
        parents=without_loops(forest.parents, {**known_better, **placing.inside}),
        placing=placing,
    )
    _place_decisions(assembly)
    return assembly


def _with_frame(root: StepDraft, frame: StepDraft | None) -> StepDraft:
    """The root with what only a span of the same run right inside it has: what went in and what came out."""
    run, inner = root.run, None if frame is None else frame.run
    if run is None or inner is None or (run.input is not None and run.output is not None):
        return root
    given = run.input if run.input is not None else inner.input
    return replace(root, run=replace(run, input=given, output=run.output if run.output is not None else inner.output))


def _candidate(forest: Forest, reading: Reading, key: SpanKey, draft: StepDraft) -> Candidate:
    span = forest.spans[key]
    dialect, scope = reading.dialect or "", span.scope.name
    return Candidate(
        key=key,
        draft=draft,
        dialect=dialect,
        scope=scope,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        name=span.name,
        serves=span.kind == KIND_SERVER or draft.serves,
        recorders=frozenset({Recorder(dialect, scope)}),
    )


def _place_decisions(assembly: Assembly) -> None:
    told: list[Decided] = []
    for key in assembly.group.keys:
        span, logs = assembly.forest.spans[key], assembly.forest.logs.get(key, ())
        if span.events or logs:
            told += decisions(span, logs)
    if not told:
        return
    told.sort(key=lambda decided: (decided.time_ns, decided.trace_id, decided.span_id, decided.call_id or ""))
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


def notes(forest: Forest, readings: Mapping[SpanKey, Reading]) -> dict[SpanKey, str]:
    """What became of spans that are no step of their own, or are a step in another place than the tree has them, in a few words."""
    found: dict[SpanKey, str] = {}
    for members in group(forest, readings):
        assembly = assemble(forest, members, readings)
        found.update((key, f"the same call as {assembly.folded.step_of(key).span_id}") for key in assembly.folded.absorbed)
        found.update((wrapper, "around several calls") for wrapper in assembly.folded.wrapped.values())
        found.update((key, f"ran inside {tool.span_id}") for key, tool in assembly.placing.inside.items())
        if assembly.root is not None:
            found[assembly.root] = "the run"
    found.update((copy, f"the same span as {kept.span_id}") for kept, copies in forest.copies.items() for copy in copies)
    return found

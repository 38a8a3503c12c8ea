"""The root of a run: the span that the run is, if one span is it."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.folded import Folded
from spanreplay.replay.rebuilding.grouping import Group
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.tree import Forest, SpanKey


def nearest(forest: Forest, members: Collection[SpanKey], wanted: Collection[SpanKey]) -> dict[SpanKey, SpanKey]:
    """For each of some spans the nearest wanted one at or around it; none where the way there leaves the members.

    Args:
        forest: the spans.
        members: the spans of one run.
        wanted: some of them.
    """
    known: dict[SpanKey, SpanKey | None] = {}
    for start in members:
        walked: list[SpanKey] = []
        here: SpanKey | None = start
        while here is not None and here in members and here not in wanted and here not in known:
            walked.append(here)
            here = forest.parents.get(here)
        found = None if here is None or here not in members else here if here in wanted else known[here]
        known.update(dict.fromkeys(walked, found))
        if start in wanted:
            known[start] = start
    return {key: found for key, found in known.items() if found is not None}


def around(forest: Forest, at: Mapping[SpanKey, SpanKey], keys: Iterable[SpanKey]) -> dict[SpanKey, SpanKey]:
    """For each of some spans what :func:`nearest` found for its parent."""
    return {key: at[parent] for key in keys if (parent := forest.parents.get(key)) is not None and parent in at}


def root_of(
    forest: Forest, group: Group, folded: Folded, frames: Mapping[SpanKey, StepDraft]
) -> tuple[SpanKey | None, tuple[SpanKey, ...]]:
    """The root of a run, or the outermost agents where no span is the root alone.

    The span that says so; else the outermost agent or workflow; of several the one that lasts over all others. A frame is the root if all
    else is inside it, or lasted no longer.

    Args:
        forest: the spans.
        group: those of the run.
        folded: what was read as steps.
        frames: what was read as no step but may be a root.
    """

    def begun(key: SpanKey) -> tuple[int, int, SpanKey]:
        span = forest.spans[key]
        return span.start_ns, -(NEVER if span.end_ns is None else span.end_ns), key

    drafts = {key: candidate.draft for key, candidate in folded.steps.items()}
    declared = sorted((key for key, draft in drafts.items() if draft.root and draft.run is not None), key=begun)
    if declared:
        exact = [key for key in declared if (run := drafts[key].run) is not None and run.run_id == group.run_id]
        return (exact or declared)[0], ()
    if group.named:
        return None, ()
    tops = sorted({folded.step_of(key) for key in folded.places if key not in folded.around}, key=begun)
    if frames:
        # Everything that was read, whatever it is inside of; then the steps alone.
        all_drafts = {**drafts, **frames}
        members = set(group.keys)
        at = nearest(forest, members, {*folded.places, *frames})
        inside = around(forest, at, at.keys())
        outermost = sorted({folded.step_of(key) for key in (*folded.places, *frames) if key not in inside}, key=begun)
        framed = any(key in frames for key in outermost)
        if framed and all_drafts[outermost[0]].run is not None and _spans_all(forest, outermost):
            return outermost[0], ()
    agents = [key for key in tops if drafts[key].run is not None]
    if len(agents) <= 1:
        return (agents[0] if agents else None), ()
    return (agents[0], ()) if _spans_all(forest, agents) else (None, tuple(agents))


def frame_of_all(
    forest: Forest, root: SpanKey, frames: Mapping[SpanKey, StepDraft], steps: Iterable[SpanKey], members: Collection[SpanKey]
) -> StepDraft | None:
    """The outermost frame right inside a root that everything else of the run is inside of: a second instrumentation's span of the run.

    Args:
        forest: the spans.
        root: of the run.
        frames: what was read as no step but may be a root.
        steps: of the run.
        members: the spans of the run.
    """
    others = [key for key in steps if key != root]
    inside = around(forest, nearest(forest, members, {*frames, *others, root}), frames)
    found = [key for key in frames if key != root and inside.get(key) == root]
    if len(found) != 1 or not others:
        return None
    within = nearest(forest, members, {found[0], root})
    return frames[found[0]] if all(within.get(key) == found[0] for key in others) else None


def _spans_all(forest: Forest, keys: Sequence[SpanKey]) -> bool:
    """Whether the first of some spans, in order of their start, ends after all others."""
    end = forest.spans[keys[0]].end_ns
    ends = [forest.spans[key].end_ns for key in keys[1:]]
    return not ends or (end is not None and all(other is not None and other <= end for other in ends))

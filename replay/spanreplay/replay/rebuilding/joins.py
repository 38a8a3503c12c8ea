"""Runs of several traces, where the trace was broken on the way and the user asks for it.

A thread pool without context, a queue, a service that starts traces of its own: what belongs to one run is in several traces. Two things
can tell: a conversation or session that they share, or a call that was asked for in one and run in another. Neither is proof (a session has
many runs, call ids are reused), so nothing is joined unless it is asked for.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.rebuilding.grouping import Group, Reading
from spanreplay.replay.rebuilding.same_call import asked_ids
from spanreplay.replay.rebuilding.subagents import without_loops
from spanreplay.replay.rebuilding.tree import Forest, SpanKey
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

Join: TypeAlias = Literal["conversation", "call-id"]
JOINS: Final[tuple[Join, ...]] = ("conversation", "call-id")
_NAMED: Final = 6


def join(groups: Sequence[Group], forest: Forest, readings: Mapping[SpanKey, Reading], by: Join) -> tuple[list[Group], Forest]:
    """Makes one run of runs that share a conversation, or of a run and the traces in which its calls were run.

    Two runs that spanreplay recorded, and that name themselves, are never joined with each other.

    Args:
        groups: one for each run.
        forest: all spans.
        readings: what they were read as.
        by: what the traces have in common.

    Returns:
        The runs, and the spans with each call's trace inside what the call was asked for in.
    """
    groups = sorted(groups, key=lambda group: (min(forest.spans[key].start_ns for key in group.keys), group.run_id))
    sets = _Sets(groups)
    if by == "conversation":
        _by_conversation(groups, forest, readings, sets)
        return sets.merged("share a conversation"), forest
    inside = _by_call(groups, forest, readings, sets)
    placed = replace(forest, parents=without_loops(forest.parents, inside))
    return sets.merged("hold calls that were asked for in one and run in another"), placed


class _Sets:
    """Runs that become one."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._leader = list(range(len(groups)))
        self._named = [group.named for group in groups]

    def leader(self, place: int) -> int:
        while self._leader[place] != place:
            self._leader[place] = self._leader[self._leader[place]]
            place = self._leader[place]
        return place

    def unite(self, one: int, other: int) -> bool:
        """Whether they are one run now."""
        first, second = sorted((self.leader(one), self.leader(other)))
        if first != second:
            if self._named[first] and self._named[second]:
                return False
            self._leader[second] = first
            self._named[first] = self._named[first] or self._named[second]
        return True

    def merged(self, why: str) -> list[Group]:
        members: dict[int, list[Group]] = {}
        for place, group in enumerate(self._groups):
            members.setdefault(self.leader(place), []).append(group)
        return [_one(together, why) for together in members.values()]


def _one(groups: Sequence[Group], why: str) -> Group:
    if len(groups) == 1:
        return groups[0]
    first = next((group for group in groups if group.named), groups[0])
    keys = tuple(key for group in groups for key in group.keys)
    traces = list(dict.fromkeys(key.trace_id for key in keys))
    shown = ", ".join(traces[:_NAMED]) + (f" and {len(traces) - _NAMED} more" if len(traces) > _NAMED else "")
    return replace(first, keys=keys, joined=f"traces that {why}, joined because it was asked for: {shown}")


def _by_conversation(groups: Sequence[Group], forest: Forest, readings: Mapping[SpanKey, Reading], sets: _Sets) -> None:
    sharing: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for session in sorted({s for key in group.keys if (s := session_of(forest.spans[key], readings[key].draft)) is not None}):
            sharing.setdefault(session, []).append(place)
    for places in sharing.values():
        several = sum(groups[place].named for place in places) > 1  # then nobody knows to which of them the others belong
        fit = [place for place in places if not (several and groups[place].named)]
        for place in fit[1:]:
            sets.unite(fit[0], place)


def _by_call(groups: Sequence[Group], forest: Forest, readings: Mapping[SpanKey, Reading], sets: _Sets) -> dict[SpanKey, SpanKey]:
    asking: dict[str, dict[int, list[SpanKey]]] = {}
    calls: list[tuple[int, SpanKey, str]] = []
    for place, group in enumerate(groups):
        for key in sorted(group.keys, key=lambda key: (forest.spans[key].start_ns, key)):
            draft = readings[key].draft
            if draft is not None and draft.kind == "model_call":
                for call_id in asked_ids(draft):
                    asking.setdefault(call_id, {}).setdefault(place, []).append(key)
            elif draft is not None and draft.kind == "tool_call" and draft.call_id is not None:
                calls.append((place, key, draft.call_id))
    inside: dict[SpanKey, SpanKey] = {}
    for place, key, call_id in calls:
        asked_in = asking.get(call_id, {})
        if len(asked_in) == 1 and place not in asked_in:  # asked for in several runs: nobody knows which is meant
            ((other, models),) = asked_in.items()
            before = bisect_right(models, forest.spans[key].start_ns, key=lambda model: forest.spans[model].start_ns)
            parent = forest.parents.get(models[max(0, before - 1)])
            if sets.unite(other, place) and parent is not None:
                inside.setdefault(_top(forest, key), parent)
    return inside


def _top(forest: Forest, key: SpanKey) -> SpanKey:
    return [key, *forest.ancestors(key)][-1]


def session_of(span: SpanRecord, draft: StepDraft | None) -> str | None:
    """The conversation or session that a span names, step or not."""
    if draft is not None and draft.session_id is not None:
        return draft.session_id
    return Fields(span.attributes).identifier(a.GEN_AI_CONVERSATION_ID, a.SESSION_ID)

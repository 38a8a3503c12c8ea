"""What says the order of steps that began at the same time, as many do in formats with times in milli- or microseconds.

Causes do: an answer comes before the call that it asks for. And a model that asks for several calls at once says an order, the only one of
calls that began and ended at the same time; it travels with the spans. :mod:`spanreplay.replay.rebuilding.order` says why nothing else is
taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from spanreplay.replay.rebuilding.assembly import Assembly
from spanreplay.replay.rebuilding.links import Links, answered_ids
from spanreplay.replay.rebuilding.order import Moment
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.replay.rebuilding.same_call import asked_ids
from spanreplay.replay.rebuilding.tree import SpanKey


def causes_of_ties(assembly: Assembly, parents: Mapping[SpanKey, SpanKey]) -> Iterator[tuple[SpanKey, SpanKey]]:
    """What caused what, of steps in one place that start at the same time: an answer the call that it asks for, a call what tells of it."""
    ties: dict[tuple[SpanKey | None, int], list[SpanKey]] = {}
    for key, candidate in assembly.folded.steps.items():
        ties.setdefault((parents.get(key), candidate.start_ns), []).append(key)
    for tied in ties.values():
        drafts = {key: assembly.folded.steps[key].draft for key in tied}
        if len({draft.kind == "model_call" for draft in drafts.values()}) < 2:
            continue
        asking: dict[str, SpanKey] = {}
        telling: dict[str, SpanKey] = {}
        for key, draft in drafts.items():
            if draft.kind == "model_call":
                asking.update(dict.fromkeys(asked_ids(draft), key))
                telling.update((call_id, key) for call_id in answered_ids(draft.input) if call_id is not None)
        for key, draft in drafts.items():
            if draft.kind != "model_call" and draft.call_id is not None:
                if draft.call_id in asking:
                    yield asking[draft.call_id], key
                if draft.call_id in telling and telling[draft.call_id] != asking.get(draft.call_id):
                    yield key, telling[draft.call_id]


def asked_in_turn(steps: Sequence[Placed], links: Links, moments: Mapping[SpanKey, Moment[SpanKey]]) -> Iterator[tuple[SpanKey, SpanKey]]:
    """Pairs of calls of which the first was asked for before the second, where only that tells; nothing where they lie so already.

    Args:
        steps: of one run, in the order that they have without.
        links: of these steps.
        moments: when each ran; calls that a process counted have an order of their own.
    """
    ties: dict[tuple[object, ...], list[tuple[int, int, SpanKey]]] = {}
    for step in steps:
        request, moment = links.answers.get(step.seq), moments.get(step.key)
        if request is None or moment is None or moment.seq_start is not None:
            continue
        at = (request.seq, step.parent_seq, step.started_ns, step.ended_ns, moment.clock)
        ties.setdefault(at, []).append((request.place, step.seq, step.key))
    for tied in ties.values():
        asked = sorted(tied)
        if asked != tied:
            yield from ((first, second) for (*_, first), (*_, second) in pairwise(asked))

"""Calls that began, by the clock, before the model call whose answer asks for them: spans of two machines or of a clock that was set.

The id says what the clock denies. It is believed where the name and the arguments are those asked for, both are in one place, no earlier
answer asks for that id, and what the model was asked does not tell its result yet: ids are used again.
"""

from collections.abc import Iterable, Mapping

from spanreplay.replay.reading.messages import Asked, asked_for
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.rebuilding.links import answered_ids
from spanreplay.replay.rebuilding.same_call import Candidate, arguments_conflict
from spanreplay.replay.rebuilding.tree import SpanKey


def skewed(steps: Iterable[Candidate], parents: Mapping[SpanKey, SpanKey]) -> dict[SpanKey, SpanKey]:
    """For each such call the model call whose answer asks for it.

    Args:
        steps: of one run.
        parents: the step around each step.
    """
    calls: list[Candidate] = []
    models: list[Candidate] = []
    for step in steps:
        if step.draft.kind == "model_call":
            models.append(step)
        elif step.draft.kind == "tool_call" and step.draft.call_id is not None and step.draft.path is None:
            calls.append(step)
    if not calls:
        return {}
    requests: dict[str, list[tuple[Candidate, Asked]]] = {}
    for model in sorted(models, key=lambda step: (step.start_ns, step.key)):
        for asked in asked_for(model.draft.output):
            if asked.call_id is not None:
                requests.setdefault(asked.call_id, []).append((model, asked))
    found: dict[SpanKey, SpanKey] = {}
    taken: set[tuple[SpanKey, str]] = set()
    for call in sorted(calls, key=lambda step: (step.start_ns, step.key)):
        call_id = call.draft.call_id or ""
        asking = requests.get(call_id)
        if asking is None or asking[0][0].start_ns <= call.start_ns:
            continue
        model, asked = asking[0]
        if (model.key, call_id) not in taken and parents.get(model.key) == parents.get(call.key) and _fits(call, asked):
            if call_id not in answered_ids(model.draft.input):
                found[call.key] = model.key
            taken.add((model.key, call_id))
    return found


def _fits(call: Candidate, asked: Asked) -> bool:
    return same_tool(asked.name or "", call.draft.name) and not arguments_conflict(call.draft.input, {"arguments": asked.arguments})

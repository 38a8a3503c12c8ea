"""Which step caused which: the model answer that asked for a tool call."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.messages import Asked, asked_for
from spanreplay.replay.model import Json, Step

_REQUESTED: Final = frozenset({"tool_call", "handoff", "agent", "decision", "human"})


class _Open(NamedTuple):
    """A request that no call has answered yet."""

    seq: int
    asked: Asked
    arguments: str
    """In the matching form."""


def requesters(steps: Sequence[Step]) -> dict[int, int]:
    """For each tool call the model step that asked for it, as ``seq``; a call that nothing seems to have asked for is absent.

    A call id names the nearest earlier answer that has it: ids are reused, and a later call with an old id belongs to the later answer.
    A call without an id belongs to the nearest earlier answer that asks for the same tool with the same arguments, if no other call has
    answered that request.

    Args:
        steps: of one run, in order.
    """
    found: dict[int, int] = {}
    by_id: dict[str, int] = {}
    open_requests: list[_Open] = []
    for step in steps:
        if step.kind == "model_call":
            for asked in asked_for(step.output):
                if asked.call_id is not None:
                    by_id[asked.call_id] = step.seq
                open_requests.append(_Open(step.seq, asked, canonical_json(asked.arguments)))
        elif step.kind in _REQUESTED:
            if step.call_id is not None:
                if step.call_id in by_id:
                    found[step.seq] = by_id[step.call_id]
                    _take(open_requests, step.call_id, by_id[step.call_id])
            elif step.kind == "tool_call":
                place = _unnamed(open_requests, step.name, step.input)
                if place is not None:
                    found[step.seq] = open_requests.pop(place).seq
    return found


def _take(open_requests: list[_Open], call_id: str, seq: int) -> None:
    for place in range(len(open_requests) - 1, -1, -1):
        if open_requests[place].seq == seq and open_requests[place].asked.call_id == call_id:
            del open_requests[place]
            return


def _unnamed(open_requests: Sequence[_Open], name: str, given: Json) -> int | None:
    if not isinstance(given, dict) or "arguments" not in given:
        return None
    wanted = canonical_json(given["arguments"])
    nearest: int | None = None
    for place, request in enumerate(open_requests):
        # Of equal requests in one answer the first is taken first.
        if request.asked.name == name and request.arguments == wanted and (nearest is None or open_requests[nearest].seq < request.seq):
            nearest = place
    return nearest

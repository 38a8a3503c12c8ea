"""Which model call is a further attempt of which, where the spans do not say so.

The same request to the same model, from the same place, after the one before it has failed. A request to another model is another call.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.replay.model import Json
from spanreplay.replay.placed import Placed
from spanreplay.replay.tree import SpanKey

FAILED: Final = frozenset({"error", "timeout", "malformed"})


class Attempt(NamedTuple):
    """The number of an attempt, from 1, and the ``seq`` of the one before it."""

    number: int
    retry_of: int


class _Failed(NamedTuple):
    step: Placed
    number: int


def attempts(steps: Iterable[Placed]) -> dict[int, Attempt]:
    """The attempts beyond the first, by ``seq``.

    Args:
        steps: of one run, in order.
    """
    found: dict[int, Attempt] = {}
    failed: dict[tuple[int | None, str | None, str], dict[object, _Failed]] = {}
    for step in steps:
        if step.draft.kind != "model_call" or step.draft.path is not None:  # our own recorder has said so where it is one
            continue
        place = (step.parent_seq, step.agent, step.draft.name)
        waiting = failed.get(place)
        number, request = step.draft.attempt, None
        if waiting and number == 1 and step.retry_of is None:
            request = _request(step)
            before = waiting.get(request)
            if before is not None and before.step.ended_ns is not None and before.step.ended_ns <= step.started_ns:
                del waiting[request]
                number = before.number + 1
                found[step.seq] = Attempt(number, before.step.seq)
        if step.draft.outcome in FAILED:
            failed.setdefault(place, {})[_request(step) if request is None else request] = _Failed(step, number)
    return found


def _request(step: Placed) -> str | SpanKey | int:
    """What is the same in two attempts: the request; where it was not captured, the span around the attempts; else nothing."""
    asked: Json = step.draft.input
    if isinstance(asked, dict) and asked.get("messages"):
        return digest(canonical_json([asked["messages"], asked.get("system"), asked.get("tools")]))
    return step.wrapper if step.wrapper is not None else step.seq

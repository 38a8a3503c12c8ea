"""Which model call is a further attempt of which, where the spans do not say so.

The same request to the same model, from the same place, after the one before it has failed. A request to another model is another call.
"""

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.replay.model import Json
from spanreplay.replay.rebuilding.placed import Placed

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
    failed: dict[tuple[int | None, str | None, str], dict[Hashable, _Failed]] = {}
    for step in steps:
        if step.draft.kind != "model_call" or step.draft.path is not None:  # our own recorder has said so where it is one
            continue
        waiting = failed.setdefault((step.parent_seq, step.agent, step.draft.name), {})
        number = step.draft.attempt
        if waiting and number == 1 and step.retry_of is None:
            for request in (_request(step), step.wrapper):
                before = waiting.get(request)
                if request is not None and before is not None and _over(before.step, step):
                    del waiting[request]
                    number = before.number + 1
                    found[step.seq] = Attempt(number, before.step.seq)
                    break
        if step.draft.outcome in FAILED:
            waiting[_request(step) or step.wrapper] = _Failed(step, number)
    return found


def _request(step: Placed) -> str | None:
    """What is the same in two attempts; where it was not captured, only the span around both tells."""
    asked: Json = step.draft.input
    if not isinstance(asked, dict) or not asked.get("messages"):
        return None
    return digest(canonical_json([asked["messages"], asked.get("system"), asked.get("tools")]))


def _over(before: Placed, step: Placed) -> bool:
    return before.ended_ns is not None and before.ended_ns <= step.started_ns

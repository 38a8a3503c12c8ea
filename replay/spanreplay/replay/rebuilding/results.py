"""Which of several equal requests a call answered: what the model was told of each, by its id, is what only one of the calls gave.

Two calls of one tool with the same arguments, and no ids on their spans, may answer either request. The next request to the model says
which id gave which result. That is taken only where it fits all of them: an id that is not certain is worse than none.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.messages import Asked
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.replay.rebuilding.told import told_of

LOOKED_AT: Final = 16
"""Model steps after the calls that need be looked at."""


@dataclass(frozen=True, slots=True)
class Known:
    """Which call gave what the model was told of which request."""

    pairs: Sequence[tuple[int, int]]
    """Indexes into the calls and the requests."""
    by: int
    """The model step that was told."""


def by_results(calls: Sequence[Placed], asked: Sequence[Asked], models: Sequence[Placed]) -> Known | None:
    """Finds out which call answered which of several requests that fit them alike.

    Equal results go in order: nobody can tell them apart. Where a result is not among what was told, nothing is found out.

    Args:
        calls: in order, none with a call id.
        asked: the requests, of one answer, in order, with different ids.
        models: the first :data:`LOOKED_AT` model steps after the calls, in order.
    """
    ids = [one.call_id for one in asked]
    if None in ids or len(set(ids)) < len(ids):
        return None
    for model in models:
        told = told_of(model.draft.input)
        known = [told.get(one.call_id or "") for one in asked]
        if any(k is not None and k.call is not None and not _names(k.call.get("name"), a) for k, a in zip(known, asked, strict=True)):
            continue  # the id is another agent's here
        results = [form(k.response["response"]) if k is not None and k.response is not None else None for k in known]
        if any(result is not None for result in results):
            pairs = _pairs([_given(call) for call in calls], results)
            return Known(pairs, model.seq) if pairs else None
    return None


def _pairs(given: Sequence[str | None], told: Sequence[str | None]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for result in dict.fromkeys(form for form in given if form is not None):
        gave = [n for n, form in enumerate(given) if form == result]
        were = [n for n, form in enumerate(told) if form == result]
        if not were and None not in told:
            return []  # what was told is not what the calls gave
        if len(gave) == len(were):
            pairs += zip(gave, were, strict=True)
    calls, requests = ({*range(len(side))} - {pair[n] for pair in pairs} for n, side in enumerate((given, told)))
    if pairs and len(calls) == len(requests) == 1:
        call, request = calls.pop(), requests.pop()
        if given[call] is None or told[request] is None:
            pairs.append((call, request))
    return pairs


def _names(name: Any, asked: Asked) -> bool:
    return not isinstance(name, str) or same_tool(name, asked.name or "")


def _given(call: Placed) -> str | None:
    output = call.draft.output
    return form(output["result"]) if isinstance(output, dict) and output.get("result") is not None else None


def form(value: Json) -> str:
    """A result in the form in which results are compared: a number and its text are one, JSON and its text are too."""
    decoded = decoded_json(value)[0]
    return canonical_json(json.dumps(decoded) if isinstance(decoded, int | float) else decoded)

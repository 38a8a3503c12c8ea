"""The type of a result of which the record has only a text, from a later request that tells it as JSON.

Pydantic AI writes what a tool gave as it is where it is a text, else as JSON: the number 0 and the text ``0`` are one attribute, and so are
a list and a text that looks like one. Its messages tell them apart. OpenInference calls a text JSON that a tool of the OpenAI Agents SDK
gave and that looks like it; the SDK tells the model of an object or a list as Python shows it, so what is told as JSON was a text. Where
both are the same (``[1, 2]``, ``{}``) nothing tells, and the model is told the same either way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import encode
from spanreplay.replay.model import Json
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.rebuilding.placed import Placed

_IN_THEIR_TYPE: Final = frozenset({"pydantic_ai"})
"""Dialects whose requests have each result in the type that the tool gave; in others a text may be what was made of it."""
_LOOKED_AT: Final = 4
"""Requests after a call that may tell of it."""
_SCALAR: Final = 40
"""Characters of the longest text that is taken for a number."""


def typed_as_told(steps: Sequence[Placed], call_ids: Mapping[int, str] | None = None) -> list[Placed]:
    """The steps of a run, each result of others' tools in its own type where a request after it says which.

    Args:
        steps: in order.
        call_ids: of steps whose spans have none, by ``seq``.
    """
    inferred = call_ids or {}
    made = list(steps)
    waiting: dict[str, tuple[int, int]] = {}
    for place, step in enumerate(steps):
        call_id = step.draft.call_id or inferred.get(step.seq)
        if step.draft.kind == "tool_call" and call_id is not None:
            waiting.pop(call_id, None)
            if _may_be_another(step):
                waiting[call_id] = (place, _LOOKED_AT)
        elif step.draft.kind == "model_call" and waiting:
            told = _told(step.draft.input, set(waiting))
            for wanted, (earlier, left) in list(waiting.items()):
                if wanted in told and (
                    step.dialect in _IN_THEIR_TYPE or not isinstance(told[wanted], str) or _is_text(made[earlier], told[wanted])
                ):
                    made[earlier] = _typed(made[earlier], told[wanted])
                if wanted in told or left == 1:
                    del waiting[wanted]
                else:
                    waiting[wanted] = (earlier, left - 1)
    return made


def _may_be_another(step: Placed) -> bool:
    draft = step.draft
    if draft.path is not None or not isinstance(draft.output, dict):
        return False
    result = draft.output.get("result")
    if isinstance(result, str):
        return 0 < len(result) <= _SCALAR and (result[0] in "-0123456789" or result in ("true", "false", "null"))
    return isinstance(result, dict | list) and (step.dialect in _IN_THEIR_TYPE or draft.perhaps_text is not None)


def _is_text(step: Placed, told: str) -> bool:
    """Whether what a model was told is what was written of a result, and not what Python shows of it."""
    output = step.draft.output
    return step.draft.perhaps_text == told and isinstance(output, dict) and told != str(output.get("result"))


def _told(asked: Json, wanted: set[str]) -> dict[str, Json]:
    """What a request tells of some calls, from its last message back to where all are found."""
    found: dict[str, Json] = {}
    messages = asked.get("messages") if isinstance(asked, dict) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call_response" and "response" in part:
                call_id = part.get("id")
                if isinstance(call_id, str) and call_id in wanted:
                    found.setdefault(call_id, part["response"])
        if len(found) == len(wanted):
            break
    return found


def _typed(step: Placed, told: Json) -> Placed:
    output = step.draft.output
    result = output.get("result") if isinstance(output, dict) else None
    if isinstance(result, str) == isinstance(told, str):
        return step
    text, value = (result, told) if isinstance(result, str) else (told, result)
    if not isinstance(text, str) or canonical_json(decoded_json(f"[{text}]")[0]) != canonical_json([value]):
        return step
    return replace(step, draft=replace(step.draft, output={"result": told}, typed_result=encode(told).text))

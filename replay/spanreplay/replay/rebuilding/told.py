"""What a step's own record does not say and a later request to the model does, in the conversation that it goes on from.

That tells what was called with what, what came of it, and what the model had answered. Some instrumentations record that a tool ran and not
what came of it (AutoGen, MCP, Claude Code's MCP tools, anything with the content of tools off), or requests without answers (Gemini CLI as
it comes), while the requests that follow are there whole.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spanreplay.content.codec import encode
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.fields import NULL_IDS, decoded_json
from spanreplay.replay.reasons import AS_TOLD, INPUT_ABSENT, OUTPUT_ABSENT

_ENDED: Final = frozenset({"ok", "tool_error", "unknown"})
"""How a call ended that had something to tell."""
_REMEMBERED: Final = 16
"""Requests without an answer that are compared with a later one."""


@dataclass(slots=True)
class Told:
    """What a history tells of one call."""

    call: Mapping[str, Any] | None = None
    response: Mapping[str, Any] | None = None


def as_told(steps: Sequence[StepDraft]) -> list[StepDraft]:
    """The steps of a run, with what only the requests after them tell. A step of our own, and what is recorded, is left as it is.

    Args:
        steps: in order; the first is step 1.
    """
    made = list(steps)
    lacking: dict[str, int] = {}
    silent: deque[int] = deque(maxlen=_REMEMBERED)
    for place, step in enumerate(steps):
        if step.kind == "model_call":
            if lacking:
                told = told_of(step.input)
                for call_id in [call_id for call_id in lacking if call_id in told]:
                    earlier = lacking.pop(call_id)
                    made[earlier] = _called(made[earlier], told[call_id], place + 1)
            for earlier in list(silent):
                answer = answer_told(made[earlier].input, step.input)
                if answer:
                    silent.remove(earlier)
                    made[earlier] = _with(made[earlier], place + 1, output={"messages": answer, "finish": None})
            if _silent(step):
                silent.append(place)
        elif step.kind == "tool_call" and step.call_id is not None:
            lacking.pop(step.call_id, None)
            if step.path is None and (step.input is None or (step.output is None and step.outcome in _ENDED)):
                lacking[step.call_id] = place
    return made


def _messages(asked: Json) -> list[Any]:
    messages = asked.get("messages") if isinstance(asked, dict) else None
    return messages if isinstance(messages, list) else []


# ---- tools -------------------------------------------------------------------------------------------------------


def told_of(asked: Json) -> dict[str, Told]:
    """The calls among the messages of a request, by id; of several with one id the last."""
    found: dict[str, Told] = {}
    for part in _parts(asked):
        call_id = part.get("id")
        if not isinstance(call_id, str) or call_id in NULL_IDS:
            continue
        if part.get("type") == "tool_call":
            found[call_id] = Told(call=part)
        elif part.get("type") == "tool_call_response" and "response" in part:
            found.setdefault(call_id, Told()).response = part
    return found


def _parts(asked: Json) -> Iterator[Mapping[str, Any]]:
    for message in _messages(asked):
        parts = message.get("parts") if isinstance(message, dict) else None
        yield from (part for part in (parts if isinstance(parts, list) else ()) if isinstance(part, dict))


def _called(step: StepDraft, told: Told, seq: int) -> StepDraft:
    if step.input is None and told.call is not None and told.call.get("arguments") is not None:
        arguments = decoded_json(told.call["arguments"])[0]
        step = replace(_with(step, seq, input={"arguments": arguments}), typed_input=encode(arguments).text)
    if step.output is None and step.outcome in _ENDED and told.response is not None:
        result = decoded_json(told.response["response"])[0]
        failed = told.response.get("is_error") is True and step.outcome == "ok"
        step = replace(_with(step, seq, output={"result": result}), typed_result=encode(result).text)
        step = replace(step, outcome="tool_error") if failed else step
    return step


# ---- models ------------------------------------------------------------------------------------------------------


def _silent(step: StepDraft) -> bool:
    return step.output is None and step.path is None and step.outcome in _ENDED and bool(_messages(step.input))


def answer_told(before: Json, after: Json) -> list[Any]:
    """What the model had answered to a request, from a later one that goes on from it; empty if it does not."""
    asked, told = _messages(before), _messages(after)
    if told[: len(asked)] != asked:
        return []
    answer: list[Any] = []
    for message in told[len(asked) :]:
        if not isinstance(message, dict) or message.get("role") != "assistant":
            break
        answer.append(message)
    return answer


def _with(step: StepDraft, seq: int, **told: Json) -> StepDraft:
    """A step with its input or output as told."""
    ((side, view),) = told.items()
    absent = {"input": INPUT_ABSENT, "output": OUTPUT_ABSENT}
    left = tuple(reason for reason in step.reasons if reason.code != absent[side])
    reason = Reason(code=AS_TOLD, detail=f"the record has no {side}; this is what the model was told of it at step {seq}")
    whole = step.grade == "structure" and not any(reason.code in absent.values() for reason in left)
    changed: dict[str, Any] = {side: view}
    return replace(step, **changed, grade="semantic" if whole else step.grade, reasons=(*left, reason))

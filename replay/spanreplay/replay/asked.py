"""What a tool was called with, where its own record does not say: what the model asked for, in the request that the call answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import encode
from spanreplay.replay.dialect import StepDraft
from spanreplay.replay.messages import Asked, asked_for
from spanreplay.replay.model import Json, Reason, Step
from spanreplay.replay.reasons import AS_ASKED, INPUT_ABSENT, OUTPUT_ABSENT

Call = TypeVar("Call", Step, StepDraft)


def all_as_asked(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of a run, tool calls completed by the requests that they answer; see :func:`as_asked`.

    Args:
        steps: in order, with ``requested_by``.
    """
    requests = {step.seq: list(asked_for(step.output)) for step in steps if step.kind == "model_call"}
    made: list[Step] = []
    for step in steps:
        open_requests = requests.get(step.requested_by or 0, []) if step.kind == "tool_call" else []
        answered = _answered(step, open_requests)
        if answered is not None:
            open_requests.remove(answered)
            step = as_asked(step, answered, seq=step.seq)  # noqa: PLW2901
        made.append(step)
    return tuple(made)


def _answered(step: Step, requests: Sequence[Asked]) -> Asked | None:
    """Of the requests in one answer the one that a call answers: by its id, else by its arguments, else the first for that tool."""
    same = [request for request in requests if step.call_id is not None and request.call_id == step.call_id]
    same = same or [request for request in requests if request.name == step.name]
    fits = [request for request in same if step.input is None or is_bare(step.input, request)]
    return next(iter(fits or same), None)


def as_asked(call: Call, asked: Asked, *, seq: int | None = None) -> Call:
    """A tool call with the arguments that the model asked for, where its own record lacks them or has only the value of the single one.

    Some tracers of LangChain get no more than that value: the text ``Paris`` where the call was ``{"city": "Paris"}``.

    Args:
        call: a step; anything but the tool call of another instrumentation is given back as it is.
        asked: the request that it answers.
        seq: of the step, where it has one already.
    """
    if call.kind != "tool_call" or call.path is not None or asked.arguments is None:
        return call
    if call.input is not None and not is_bare(call.input, asked):
        return call
    left: tuple[Reason, ...] = tuple(reason for reason in call.reasons if reason.code != INPUT_ABSENT)
    what = "no arguments" if call.input is None else "the value of the argument and not its name"
    told = Reason(code=AS_ASKED, detail=f"the record has {what}; these are the ones that the model asked for", step=seq)
    return replace(
        call,
        input={"arguments": asked.arguments},
        typed_input=encode(asked.arguments).text,
        grade="semantic" if call.grade == "structure" and all(reason.code != OUTPUT_ABSENT for reason in left) else call.grade,
        reasons=(*left, told),
    )


def is_bare(given: Json, asked: Asked) -> bool:
    """Whether the input of a tool call has the values that were asked for and not their names: the only one alone, or all in their order."""
    if not isinstance(given, dict) or "arguments" not in given or not isinstance(asked.arguments, dict):
        return False
    value, wanted = given["arguments"], list(asked.arguments.values())
    if isinstance(value, dict):
        positional = value.get("args") if value.keys() == {"args", "kwargs"} and value["kwargs"] == {} else None
        return isinstance(positional, list) and canonical_json(positional) == canonical_json(wanted)
    return len(wanted) == 1 and (canonical_json(value) == canonical_json(wanted[0]) or value == str(wanted[0]))

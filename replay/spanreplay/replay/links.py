"""Which step caused which: the model answer that asked for a tool call, and what it asked for where the call's own record does not say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import encode
from spanreplay.replay.messages import Asked, asked_for
from spanreplay.replay.model import Json, Reason, Step
from spanreplay.replay.reasons import AS_ASKED, INPUT_ABSENT, OUTPUT_ABSENT

_REQUESTED: Final = frozenset({"tool_call", "handoff", "agent", "decision", "human"})
_HANDOVER: Final = "transfer_to_"
"""What the OpenAI Agents SDK and LangGraph's swarm call the tool that hands over, before the agent's name."""


class Request(NamedTuple):
    """What a model asked for."""

    seq: int
    """Of the model step."""
    asked: Asked


class _Open(NamedTuple):
    """A request that no call has answered yet."""

    seq: int
    asked: Asked
    arguments: str
    """In the matching form."""


def requests(steps: Sequence[Step]) -> dict[int, Request]:
    """For each tool call, by ``seq``, the request that it answers; a call that nothing seems to have asked for is absent.

    A call id names the nearest earlier answer that has it: ids are reused, and a later call with an old id belongs to the later answer.
    A call without an id belongs to the nearest earlier answer that asks for the same tool with the same arguments, if no other call has
    answered that request; a record that lacks the arguments, or has only the value of the single one, fits too where none fits better.

    Args:
        steps: of one run, in order.
    """
    found: dict[int, Request] = {}
    by_id: dict[str, Request] = {}
    open_requests: list[_Open] = []
    for step in steps:
        if step.kind == "model_call":
            for asked in asked_for(step.output):
                if asked.call_id is not None:
                    by_id[asked.call_id] = Request(step.seq, asked)
                open_requests.append(_Open(step.seq, asked, canonical_json(asked.arguments)))
        elif step.kind in _REQUESTED:
            if step.call_id is not None:
                if step.call_id in by_id:
                    found[step.seq] = by_id[step.call_id]
                    _take(open_requests, step.call_id, by_id[step.call_id].seq)
            elif step.kind in ("tool_call", "handoff"):
                place = _unnamed(open_requests, step)
                if place is not None:
                    taken = open_requests.pop(place)
                    found[step.seq] = Request(taken.seq, taken.asked)
    return found


def requesters(steps: Sequence[Step]) -> dict[int, int]:
    """For each tool call the model step that asked for it, both as ``seq``; see :func:`requests`."""
    return {seq: request.seq for seq, request in requests(steps).items()}


def as_asked(step: Step, asked: Asked) -> Step:
    """A tool call with the arguments that the model asked for, where its own record lacks them or has only the value of the single one."""
    if step.kind != "tool_call" or step.path is not None or asked.arguments is None or not (step.input is None or _bare(step.input, asked)):
        return step
    left = tuple(reason for reason in step.reasons if reason.code != INPUT_ABSENT)
    what = "no arguments" if step.input is None else "the value of the argument and not its name"
    answered = not any(reason.code == OUTPUT_ABSENT for reason in left)
    return replace(
        step,
        input={"arguments": asked.arguments},
        typed_input=encode(asked.arguments).text,
        grade="semantic" if step.grade == "structure" and answered else step.grade,
        reasons=(*left, Reason(code=AS_ASKED, detail=f"the record has {what}; these are the ones that the model asked for", step=step.seq)),
    )


def _take(open_requests: list[_Open], call_id: str, seq: int) -> None:
    for place in range(len(open_requests) - 1, -1, -1):
        if open_requests[place].seq == seq and open_requests[place].asked.call_id == call_id:
            del open_requests[place]
            return


def _unnamed(open_requests: Sequence[_Open], step: Step) -> int | None:
    wanted = canonical_json(step.input["arguments"]) if isinstance(step.input, dict) and "arguments" in step.input else None
    best: tuple[int, int] | None = None
    found: int | None = None
    for place, request in enumerate(open_requests):
        fit = _fit(request, step, wanted)
        # Of equal requests in one answer the first is taken first.
        if fit is not None and (best is None or (fit, -request.seq) < best):
            best, found = (fit, -request.seq), place
    return found


def _fit(request: _Open, step: Step, wanted: str | None) -> int | None:
    """How badly a request fits a call: 0 for the very same; ``None`` where it does not."""
    if step.kind == "handoff":
        name = request.asked.name or ""
        return 0 if name.startswith(_HANDOVER) and _word(name.removeprefix(_HANDOVER)) == _word(step.name) else None
    if request.asked.name != step.name:
        return None
    if wanted is None:
        return 2 if step.input is None else None
    return 0 if request.arguments == wanted else 1 if _bare(step.input, request.asked) else None


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name.lower())


def _bare(given: Json, asked: Asked) -> bool:
    """Whether a record has the value of the only argument where the arguments belong; LangChain's callbacks give some tracers no more."""
    if not isinstance(given, dict) or "arguments" not in given or not isinstance(asked.arguments, dict) or len(asked.arguments) != 1:
        return False
    value, only = given["arguments"], next(iter(asked.arguments.values()))
    return not isinstance(value, dict) and (canonical_json(value) == canonical_json(only) or value == str(only))

"""Calls that a model asked for and that are no step: never run, or run and not recorded.

A call that was asked for is never made a step: nothing says that it happened. What the model was told later says whether it was answered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.settings import settings
from spanreplay.replay.reasons import CALL_NOT_OFFERED, CALL_NOT_RUN, CALL_WITHOUT_SPAN
from spanreplay.replay.rebuilding.links import Request, answered_ids
from spanreplay.replay.rebuilding.placed import Placed
from spanreplay.replay.rebuilding.same_call import FAILED, arguments, last_name
from spanreplay.replay.rebuilding.told import told_of
from spanreplay.replay.showing import call_text

_OUTPUT_TOOL: Final = "final_result"
"""How the name begins that pydantic-ai gives to the tool by which a model gives its final output; it is never run."""
_NAMED: Final = 6


@dataclass(slots=True)
class Dangling:
    """What to say of such calls."""

    of_steps: dict[int, list[Reason]] = field(default_factory=dict)
    """By the model step that asked."""
    of_run: list[Reason] = field(default_factory=list)


def dangling(requests: Sequence[Request], steps: Sequence[Placed], outputs: Iterable[Json]) -> Dangling:
    """Says of each request that no step answers what became of it.

    Args:
        requests: that no step answers.
        steps: of the run, in order.
        outputs: of the run and its agents: a call whose arguments are one of them is how the model gave it.
    """
    found = Dangling()
    by_seq = {step.seq: step for step in steps}
    open_ = [r for r in requests if by_seq[r.seq].draft.outcome not in FAILED and not (r.asked.name or "").startswith(_OUTPUT_TOOL)]
    if not open_:
        return found
    answered = _answered(steps, {request.asked.call_id for request in open_}, open_[0].seq)
    by_call = _answered_calls(steps, open_[0].seq) if any(request.asked.call_id is None for request in open_) else {}
    given = {text for output in (*outputs, *(s.draft.output for s in steps if s.draft.kind == "agent")) for text in _outputs(output)}
    forms = {r.asked.name for r in open_ if _arguments(r) in given or _had_to_call(r, by_seq[r.seq])}
    forms -= {step.draft.name for step in steps if step.draft.kind != "model_call"}
    without_span: list[Request] = []
    for request in open_:
        if request.asked.name in forms:  # also one that was sent back, since it does not fit
            continue
        place = answered.get(request.asked.call_id, 0)
        place = place if request.asked.call_id is not None else max(place, by_call.get(_call(request), 0))
        if place > request.seq and _may_have_run(request, by_seq[request.seq]):
            without_span.append(request)
        elif place > request.seq:
            detail = f"asked for {_called(request)}, which it had not been offered: what the messages answer is no tool's"
            found.of_steps.setdefault(request.seq, []).append(Reason(code=CALL_NOT_OFFERED, detail=detail))
        elif _arguments(request) not in given:
            detail = f"asked for {_called(request)}; neither the call nor an answer to it is here: never run, or the record stops before it"
            found.of_steps.setdefault(request.seq, []).append(Reason(code=CALL_NOT_RUN, detail=detail))
    if without_span:
        names = list(dict.fromkeys(request.asked.name or "a tool" for request in without_span))
        told = ", ".join(names[:_NAMED]) + (" and others" if len(names) > _NAMED else "")
        calls, are = ("call", "is") if len(without_span) == 1 else ("calls", "are")
        detail = f"{len(without_span)} {calls} with an answer in the messages ({told}) {are} in no span: what ran is not recorded"
        found.of_run.append(Reason(code=CALL_WITHOUT_SPAN, detail=detail))
    return found


def _answered(steps: Iterable[Placed], wanted: set[str | None], first: int) -> dict[str | None, int]:
    """The last model step that was told the result of each of some calls, looked for after a step."""
    told: dict[str | None, int] = {}
    for step in steps:
        if step.seq > first and step.draft.kind == "model_call":
            told.update((call_id, step.seq) for call_id in answered_ids(step.draft.input) if call_id in wanted)
    return told


def _answered_calls(steps: Iterable[Placed], first: int) -> dict[tuple[str, str], int]:
    """The last model step that was told the result of a call of this name and arguments; some instrumentations lose the request's id."""
    found: dict[tuple[str, str], int] = {}
    for step in steps:
        if step.seq > first and step.draft.kind == "model_call":
            for told in told_of(step.draft.input).values():
                if told.call is not None and told.response is not None:
                    given = canonical_json(arguments({"arguments": told.call.get("arguments")}))
                    found[str(told.call.get("name") or ""), given] = step.seq
    return found


def _may_have_run(request: Request, step: Placed) -> bool:
    """Whether a tool of that name was offered, as far as the record says what was."""
    tools: Any = step.draft.input.get("tools") if isinstance(step.draft.input, dict) else None
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in tools or ()]
    offered = {last_name(name).lower() if isinstance(name, str) else None for name in names}
    return not offered or None in offered or last_name(request.asked.name or "").lower() in offered


def _had_to_call(request: Request, step: Placed) -> bool:
    """Whether the model had to call this very tool: its arguments are the form of the answer then, and nothing is behind it."""
    for asked in (step.draft.input, decoded_json(step.draft.typed_input)[0] if step.draft.typed_input is not None else None):
        held: Any = (asked.get("params") or asked.get("body")) if isinstance(asked, dict) else None
        if isinstance(held, dict) and settings(held).get("tool_choice") == {"name": request.asked.name}:
            return True
    return False


def _called(request: Request) -> str:
    called = call_text(request.asked.name or "a tool", request.asked.arguments, 80)
    return called if request.asked.call_id is None else f"{called} (call id {request.asked.call_id})"


def _call(request: Request) -> tuple[str, str]:
    return request.asked.name or "", _arguments(request)


def _arguments(request: Request) -> str:
    return canonical_json(arguments({"arguments": request.asked.arguments}))


def _outputs(output: Json) -> Iterator[str]:
    """The forms in which an output may be the arguments of a call."""
    if not isinstance(output, dict):
        return
    messages: Any = output.get("messages")
    texts = [
        part.get("content")
        for message in (messages[-1:] if isinstance(messages, list) else ())
        if isinstance(message, dict) and isinstance(message.get("parts"), list)
        for part in message["parts"]
        if isinstance(part, dict) and part.get("type") == "text"
    ]
    for value in (output.get("result"), *texts):
        decoded = decoded_json(value)[0] if isinstance(value, str) else value
        if isinstance(decoded, dict | list):
            yield canonical_json(decoded)
    for member in output.values():  # a state has it beside the messages
        if isinstance(member, dict):
            yield canonical_json(member)

"""What a tool was called with, where its own record does not say: what the model asked for, in the request that the call answers."""

from dataclasses import replace

from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import encode
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.messages import Asked
from spanreplay.replay.reasons import AS_ASKED, INPUT_ABSENT, OUTPUT_ABSENT


def as_asked(call: StepDraft, asked: Asked) -> StepDraft:
    """A tool call with the arguments that the model asked for, where its own record lacks them or has only the value of the single one.

    Some tracers of LangChain get no more than that value: the text ``Paris`` where the call was ``{"city": "Paris"}``.

    Args:
        call: a step; anything but the tool call of another instrumentation is given back as it is.
        asked: the request that it answers.
    """
    if call.kind != "tool_call" or call.path is not None or asked.arguments is None:
        return call
    if call.input is not None and not is_bare(call.input, asked):
        return call
    left: tuple[Reason, ...] = tuple(reason for reason in call.reasons if reason.code != INPUT_ABSENT)
    what = "no arguments" if call.input is None else "the value of the argument and not its name"
    told = Reason(code=AS_ASKED, detail=f"the record has {what}; these are the ones that the model asked for")
    return replace(
        call,
        input={"arguments": asked.arguments},
        typed_input=encode(asked.arguments).text,
        grade="semantic" if call.grade == "structure" and all(reason.code != OUTPUT_ABSENT for reason in left) else call.grade,
        reasons=(*left, told),
    )


def is_bare(given: Json, asked: Asked) -> bool:
    """Whether a tool call has the values that were asked for and not their names: the only one alone, or all of them in order."""
    if not isinstance(given, dict) or "arguments" not in given or not isinstance(asked.arguments, dict):
        return False
    value, wanted = given["arguments"], list(asked.arguments.values())
    if isinstance(value, dict):
        positional = value.get("args") if value.keys() == {"args", "kwargs"} and value["kwargs"] == {} else None
        return isinstance(positional, list) and canonical_json(positional) == canonical_json(wanted)
    return len(wanted) == 1 and (canonical_json(value) == canonical_json(wanted[0]) or value == str(wanted[0]))

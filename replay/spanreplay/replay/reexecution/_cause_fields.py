"""What the field that differs is, where it is itself something that has versions: tools as offered, model, settings, instructions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.replay.model import Step
from spanreplay.replay.reexecution._cause_hits import LINE, SEEN, Hit
from spanreplay.replay.reexecution._cause_wording import NAMED
from spanreplay.replay.reexecution.changed_texts import skill_said
from spanreplay.replay.reexecution.ledger import Difference

SKILL: Final = "io skill "
"""Beginning of the name of a step that loads a skill."""
_INSTRUCTIONS: Final = re.compile(r"^(system|instructions|systemInstruction|system_instruction|preamble)\b")
_MESSAGE: Final = re.compile(r"^(?:messages|input)\[(\d+)\]")
_TOOLS: Final = re.compile(r"^(?:tools|toolConfig|functions)\b(?:\.tools)?(?:\[(\d+)\])?")
_SETTINGS: Final = re.compile(
    r"^(temperature|top_p|top_k|max_\w*tokens|seed|stop\w*|reasoning\w*|thinking|response_format|text|tool_choice|parallel_tool_calls"
    r"|frequency_penalty|presence_penalty|service_tier|stream\w*|n|options|generationConfig|inferenceConfig)\b"
)
_OF_OTHERS: Final = re.compile(rf"(?:{_TOOLS.pattern}|{_SETTINGS.pattern}|^model(?:\.|$)|^url$)")
"""Fields that no text stands in."""


def changed_thing(difference: Difference, step: Step | None) -> Hit | None:
    """What the field that differs is, where it is something that has versions.

    Args:
        difference: of a replay.
        step: the recorded one.
    """
    field = difference.field or ""
    if difference.kind == "output" and difference.name.startswith(SKILL):
        return Hit("skill", skill_said(difference.name.removeprefix(SKILL)), SEEN)
    if not _is_of_model_call(difference):
        return None
    evidence = difference.evidence or {}
    changed: list[Mapping[str, Any]] = list(evidence.get("changed", ()))
    if (tool := _TOOLS.match(field)) is not None:
        return _of_tools(changed, tool[1], _asked(step), reordered=evidence.get("reordered") is True)
    if field == "model" or field.startswith("model.") or (field == "url" and any(c["kind"] == "model" for c in changed)):
        told = {"recorded": _unquoted(difference.recorded), "actual": _unquoted(difference.actual)}
        model = next((c for c in changed if c["kind"] == "model"), told)
        return Hit("model", f"the model has changed{_arrow(model)}", LINE)
    if _SETTINGS.match(field):
        return Hit("setting", f"the model settings have changed: {field} {difference.recorded} → {difference.actual}", LINE)
    prompt = next((c for c in changed if c["kind"] == "prompt"), None)
    if is_instructions(field, step):
        named = step.versions.get("prompt") if step is not None else None
        if isinstance(named, dict) and named.get("name") and prompt is None:
            return Hit("instructions", f"the instructions have changed, and the prompt {_name(named)} is as it was", LINE)
        return Hit("prompt", "the prompt has changed since the run was recorded", LINE)
    return None


def is_text(difference: Difference) -> bool:
    """Is the field that differs one of a model call that a text may stand in?"""
    return _is_of_model_call(difference) and _OF_OTHERS.match(difference.field or "") is None


def is_instructions(field: str, step: Step | None) -> bool:
    """Is the field that differs what the model is told to be: a field of its own, or a message of the system?"""
    return _INSTRUCTIONS.match(field) is not None or _is_system(field, _asked(step))


def _is_of_model_call(difference: Difference) -> bool:
    return difference.kind == "input" and difference.name.startswith("model_call")


def _asked(step: Step | None) -> Mapping[str, Any]:
    return step.input if step is not None and isinstance(step.input, dict) else {}


def _of_tools(changed: Sequence[Mapping[str, Any]], index: str | None, asked: Mapping[str, Any], *, reordered: bool) -> Hit:
    tools = [c for c in changed if c["kind"] == "tool"]
    parts = []
    for tool in tools[:NAMED]:
        verb = "is offered now" if tool["recorded"] is None else "is not offered any more" if tool["actual"] is None else "has changed"
        parts.append(f"the tool {tool['name']} {verb}" if verb != "has changed" else f"the schema of tool {tool['name']} has changed")
    if parts:
        return Hit("tool", f"{' and '.join(parts)} since the run was recorded", SEEN)
    if reordered:
        return Hit("tool", "the same tools are offered in another order than when the run was recorded", SEEN)
    which = "the set of tools, or its order," if index is None else f"the schema of tool {_tool_name(asked, int(index))}"
    return Hit("tool", f"{which} has changed since the run was recorded", SEEN)


def _tool_name(asked: Mapping[str, Any], index: int) -> str:
    tools = asked.get("tools")
    if isinstance(tools, list) and index < len(tools) and isinstance(tools[index], dict):
        return str(tools[index].get("name", index))
    return f"number {index + 1}"


def _is_system(field: str, asked: Mapping[str, Any]) -> bool:
    """Is the message that differs one of the system's own?"""
    message = _MESSAGE.match(field)
    messages = asked.get("messages")
    if message is None or not isinstance(messages, list) or int(message[1]) >= len(messages):
        return False
    found = messages[int(message[1])]
    return isinstance(found, dict) and found.get("role") in ("system", "developer")


def _unquoted(text: str | None) -> str | None:
    return None if text is None else text.strip('"')


def _arrow(change: Mapping[str, Any]) -> str:
    if change["recorded"] is None and change["actual"] is None:
        return " since the run was recorded"
    return f": {change['recorded'] or 'none'} → {change['actual'] or 'none'}"


def _name(prompt: Mapping[str, Any]) -> str:
    return f"{prompt['name']} {prompt.get('version') or ''}".rstrip()

"""Which version change explains a difference: read off the field that differs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.ledger import Difference

NONE: Final = "no version in the record explains it: the agent's own code, or what it was given, has changed"

_INSTRUCTIONS: Final = re.compile(r"^(system|instructions)\b")
_MESSAGE: Final = re.compile(r"^(?:messages|input)\[(\d+)\]")
_TOOLS: Final = re.compile(r"^tools(?:\[(\d+)\])?")
_SETTINGS: Final = re.compile(
    r"^(model|temperature|top_p|top_k|max_\w*tokens|seed|stop\w*|reasoning\w*|thinking|response_format|text|tool_choice|parallel_tool_calls"
    r"|frequency_penalty|presence_penalty|service_tier|stream\w*|n)\b"
)


def explain(difference: Difference, runs: Sequence[Run]) -> Difference:
    """The difference with its cause: what of a model call's input has another version now, or that none can be told."""
    if difference.kind != "input" or difference.field is None or difference.cause is not None or difference.step is None:
        return difference
    run = next((r for r in runs if r.run_id == difference.run_id), None)
    step = None if run is None else next((s for s in run.steps if s.seq == difference.step), None)
    cause = None
    if difference.name.startswith("model_call"):
        asked = step.input if step is not None and isinstance(step.input, dict) else {}
        cause = _cause(difference.field, step.versions if step is not None else {}, asked)
    return replace(difference, cause=cause or NONE)


def _cause(field: str, versions: Mapping[str, Any], asked: Mapping[str, Any]) -> str | None:
    if _INSTRUCTIONS.match(field) or _is_system(field, asked):
        return f"the prompt{_named(versions.get('prompt'))} has changed since the run was recorded"
    tool = _TOOLS.match(field)
    if tool:
        which = "the set of tools" if tool[1] is None else f"the schema of tool {_tool_name(asked, int(tool[1]))}"
        return f"{which} has changed since the run was recorded"
    if _SETTINGS.match(field):
        return "the model settings have changed since the run was recorded"
    return None


def _is_system(field: str, asked: Mapping[str, Any]) -> bool:
    """Is the message that differs one of the system's own?"""
    message = _MESSAGE.match(field)
    messages = asked.get("messages")
    if message is None or not isinstance(messages, list) or int(message[1]) >= len(messages):
        return False
    found = messages[int(message[1])]
    return isinstance(found, dict) and found.get("role") in ("system", "developer")


def _named(prompt: object) -> str:
    if not isinstance(prompt, dict) or not prompt.get("name"):
        return ""
    return f" {prompt['name']} {prompt.get('version') or ''}".rstrip()


def _tool_name(asked: Mapping[str, Any], index: int) -> str:
    tools = asked.get("tools")
    if isinstance(tools, list) and index < len(tools) and isinstance(tools[index], dict):
        return str(tools[index].get("name", index))
    return f"number {index + 1}"

"""Which version change explains a difference: read off the field that differs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.ledger import Difference
from spanreplay.replay.model import Run

_PROMPT: Final = re.compile(r"^(messages\[0\]|system|instructions|input\[0\])")
_TOOLS: Final = re.compile(r"^tools\[(\d+)\]")
_MODEL: Final = re.compile(r"^(model|temperature|top_p|top_k|max_\w*tokens|seed|stop|reasoning\w*|response_format|tool_choice|stream)\b")


def explain(difference: Difference, runs: Sequence[Run]) -> Difference:
    """The difference with its cause, where the differing field names one."""
    if difference.kind != "input" or difference.field is None or difference.cause is not None:
        return difference
    run = next((r for r in runs if r.run_id == difference.run_id), None)
    step = None if run is None else next((s for s in run.steps if s.seq == difference.step), None)
    cause = _cause(difference, step.versions if step is not None else {}, step.input if step is not None else None)
    return difference if cause is None else replace(difference, cause=cause)


def _cause(difference: Difference, versions: object, asked: object) -> str | None:
    field = difference.field or ""
    if difference.name.startswith("model_call"):
        if _PROMPT.match(field):
            prompt = versions.get("prompt") if isinstance(versions, dict) else None
            named = (
                f" {prompt.get('name')} {prompt.get('version') or ''}".rstrip() if isinstance(prompt, dict) and prompt.get("name") else ""
            )
            return f"the prompt{named} has changed since the run was recorded"
        tool = _TOOLS.match(field)
        if tool:
            return f"the schema of tool {_tool_name(asked, int(tool[1]))} has changed since the run was recorded"
        if _MODEL.match(field):
            return "the model settings have changed since the run was recorded"
    return None


def _tool_name(asked: object, index: int) -> str:
    tools = asked.get("tools") if isinstance(asked, dict) else None
    if isinstance(tools, list) and index < len(tools) and isinstance(tools[index], dict):
        return str(tools[index].get("name", index))
    return f"number {index + 1}"

"""What a live call gave, beside what the record says that it gave."""

import json
from typing import Any, Final

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.content import codec
from spanreplay.content.codec import CodecError
from spanreplay.instrumentation.commands import LAYER as COMMAND
from spanreplay.replay.model import Step
from spanreplay.replay.reexecution.diff import first_difference, shown
from spanreplay.replay.reexecution.forms import comparable, parsed
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.semconv import attributes as names

_WRITTEN: Final = frozenset({"stdin", "stdin_open"})
_FLUENT: Final = frozenset({"id", "created", "call_id", "tool_call_id"})
"""Keys of what a model says that are new each time."""


def drifted(step: LiveStep, found: Step, run_id: str) -> Difference | None:
    """The first place where a live call ended otherwise than the recorded one; ``None`` where there is none.

    Args:
        step: the live call, ended.
        found: the recorded one.
        run_id: of the recorded run.
    """
    name = f"{found.kind} {found.name}"
    if found.outcome not in ("unknown", step.outcome):
        recorded, actual = shown(found.outcome), shown(step.outcome)
        return Difference(kind="outcome", run_id=run_id, step=found.seq, name=name, field="outcome", recorded=recorded, actual=actual)
    before, now = (
        (_said(found.output), _live_said(step)) if found.kind == "model_call" else (_value(found.typed_result), _value(step.result))
    )
    if found.kind != "model_call" and (found.typed_result is None or step.result is None):
        return None
    if step.call.layer == COMMAND and isinstance(before, dict) and isinstance(now, dict):  # what the agent wrote is nothing it gave
        before, now = ({key: value for key, value in side.items() if key not in _WRITTEN} for side in (before, now))
    different = first_difference(before, now)
    if different is None:
        return None
    recorded, actual, diff = different.texts()
    field = f"output.{different.path}" if different.path and not different.path.startswith("[") else f"output{different.path}"
    return Difference(kind="output", run_id=run_id, step=found.seq, name=name, field=field, recorded=recorded, actual=actual, diff=diff)


def _value(text: str | None) -> Any:
    """A result as it is compared: its plain JSON, so that a class that has moved is no difference."""
    try:
        return parsed(comparable(None if text is None else codec.plain(text)))
    except CodecError:
        return text


def _live_said(step: LiveStep) -> Any:
    messages = step.view.get(names.GEN_AI_OUTPUT_MESSAGES)
    return _said({"messages": json.loads(messages)} if isinstance(messages, str) else None)


def _said(output: Any) -> Any:
    """What a model said, without what is new each time."""
    messages = output.get("messages") if isinstance(output, dict) else None
    return [_plain(part) for m in messages or [] if isinstance(m, dict) for part in m.get("parts") or []]


def _plain(part: Any) -> Any:
    return {key: value for key, value in part.items() if key not in _FLUENT} if isinstance(part, dict) else part

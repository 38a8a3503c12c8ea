"""What a run did, apart from when and under which ids: equal for equal runs."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from spanreplay.content.canonical import canonical_json
from spanreplay.content.redaction import mask
from spanreplay.replay.model import Run, Step


def behaviour_hash(run: Run) -> str:
    """A digest of what the run was asked, each step's kind, name, input, outcome and result, in order, and what the run gave.

    Ids, times, tokens, versions and the salts of redactions are left out.

    Returns ``sha256:<hex>``.
    """
    found = sha256()
    for part in _parts(run):
        found.update(mask(canonical_json(part)).encode("utf-8", "surrogatepass"))
        found.update(b"\n")  # canonical JSON has no line end of its own
    return f"sha256:{found.hexdigest()}"


def _parts(run: Run) -> Iterator[Any]:
    yield {"agent": run.agent_name, "input": run.input}
    said: list[Any] = []
    ids: dict[str, str] = {}
    for step in run.steps:
        asked, said = _asked(step, said, ids)
        gave = numbered(step.output, ids) if step.kind == "model_call" else step.output
        yield [step.kind, step.name, step.outcome, step.parent_seq, asked, gave, step.error]
    yield {"output": run.output, "outcome": run.outcome}


def _asked(step: Step, said: list[Any], ids: dict[str, str]) -> tuple[Any, list[Any]]:
    """A step's input, and the messages in it: of a conversation that grows only what the last request did not have already."""
    asked = numbered(step.input, ids) if step.kind == "model_call" else step.input
    messages = asked.get("messages") if isinstance(asked, dict) else None
    if step.kind != "model_call" or not isinstance(messages, list):
        return step.input, said
    same = next((i for i, (a, b) in enumerate(zip(messages, said, strict=False)) if a != b), min(len(messages), len(said)))
    return {**asked, "messages": [same, messages[same:]]}, messages


def numbered(value: Any, ids: dict[str, str]) -> Any:
    """What a model was asked, or said, with the ids of calls, which a model makes anew each time, as their numbers in the run.

    Args:
        value: input or output of a model call; anything else is given back.
        ids: the ids that were met in the run before, with their numbers; more are added.
    """
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return value
    return {**value, "messages": [_of_message(message, ids) for message in value["messages"]]}


def _of_message(message: Any, ids: dict[str, str]) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return message
    return {**message, "parts": [_of_part(part, ids) for part in message["parts"]]}


def _of_part(part: Any, ids: dict[str, str]) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("id"), str):
        return part
    return {**part, "id": ids.setdefault(part["id"], f"#{len(ids) + 1}")}

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
    for step in run.steps:
        asked, said = _asked(step, said)
        yield [step.kind, step.name, step.outcome, step.parent_seq, asked, step.output, step.error]
    yield {"output": run.output, "outcome": run.outcome}


def _asked(step: Step, said: list[Any]) -> tuple[Any, list[Any]]:
    """A step's input, and the messages in it: of a conversation that grows only what the last request did not have already."""
    messages = step.input.get("messages") if isinstance(step.input, dict) else None
    if step.kind != "model_call" or not isinstance(messages, list):
        return step.input, said
    same = next((i for i, (a, b) in enumerate(zip(messages, said, strict=False)) if a != b), min(len(messages), len(said)))
    return {**step.input, "messages": [same, messages[same:]]}, messages

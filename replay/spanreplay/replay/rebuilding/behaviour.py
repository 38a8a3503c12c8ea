"""What a run did, apart from when and under which ids: equal for equal runs."""

import json
from typing import Any

from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.redaction import mask
from spanreplay.replay.model import Run, Step


def behaviour_hash(run: Run) -> str:
    """A digest of what the run was asked, each step's kind, name, input, outcome and result, in order, and what the run gave.

    Ids, times, tokens, versions and the salts of redactions are left out.

    Returns ``sha256:<hex>``.
    """
    steps = [_step(step) for step in run.steps]
    return digest(
        canonical_json({"agent": run.agent_name, "input": run.input, "steps": steps, "output": run.output, "outcome": run.outcome})
    )


def _step(step: Step) -> list[Any]:
    given = {"input": step.input, "output": step.output, "error": step.error}
    return [step.kind, step.name, step.outcome, step.parent_seq, json.loads(mask(canonical_json(given)))]

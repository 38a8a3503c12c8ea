"""Which texts with versions of their own, prompts, skills and instructions, are tied to a message that differs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution._cause_fields import is_instructions, is_text
from spanreplay.replay.reexecution._cause_hits import POSSIBLE, SEEN, Hit
from spanreplay.replay.reexecution._cause_versions import read_text
from spanreplay.replay.reexecution._cause_wording import of_code, said
from spanreplay.replay.reexecution.changed_places import Sought, places
from spanreplay.replay.reexecution.changed_texts import ChangedText, changed_texts, skill_said
from spanreplay.replay.reexecution.code_changes import CodeChanges
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.looking import holds
from spanreplay.replay.reexecution.versions_now import Change


def hits_in_texts(
    difference: Difference,
    step: Step | None,
    runs: Sequence[Run],
    skills: Mapping[str, Mapping[str, Any]],
    code: CodeChanges | None,
    changed_files: Sequence[Change],
) -> Iterator[Hit]:
    """The texts that have changed, as they are tied to a message that differs.

    Args:
        difference: of a replay.
        step: the recorded one.
        runs: the recorded runs.
        skills: by the name of a skill, what has changed in its files.
        code: what has changed in the code that is kept by its commit.
        changed_files: the changed files of other code.
    """
    if not is_text(difference):
        return
    evidence = difference.evidence or {}
    added, removed = list(evidence.get("added", ())), list(evidence.get("removed", ()))
    changed: list[Mapping[str, Any]] = list(evidence.get("changed", ()))
    for text in changed_texts(changed, skills):
        words, both = text.seen(added, removed)
        carriers = dict(_carriers(text, code, changed_files))
        if words:
            yield Hit(text.kind, text.said, SEEN, both=both, words=words, carriers=carriers)
        elif text.kind != "instructions" and not _is_unknown(text, difference, step):
            yield Hit(text.kind, text.said, POSSIBLE, carriers=carriers)
        elif text.kind == "prompt":
            yield Hit(text.kind, text.said, SEEN)
    for name in (c["name"] for c in changed if c["kind"] == "skill" and c["name"] not in skills):
        seen = _in_skill(runs, difference.run_id, name, removed)
        yield Hit("skill", skill_said(name), SEEN if seen else POSSIBLE)


def _is_unknown(text: ChangedText, difference: Difference, step: Step | None) -> bool:
    """A prompt whose two templates are not both known, where the instructions differ."""
    return text.kind == "prompt" and not text.known and is_instructions(difference.field or "", step)


def _carriers(text: ChangedText, code: CodeChanges | None, changed_files: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """The changed files that a text stands in, and what to say of each."""
    for change in changed_files:
        if any(holds(read_text(Path(change.name)), words) for words in text.added):
            yield change.name, said(change)
    if code is None:
        return
    for source in code.sources:
        for place in places(code, source, Sought(added=text.added, removed=text.removed), text.folder):
            yield place.line.file, of_code(code, source, place.line)


def _in_skill(runs: Sequence[Run], run_id: str | None, name: str, removed: Sequence[str]) -> bool:
    """Did the words that are gone stand in the recorded texts of a skill?"""
    steps = (step for run in runs if run.run_id == run_id for step in run.steps if step.name == f"skill {name}")
    return any(holds(step.typed_result or "", json.dumps(text, ensure_ascii=False)[1:-1]) for step in steps for text in removed)

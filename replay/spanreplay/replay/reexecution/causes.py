"""Which version change explains a difference.

Both sides are compared: the versions in force at the step (prompt, tools as offered, skills, model, settings) and those of the whole
command (code, dependencies, variables, arguments, Python, machine). A change explains a difference where it is seen to have reached it:

- the field that differs is the changed thing itself;
- or the words that differ stand in what has changed: of a prompt, of a skill, in lines of code, in the new value of the variable, in the
  files of the dependency;
- or the line that made the call has changed;
- or, where nothing but dependencies has changed, one of them made the call.

Where several have the words, one that has those of both sides, the recorded and the actual, counts before one that has those of one side
only. Several that have different words made a part each. Where only one thing has changed at all, that is said so. Else several may have
done it, and which cannot be told: nothing is guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import temporary, unmade
from spanreplay.replay.reexecution._cause_chance import by_chance
from spanreplay.replay.reexecution._cause_code import hits_in_code
from spanreplay.replay.reexecution._cause_fields import SKILL, changed_thing
from spanreplay.replay.reexecution._cause_hits import CODE, POSSIBLE, SEEN, Hit, in_order, merged, sided, strongest
from spanreplay.replay.reexecution._cause_texts import hits_in_texts
from spanreplay.replay.reexecution._cause_versions import Versions, known_values
from spanreplay.replay.reexecution._cause_wording import said, told
from spanreplay.replay.reexecution.code_changes import CodeChanges, code_changes
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.looking import Looked
from spanreplay.replay.reexecution.versions_now import Change, Comparison, recorded_command

NONE: Final = "no version in the record explains it: the agent's own code, or what it was given, has changed"
_NOT_HELD: Final = "what a replay does not hold (chance, time, state that a tool changed): replay --check-determinism 3 looks for it"
_SAME: Final = f"no version that is kept has changed, so it comes from {_NOT_HELD}"
_SAME_FILES: Final = f"no version that is kept has changed, so it comes from a file that is not kept, or from {_NOT_HELD}"


class Causes:
    """Explains the differences of one replay.

    Args:
        runs: the recorded runs.
        comparison: the recorded versions against the present ones, where they are known.
        command: the run that knows the recorded versions; by default it is looked for among the runs.
        taken: names of temporary files that somebody else had, see :mod:`spanreplay.replay.reexecution.temporary`.
        unmade: exceptions of another class than recorded, see :mod:`spanreplay.replay.reexecution.unmade`.
        differences: all of the replay: that of a skill tells what has changed in its files.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        comparison: Comparison | None = None,
        command: Run | None = None,
        taken: Sequence[Mapping[str, str]] = (),
        unmade: Sequence[Mapping[str, Any]] = (),
        differences: Sequence[Difference] = (),
    ) -> None:
        found = [(difference.name, (difference.evidence or {}).get("skill")) for difference in differences]
        self._skills = {name.removeprefix(SKILL): texts for name, texts in found if texts is not None}
        self._taken = taken
        self._unmade = unmade
        self._runs = runs
        self._command = command or recorded_command(runs)
        self._comparison = comparison
        self._changed: Sequence[Change] = () if comparison is None else comparison.changed
        self._versions = Versions()

    @cached_property
    def _code(self) -> CodeChanges | None:
        if self._command is None or self._comparison is None:
            return None
        return code_changes(self._command.code, self._comparison.code)

    def explain(self, difference: Difference) -> Difference:
        """The difference with its cause: the change that reached it, or that none can be told."""
        if difference.cause is not None or difference.same_as is not None or difference.kind in ("not_replayable", "beyond"):
            return difference
        if (taken := temporary.cause(self._taken, difference.recorded, difference.actual)) is not None:
            return replace(difference, cause_kind="name", cause=taken)
        if (error := unmade.cause(self._unmade, difference)) is not None:
            return replace(difference, cause_kind="error_class", cause=error)
        run = next((run for run in self._runs if run.run_id == difference.run_id), None)
        step = None if run is None else next((step for step in run.steps if step.seq == difference.step), None)
        cause = self._cause(difference, step)
        if cause is None:
            if difference.kind != "input" and self._comparison is None:
                return difference
            cause = "none", self._nothing() + ("" if run is None else by_chance(run, difference))
        return replace(difference, cause_kind=cause[0], cause=cause[1])

    def _cause(self, difference: Difference, step: Step | None) -> tuple[str, str] | None:
        """Its kind and its words; ``None`` where nothing that is known has changed."""
        what, files = changed_thing(difference, step), [change for change in self._changed if change.kind == "file"]
        texts = list(hits_in_texts(difference, step, self._runs, self._skills, self._code, files))
        seen = [text for text in texts if text.strength == SEEN]
        unseen = [text for text in texts if text.strength == POSSIBLE and not text.carriers]
        hits = [*unseen, *self._hits(difference, step, what)]
        reached = strongest(hits)
        if seen:
            what, reached = None, merged(seen, [hit for hit in reached if hit.strength == SEEN])
        return told(what, in_order(sided(reached), difference), hits)

    def _hits(self, difference: Difference, step: Step | None, what: Hit | None) -> Iterator[Hit]:
        """What has changed of the whole command, as it is tied to a difference."""
        if self._comparison is None:
            return
        folder = _folder(difference)
        added, removed = _words(difference, step)
        looked = Looked(added, removed, [value for change in self._changed for value in known_values(change)])
        for change in self._changed:
            if change.kind not in CODE and (folder is None or change.kind in ("dependency", "file")):  # a skill is files
                strength = self._versions.strength(change, added, removed, looked, difference.evidence or {})
                words = self._versions.words(change, [*added, *removed]) if strength == SEEN else frozenset[str]()
                yield Hit(change.kind, said(change), strength, file=change.name if change.kind == "file" else None, words=words)
        if self._code is not None:
            yield from hits_in_code(self._code, difference, what, looked, folder)
        else:  # known by the commits alone
            yield from (Hit(change.kind, said(change), POSSIBLE) for change in self._changed if change.kind in CODE)

    def _nothing(self) -> str:
        """What to say where no change is known."""
        if self._comparison is None or set(self._comparison.unknown) - {"code"}:
            return NONE
        if not self._comparison.unknown:
            return _SAME
        return _SAME_FILES if self._comparison.same_files else NONE


def _words(difference: Difference, step: Step | None) -> tuple[list[str], list[str]]:
    """The words that only the actual side has, and those that only the recorded one has."""
    evidence = difference.evidence or {}
    added, removed = list(evidence.get("added", ())), list(evidence.get("removed", ()))
    if difference.kind == "output":  # its first value may be a digest of the others
        texts = evidence.get("skill") or {}
        added += texts.get("added", evidence.get("beside", ()))
        removed += texts.get("removed", ())
    if difference.step is not None and not added and not removed and difference.kind in ("unreached", "order"):
        removed = [] if step is None else [step.name]
    elif difference.kind in ("never_recorded", "already_used"):
        added = [*added, difference.name.partition(" ")[2]]
    return added, removed


def _folder(difference: Difference) -> Path | None:
    """Of the skill that was loaded otherwise."""
    folder = ((difference.evidence or {}).get("skill") or {}).get("folder")
    return None if folder is None else Path(folder)

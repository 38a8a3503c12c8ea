"""The texts with versions of their own that reached a difference: the prompts, the skills and the instructions of agents that have changed.

A text is seen in a difference where words that have changed in it are among the words that differ.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.looking import SHORT

_MOST: Final = 200
"""Words of a skill that are kept as evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedText:
    """A text that has changed.

    Attributes:
        kind: ``prompt``, ``skill`` or ``instructions``.
        said: what has changed, for people.
        added: words that only the present text has.
        removed: words that only the recorded text had.
        folder: of a skill.
        known: both its sides are known.
    """

    kind: str
    said: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    folder: Path | None = None
    known: bool = True

    def seen(self, added: Sequence[str], removed: Sequence[str]) -> tuple[frozenset[str], bool]:
        """The words of a difference that stand in what has changed, and whether those of both sides do.

        Args:
            added: the words that only the actual value has.
            removed: the words that only the recorded value has.
        """
        now = {word for word in added if any(_shared(word, text) for text in self.added)}
        was = {word for word in removed if any(_shared(word, text) for text in self.removed)}
        both = bool(now or not added) and bool(was or not removed or not self.removed)
        return frozenset(now | was), both


def skill_texts(recorded: Any, actual: Any, folder: str | None) -> dict[str, Any]:
    """What has changed in the files of a skill, as evidence: ``{"folder", "added", "removed"}``.

    Args:
        recorded: result of the recorded step, see :mod:`spanreplay.instrumentation.skills`.
        actual: of the live one.
        folder: of the live one.
    """
    before, after = (side.get("texts") if isinstance(side, dict) else None for side in (recorded, actual))
    before, after = (side if isinstance(side, dict) else {} for side in (before, after))
    added: list[str] = []
    removed: list[str] = []
    for name in dict.fromkeys([*before, *after]):
        was, now = (str(side.get(name, "")) for side in (before, after))
        if was != now and len(added) + len(removed) < _MOST:
            gone, new = fragments(was, now)
            removed += gone
            added += new
    return {"folder": None if folder is None else str(Path(folder).absolute()), "added": added, "removed": removed}


def changed_texts(changed: Iterable[Mapping[str, Any]], skills: Mapping[str, Mapping[str, Any]]) -> Iterator[ChangedText]:
    """The texts that have changed, of which it is known how.

    Args:
        changed: the versions that have changed at a step, see :mod:`spanreplay.replay.reexecution.stepwise`.
        skills: by the name of a skill, what :func:`skill_texts` found.
    """
    for change in changed:
        match change["kind"]:
            case "prompt":
                was, now = change.get("templates") or ("", "")
                gone, new = fragments(was, now)
                known = bool(was and now)
                yield ChangedText(kind="prompt", said=prompt_said(change), added=tuple(new), removed=tuple(gone), known=known)
            case "skill" if (texts := skills.get(change["name"])) is not None:
                folder = None if texts["folder"] is None else Path(texts["folder"])
                added, removed = tuple(texts["added"]), tuple(texts["removed"])
                yield ChangedText(kind="skill", said=skill_said(change["name"]), added=added, removed=removed, folder=folder)
            case "agent":
                said = f"the {change['field']} of the agent {change['name']} have changed since the run was recorded"
                yield ChangedText(kind="instructions", said=said, added=tuple(change["added"]), removed=tuple(change["removed"]))
            case _:
                pass


def prompt_said(prompt: Mapping[str, Any]) -> str:
    """What has changed of a prompt, for people."""
    if prompt["recorded"] is None and prompt["actual"] is None:
        return f"the prompt {prompt['name']} has changed since the run was recorded"
    if prompt["recorded"] == prompt["actual"]:
        return f"the prompt {prompt['name']} has changed, and is called {prompt['actual']} as before"
    return f"the prompt {prompt['name']} has changed: {prompt['recorded'] or 'none'} → {prompt['actual'] or 'none'}"


def skill_said(name: str) -> str:
    """That a skill has changed, for people."""
    return f"the skill {name} has changed since the run was recorded"


def _shared(one: str, other: str) -> bool:
    """Does one of two texts stand in the other? Short ones count as whole words."""
    short, long = sorted((one, other), key=len)
    if len(short) >= SHORT:
        return short in long
    return len(short) > 1 and re.search(rf"(?<!\w){re.escape(short)}(?!\w)", long) is not None

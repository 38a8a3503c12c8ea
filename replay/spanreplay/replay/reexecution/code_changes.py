"""What the code of a replay has otherwise than the recorded one, line by line: what was committed since, and what is not committed."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from spanreplay.recording.code import GitError, git
from spanreplay.replay.model import Json

Source: TypeAlias = Literal["commit", "diff"]

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LINES: Final = 50_000
_CHARACTERS: Final = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLine:
    """One line that only one side has.

    Attributes:
        file: below the top folder.
        number: of a line that is there now; ``None`` for one that is gone.
        text: without its end.
        source: ``commit``: it came with another commit; ``diff``: it is not committed, or was not when the run was recorded.
    """

    file: str
    number: int | None
    text: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChanges:
    """The recorded code against the present one.

    Attributes:
        root: top folder of the present working tree.
        commits: the recorded and the present commit.
        lines: every line that only one side has; ``None`` where they are not known.
        why: why they are not.
    """

    root: Path
    commits: tuple[str | None, str | None]
    lines: tuple[ChangedLine, ...] | None
    why: str | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the changes are; by the commits alone where the lines are not known."""
        if self.lines is None:
            return ("commit",) if self.commits[0] != self.commits[1] else ("diff",)
        found = {line.source for line in self.lines}
        return tuple(source for source in _SOURCES if source in found)

    def files(self, source: Source) -> list[str]:
        """The files that a source has changed."""
        return list(dict.fromkeys(line.file for line in self.lines or () if line.source == source))


_SOURCES: Final[tuple[Source, ...]] = ("commit", "diff")


def code_changes(recorded: Json, present: Json) -> CodeChanges | None:
    """Compare two values of ``spanreplay.run.code``; ``None`` where they are equal, or one is not known. Raises nothing.

    Args:
        recorded: as the record has it.
        present: of the working tree that the replay is started from.
    """
    if not isinstance(recorded, dict) or not isinstance(present, dict) or not isinstance(present.get("root"), str):
        return None
    was, now = _commit(recorded), _commit(present)
    before, after = recorded.get("diff"), present.get("diff")
    if was == now and isinstance(before, str) and before == after:
        return None
    root = Path(present["root"])
    if not isinstance(before, str) or not isinstance(after, str):
        side = present if isinstance(before, str) else recorded
        return CodeChanges(root=root, commits=(was, now), lines=None, why=str(side.get("why") or "a diff is not recorded"))
    between = ""
    if was != now:
        try:
            between = _between(root, was, now)
        except GitError as error:
            return CodeChanges(root=root, commits=(was, now), lines=None, why=str(error))
    lines = tuple(_changed(before, after, between))
    return CodeChanges(root=root, commits=(was, now), lines=lines) if lines or was != now else None


def parse_diff(text: str) -> Iterator[tuple[str, str, int | None, str]]:
    """The lines of a unified diff of git: file, ``+`` or ``-``, the number of a ``+`` line, and its text."""
    file = old = ""
    number = 0
    inside = False
    for count, line in enumerate(text[:_CHARACTERS].split("\n")):
        if count > _LINES * 4:
            return
        if line.startswith("diff --git "):
            inside = False
        elif not inside and line.startswith("--- "):
            old = _path(line[4:])
        elif not inside and line.startswith("+++ "):
            file = _path(line[4:]) or old
        elif found := _HUNK.match(line):
            number, inside = int(found[2]), True
        elif inside and line.startswith("+"):
            yield file, "+", number, line[1:]
            number += 1
        elif inside and line.startswith("-"):
            yield file, "-", None, line[1:]
        elif inside and line.startswith(" "):
            number += 1


def _path(text: str) -> str:
    name = text.rstrip("\t\r").strip('"')
    return "" if name == "/dev/null" else name[2:]


def _commit(code: Mapping[str, Any]) -> str | None:
    found = code.get("commit")
    return found if isinstance(found, str) and _COMMIT.fullmatch(found) else None


def _between(root: Path, was: str | None, now: str | None) -> str:
    if was is None or now is None:
        raise GitError("one of the two had no commit")
    return git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", was, now).decode(
        "utf-8", "replace"
    )


def _changed(before: str, after: str, between: str) -> Iterator[ChangedLine]:
    """What is committed and what is not, less what was not committed when the run was recorded."""
    had = Counter((file, sign, text) for file, sign, _, text in parse_diff(before))
    found = 0
    sources: tuple[tuple[Source, str], ...] = (("commit", between), ("diff", after))
    for source, diff in sources:
        for file, sign, number, text in parse_diff(diff):
            if had[file, sign, text] > 0:
                had[file, sign, text] -= 1
            elif found < _LINES:
                found += 1
                yield ChangedLine(file=file, number=number, text=text, source=source)
    for (file, sign, text), left in had.items():  # it was there when the run was recorded, and is no more
        if left > 0 and sign == "+":
            yield ChangedLine(file=file, number=None, text=text, source="diff")

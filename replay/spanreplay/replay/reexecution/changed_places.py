"""Where in changed code the words that differ stand: one line of each file that may have made them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from spanreplay.replay.reexecution.code_changes import ChangedLine, CodeChanges, Source
from spanreplay.replay.reexecution.looking import SHORT, holds

_BESIDE: Final = re.compile(r"(^|/)(tests?|docs?)/|(^|/)(test_|conftest|README|CHANGE|HISTORY|NEWS)[^/]*$")
"""Files that tell of a change and do not make it."""
_SPELLED: Final = {"true": "[Tt]rue", "false": "[Ff]alse", "null": "(?:null|None)"}
"""Values of JSON, as code and settings have them."""
_NAME: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is looked for in changed lines.

    Attributes:
        added: the words that only the actual value has.
        removed: the words that only the recorded value has.
        file: of the call, below the top folder: short words count there.
        key: name of the field, where its value is a setting or no text: a line that names it counts for short words too.
    """

    added: Sequence[str]
    removed: Sequence[str]
    file: str | None = None
    key: str | None = None


@dataclass(slots=True, kw_only=True)
class Place:
    """A changed line that may have made a difference.

    Attributes:
        line: the first such line of its file.
        both: the file had the recorded words and has the actual ones, as far as there are such.
        words: what of the words that are looked for stands in the changed lines of the file.
    """

    line: ChangedLine
    both: bool
    words: set[str] = field(default_factory=set)


def places(code: CodeChanges, source: Source, sought: Sought, below: Path | None = None) -> list[Place]:
    """Each file in whose changed lines the words stand; those that tell of a change only where there is no other.

    Args:
        code: what has changed.
        source: committed, or not.
        sought: the words.
        below: only files in this folder.
    """
    lines = [line for line in code.lines or () if line.source == source and (below is None or is_below(code.root, line.file, below))]
    found: dict[str, Place] = {}
    for texts, others, there in ((sought.added, sought.removed, True), (sought.removed, sought.added, False)):
        for text in texts:
            first: dict[str, ChangedLine] = {}
            for line in _having(lines, text, sought, there=there):
                first.setdefault(line.file, line)
            known = [found[file] for file in first if file in found]
            for place in known:
                place.words.add(text)
            if known or not first or (found and len(text) < 2 * SHORT):
                continue
            whole = {line.file for other in others for line in _having(lines, other, sought, there=not there)} if others else {*first}
            chosen = [file for file in first if file in whole] or list(first)
            chosen = [file for file in chosen if _BESIDE.search(file) is None] or chosen
            found.update({file: Place(line=first[file], both=file in whole, words={text}) for file in chosen})
        if found:
            break
    return list(found.values())


def is_below(root: Path, file: str, folder: Path) -> bool:
    """Is a file of the working tree in a folder?"""
    try:
        return (root.resolve() / file).is_relative_to(folder.resolve())
    except OSError:
        return False


def _having(lines: Sequence[ChangedLine], text: str, sought: Sought, *, there: bool) -> list[ChangedLine]:
    side = [line for line in lines if (line.number is not None) == there]
    found = [line for line in side if holds(line.text, text, same_file=line.file == sought.file)]
    if len(text) >= SHORT and sought.key is None:
        return found
    word = re.compile(rf"(?<![\w.]){_SPELLED.get(text) or re.escape(text)}(?![\w.])")
    if sought.key is not None:
        named = [line for line in side if word.search(line.text) and _names(line.text, sought.key)]
        if named or len(text) >= SHORT:
            return named or found
    mine, theirs = (sought.added, sought.removed) if there else (sought.removed, sought.added)
    if len(mine) == len(theirs) == 1:  # a line in which just this word is another one
        gone = {(line.file, line.text) for line in lines if (line.number is not None) != there}
        found += [
            line
            for line in side
            if line not in found and word.search(line.text) and (line.file, word.sub(lambda _: theirs[0], line.text)) in gone
        ]
    return found


def _names(line: str, key: str) -> bool:
    """Does a line name a field? ``maxTokens``, ``max_tokens`` and ``DEFAULT_MAX_TOKENS`` are alike."""
    wanted = _plain(key)
    return any(name == wanted or (len(wanted) >= SHORT and name.endswith(wanted)) for name in map(_plain, _NAME.findall(line)))


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()

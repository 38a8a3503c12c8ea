"""Finds prose in a recording: many plain words in a row, as nothing but people's writing has them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from recordings.reading import HERE
from recordings.replaced import FILE

WORDS: Final = 25
"""So many words in a row that are not ours are somebody's text; fewer are a name, a fact or a message of a fault."""
_OURS: Final = ("recipe.py", "recipe.mjs", "script.json", FILE)
_WORD: Final = re.compile(r"[\"'`*#<(\[-]*[A-Za-z]+(?:['’/-][A-Za-z]+)*[.,;:!?)\"'`*>\]]*|[-*#–—&]+|\d+[.)]")
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+|\n+")


def prose_of_others(folder: Path) -> list[str]:
    """Passages of a recording that stand neither in its recipe, nor in what the model was to say, nor in what replaces others' words."""
    written = [path for path in (*(folder / name for name in _OURS), HERE / "script.json") if path.exists()]
    ours = " ".join(_words(path.read_text(encoding="utf-8")) for path in written)
    found: dict[str, None] = {}
    for path in sorted(folder.iterdir()):
        if path.stem in ("spans", "expected"):
            for text in dict.fromkeys(_texts(path)):
                found.update(dict.fromkeys(_passages(text, ours)))
    return list(found)


def _passages(text: str, ours: str) -> Iterator[str]:
    others = " ".join(sentence for sentence in _SENTENCE.split(text) if _words(sentence) not in ours)
    row: list[str] = []
    for word in (*others.split(), ""):
        if _WORD.fullmatch(word):
            row.append(word)
            continue
        if len(row) >= WORDS:
            yield " ".join(row)
        row = []


def _words(text: str) -> str:
    return " ".join(text.replace("\\n", " ").split())


def _texts(path: Path) -> Iterator[str]:
    """Every text of a file, also those in texts that are JSON."""
    whole = path.read_text(encoding="utf-8")
    waiting: list[Any] = [json.loads(line) for line in whole.splitlines()] if path.suffix == ".jsonl" else [json.loads(whole)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            inner = _json(value)
            if inner is None:
                yield value
            else:
                waiting.append(inner)


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except ValueError:
        return None

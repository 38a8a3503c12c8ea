"""Takes the prose of others out of a recording: prompts, reminders and descriptions that a program ships and sends with every run.

What a run said is kept; whose words a prompt has does not matter to how it is read. ``replaced.json`` beside a recipe names the passages,
each by how it begins and ends, and our own words for it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

FILE: Final = "replaced.json"
MARKER: Final = 60
"""The most characters that may be quoted of a passage's beginning or end."""
_WRITTEN_ALIKE: Final = re.compile(r"[ !#-\[\]-~]+")
"""Characters that look the same in a text, in JSON, and in JSON that is a text in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Words of others, up to and including ``ends``, and what stands for them."""

    begins: str
    ends: str
    words: str

    def __post_init__(self) -> None:
        for text in (self.begins, self.ends, self.words):
            if not _WRITTEN_ALIKE.fullmatch(text):
                raise ValueError(f"expected printable ASCII on one line, without quotes and backslashes, found {text!r}")
        for text in (self.begins, self.ends):
            if len(text) > MARKER:
                raise ValueError(f"expected at most {MARKER} characters of others' words, found {len(text)}: {text!r}")
        if self.begins in self.words:
            raise ValueError(f"expected words of our own, found ones that have {self.begins!r} in them")


class Replaced:
    """Replaces passages in the text of JSON files, however deep in texts of JSON they stand.

    Args:
        passages: each tried in turn.
    """

    def __init__(self, passages: Sequence[Passage] = ()) -> None:
        self.passages = tuple(passages)
        self._patterns = [(_pattern(passage), passage.words) for passage in passages]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What is to be replaced in the recording of a folder; nothing where it does not say.

        Raises:
            ValueError: A passage cannot be found the same way everywhere, or quotes more than it has to.
        """
        file = folder / FILE
        listed: list[dict[str, str]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        return cls([Passage(begins=item["begins"], ends=item["ends"], words=item["with"]) for item in listed])

    def text(self, text: str) -> str:
        """The text of a file."""
        for pattern, words in self._patterns:
            text = pattern.sub(words, text)
        return text


def _pattern(passage: Passage) -> re.Pattern[str]:
    # Where a passage begins again before it ended, only the second is it; no text of JSON goes on in another line of the file.
    begins = re.escape(passage.begins)
    return re.compile(f"{begins}(?:(?!{begins}).)*?{re.escape(passage.ends)}")

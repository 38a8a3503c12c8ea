"""Traces that real instrumentations wrote are read as what happened."""

import json
import re
from pathlib import Path

import pytest

from recordings.reading import HEAD, HERE, as_read, recordings, spans_file

_OF_THE_MACHINE = re.compile(r"(?<![\w.-])/(tmp|root|work)/|site-packages/\.\./")


def _name(folder: Path) -> str:
    return str(folder.relative_to(HERE))


@pytest.mark.parametrize("folder", list(recordings()), ids=_name)
def test_a_recording_is_read_as_what_happened(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    made = json.loads(json.dumps(as_read(spans_file(folder))))
    assert made == {key: value for key, value in expected.items() if key not in HEAD}


@pytest.mark.parametrize("folder", list(recordings()), ids=_name)
def test_a_recording_says_what_made_it_and_nothing_of_the_machine(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert all(expected[key] for key in HEAD)
    assert expected["made"] == "by running" or expected["made"].startswith("by hand from ")
    if expected["made"] == "by running":
        assert (folder / "recipe.py").exists() or (folder / "recipe.mjs").exists()
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not _OF_THE_MACHINE.search(text)

"""Traces that real instrumentations wrote are read as what happened."""

import json
import re
from pathlib import Path

import pytest

from recordings.prose import prose_of_others
from recordings.reading import HEAD, HERE, as_read, recordings, spans_file
from recordings.replaced import Passage, Replaced

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


@pytest.mark.parametrize("folder", list(recordings()), ids=_name)
def test_a_recording_holds_no_prose_of_others(folder: Path) -> None:
    assert prose_of_others(folder) == []
    exported = spans_file(folder).read_text(encoding="utf-8")
    for passage in Replaced.of(folder).passages:
        assert passage.begins not in exported + (folder / "expected.json").read_text(encoding="utf-8")
        assert passage.words in exported


def test_prose_of_others_is_found_however_deep_it_stands_and_ours_is_not(tmp_path: Path) -> None:
    theirs = "You are a helper of great patience, and " + "whatever anybody asks of you is what you do at once. " * 4
    ours = "The recipe says this, and however long it goes on and on and on, it is what we wrote for a run of our own, nobody else."
    (tmp_path / "recipe.py").write_text(f'PROMPT = "{ours}"\n', encoding="utf-8")
    (tmp_path / "expected.json").write_text(json.dumps({"error": "int() must be a string. " * 9, "system": ours}), encoding="utf-8")
    (tmp_path / "spans.jsonl").write_text(json.dumps({"messages": json.dumps([{"content": f"{ours} {theirs}"}])}), encoding="utf-8")
    assert prose_of_others(tmp_path) == [theirs.strip()]


def test_words_of_others_are_replaced_however_deep_in_json_they_stand(tmp_path: Path) -> None:
    given = [{"begins": "You are", "ends": "the end.", "with": "Be good."}]
    (tmp_path / "replaced.json").write_text(json.dumps(given), encoding="utf-8")
    replaced = Replaced.of(tmp_path)
    prompt, instead = 'Hello. You are "kind"\nto the end. Bye.', "Hello. Be good. Bye."
    for wrap in (str, json.dumps, lambda text: json.dumps(json.dumps([text]))):
        assert replaced.text(json.dumps({"system": wrap(prompt)})) == json.dumps({"system": wrap(instead)})
    assert (
        replaced.text("You are one. You are two, to the end.\nYou are three\nthe end.") == "You are one. Be good.\nYou are three\nthe end."
    )
    assert Replaced.of(tmp_path / "none").text(prompt) == prompt


@pytest.mark.parametrize(
    "passage",
    [
        {"begins": 'You say "no', "ends": "end.", "words": "Be good."},
        {"begins": "You are", "ends": "the\nend.", "words": "Be good."},
        {"begins": "You are " * 9, "ends": "end.", "words": "Be good."},
        {"begins": "You are", "ends": "end.", "words": "You are good."},
        {"begins": "", "ends": "end.", "words": "Be good."},
    ],
)
def test_a_passage_is_named_by_little_that_looks_the_same_everywhere(passage: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Passage(**passage)

"""What explains a difference: a version of the whole command that has the words that differ."""

from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.reexecution.causes import Causes
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.versions_now import Change, Comparison

UNTOLD = "it cannot be told which of these it was, none of them is seen in what differs: "
VERSIONS: list[tuple[list[Change], dict[str, Any], str, str]] = [
    (
        [Change(kind="dependency", name="a", recorded="1", actual="2", modules=("a",)), Change(kind="dependency", name="b", actual="2")],
        {"packages": ["a"]},
        "dependency",
        "the dependency a has changed: 1 → 2",
    ),
    (
        [Change(kind="dependency", name="a", recorded="1", actual="2", modules=("a",)), Change(kind="argv", name="arguments", actual="x")],
        {"packages": ["a"]},
        "untold",
        f"{UNTOLD}the dependency a has changed: 1 → 2; the arguments none → x",
    ),
    (
        [Change(kind="argv", name="arguments", recorded="agent.py --for Ana", actual="agent.py --for Bob")],
        {"added": ["Bob"], "removed": ["Ana"]},
        "argv",
        "the arguments agent.py --for Ana → agent.py --for Bob",
    ),
    (
        [Change(kind="image", name="image", recorded="a", actual="b")],
        {},
        "image",
        "the container's image a → b; nothing else that is kept has changed",
    ),
    (
        [Change(kind="python", name="", recorded="3.11.7", actual="3.12.1"), Change(kind="cwd", name="", recorded="/a", actual="/b")],
        {"added": ["made by Python 3.12.1"]},
        "python",
        "Python 3.11.7 → 3.12.1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "evidence", "kind", "cause"), VERSIONS, ids=lambda v: v if isinstance(v, str) and " " not in v else "")
def test_the_change_that_reached_a_difference_is_named(changed: list[Change], evidence: dict[str, Any], kind: str, cause: str) -> None:
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x", evidence=evidence)
    found = Causes([], Comparison(changed=tuple(changed))).explain(difference)
    assert (found.cause_kind, found.cause) == (kind, cause)


@pytest.mark.parametrize(
    ("text", "changes", "recorded", "actual", "kind", "named"),
    [
        ("greetings of department seven", ["variable", "dependency"], "hello bob", "greetings of department seven evelina", "untold", 2),
        ("greetings of department seven", ["variable", "dependency"], "hello bob", "greetings of department seven bob", "dependency", 1),
        ("something else", ["variable", "dependency"], "hello bob", "hello evelina", "variable", 1),
        ("two", ["commit", "dependency"], "one", "two", "dependency", 1),
        ("two", ["commit", "dependency"], "say one now", "say two now", "dependency", 1),
    ],
)
def test_all_that_reached_a_difference_is_known_before_one_is_named(
    text: str, changes: list[str], recorded: str, actual: str, kind: str, named: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHO", "evelina")
    (tmp_path / "dep.py").write_text(f'def greet():\n    return "{text}"\n')
    known: dict[str, Change] = {
        "variable": Change(kind="variable", name="WHO"),
        "dependency": Change(kind="dependency", name="dep", recorded="1", actual="2", modules=("dep",), places=(str(tmp_path / "dep.py"),)),
        "commit": Change(kind="commit", name="commit", recorded="a", actual="b"),
    }
    removed, added = fragments(recorded, actual)
    evidence = {"added": added, "removed": removed}
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x", evidence=evidence)
    found = Causes([], Comparison(changed=tuple(known[name] for name in changes))).explain(difference)
    told = str(found.cause)
    assert (found.cause_kind, ("variable WHO" in told) + ("dependency dep" in told)) == (kind, named), told
    assert kind != "untold" or "words that differ stand in each of them" in told

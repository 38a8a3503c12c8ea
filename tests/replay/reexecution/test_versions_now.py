"""The recorded versions against those of this process."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.recording.code import code_of
from spanreplay.recording.definition import PROXY, definition, marks, program
from spanreplay.replay.model import Run
from spanreplay.replay.outgoing import view_of
from spanreplay.replay.reexecution.causes import Causes
from spanreplay.replay.reexecution.code_changes import code_changes, parse_diff
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.versions_now import Change, Comparison, compare, present_code
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Resource, Scope, SpanRecord
from support.handmade import run
from support.repository import Repository

POLICY = RedactionPolicy.default()
REDACTOR = Redactor(POLICY)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository.made(tmp_path / "r", {"agent.py": "one\ntwo\nthree\n", "other.py": "x\n", "uv.lock": "a==1\n"})
    monkeypatch.chdir(made.folder)
    return made


def command(repository: Repository, variables: dict[str, str] | None = None) -> Run:
    code = code_of(repository.folder, REDACTOR)
    assert code is not None
    return run(
        is_command=True,
        definition=json.loads(definition(REDACTOR)),
        code=code.to_json(),
        variables=marks({**os.environ, **(variables or {})}, REDACTOR),
        redaction=POLICY.to_json(),
    )


def compared(recorded: Run, repository: Repository) -> Comparison:
    found = compare([recorded], REDACTOR, present_code([recorded], repository.folder))
    assert found is not None
    assert Comparison.of(json.loads(json.dumps(found.entry()))) == found
    return found


def kinds(found: Comparison) -> list[tuple[str, str]]:
    return [(change.kind, change.name) for change in found.changed]


def test_nothing_has_changed(repository: Repository) -> None:
    found = compared(command(repository), repository)
    assert (found.changed, found.unknown) == ((), ())
    assert found.lines() == ["versions as recorded: code, packages, Python, machine, variables, arguments, working folder"]


def edited(recorded: Run, *path: str, to: Any) -> Run:
    made = json.loads(json.dumps(recorded.definition))
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return replace(recorded, definition=made)


def test_a_proxy_is_the_command_that_it_stands_before(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.folder / "agent.mjs").write_text("ask('formally')")
    before = ["python", "-m", PROXY, "--upstream", "openai=http://there/v1", "--ready", "/scratch/1", "--"]
    monkeypatch.setattr(sys, "orig_argv", [*before, "node", "agent.mjs", "--upstream", "no=more"])
    was = command(repository)
    assert was.definition["argv"] == ["node", "agent.mjs", "--upstream", "no=more"]
    assert was.definition["proxy"] == {"upstreams": ["openai=http://there/v1"]}
    assert (list(was.definition["files"]), program()) == (["agent.mjs"], "node")
    monkeypatch.setattr(sys, "orig_argv", [word.replace("/scratch/1", "/scratch/2") for word in sys.orig_argv])
    assert kinds(compared(was, repository)) == []
    monkeypatch.setattr(sys, "orig_argv", before)  # which is not known beforehand
    assert "argv" not in [kind for kind, _ in kinds(compared(was, repository))]


def test_each_change_is_named_by_itself(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    was = command(repository)
    assert kinds(compared(edited(was, "python", "version", to="3.0.1"), repository)) == [("python", "Python")]
    assert kinds(compared(edited(was, "platform", "machine", to="m68k"), repository)) == [("platform", "machine")]
    assert kinds(compared(edited(was, "image", to={"id": "sha256:1"}), repository)) == [("image", "image")]
    assert kinds(compared(edited(was, "argv", to=["python", "else.py"]), repository)) == [("argv", "arguments")]
    assert kinds(compared(edited(was, "cwd", to="/elsewhere"), repository)) == [("cwd", "working folder")]
    packages = list(was.definition["versions"]["dependencies"]["packages"])
    other = [*packages[1:], "no-such-package==1.0"]
    assert kinds(compared(edited(was, "versions", "dependencies", "packages", to=other), repository)) == [
        ("dependency", name) for name in sorted([packages[0].partition("==")[0], "no-such-package"])
    ]
    monkeypatch.setenv("TONE", "cheerful")
    (change,) = compared(was, repository).changed
    assert change.summary() == "variable TONE has another value (it was not set)"
    (change,) = compared(command(repository, {"TONE": "formal"}), repository).changed
    assert change.summary() == "variable TONE has another value"
    of_git = {"TONE": "cheerful", "GIT_EXEC_PATH": "/usr/lib/git-core", "GIT_DIR": ".git", "TEXTDOMAIN": "git"}
    assert compared(command(repository, of_git), repository).changed == (), "as of git bisect run"


def test_an_image_that_a_variable_names_is_one_change(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "container.image.id=sha256:1,team=a")
    was = command(repository)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "container.image.id=sha256:2,team=a")
    assert kinds(compared(was, repository)) == [("image", "image")]
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "container.image.id=sha256:1,team=b")
    assert kinds(compared(was, repository)) == [("variable", "OTEL_RESOURCE_ATTRIBUTES")]


def test_the_line_that_made_a_difference_is_named_and_not_one_that_tells_of_it(repository: Repository) -> None:
    recorded = command(repository)
    repository.write({"agent.py": "one\ntwo apples\nthree\n", "README.md": "it says two apples\n", "a.py": "two apples\n"})
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", evidence={"added": ["two apples"], "removed": ["two"]})
    found = Causes([recorded], compared(recorded, repository)).explain(replace(difference, where=f"{repository.folder}/agent.py:3"))
    assert str(found.cause).endswith("agent.py:2")
    repository.write({"agent.py": "one\ntwo\nthree\n", "tests/test_agent.py": "two apples\n"})
    repository.commit()
    found = Causes([recorded], compared(recorded, repository)).explain(difference)
    assert str(found.cause).endswith("a.py:1")


def test_another_commit_of_the_same_code_is_no_change(repository: Repository) -> None:
    repository.write({"agent.py": "one\n2\nthree\n", "new.py": "new\n"})
    recorded = command(repository)
    repository.commit()
    found = compared(recorded, repository)
    assert found.changed == ()
    assert "code" in found.equal


def test_what_was_committed_and_what_is_not_are_told_apart(repository: Repository) -> None:
    recorded = command(repository)
    repository.write({"agent.py": "one\n2\nthree\n"})
    repository.commit()
    repository.write({"other.py": "x\ny\n"})
    found = compared(recorded, repository)
    assert kinds(found) == [("commit", "commit"), ("diff", "uncommitted changes")]
    assert found.lines()[1:3] == [
        f"  commit {recorded.code['commit'][:12]} → {repository.head[:12]} (agent.py)",
        "  the uncommitted changes have changed (other.py)",
    ]
    changes = code_changes(recorded.code, found.code)
    assert changes is not None
    assert [(line.source, line.file, line.number, line.text) for line in changes.lines or ()] == [
        ("commit", "agent.py", None, "two"),
        ("commit", "agent.py", 2, "2"),
        ("diff", "other.py", 2, "y"),
    ]


def test_a_change_that_is_taken_back_is_one(repository: Repository) -> None:
    repository.write({"agent.py": "one\n2\nthree\n"})
    recorded = command(repository)
    repository.write({"agent.py": "one\ntwo\nthree\n"})
    assert kinds(compared(recorded, repository)) == [("diff", "uncommitted changes")]


def test_lines_that_are_not_known_are_said_to_be_so(repository: Repository) -> None:
    recorded = command(repository)
    gone = replace(recorded, code={**recorded.code, "commit": "0" * 40})
    (change,) = compared(gone, repository).changed
    assert (change.kind, "git diff: " in change.detail) == ("commit", True)
    lost = replace(recorded, code={**recorded.code, "diff": None, "why": "git is not installed"})
    (change,) = compared(lost, repository).changed
    assert (change.kind, change.detail) == ("diff", " (git is not installed)")


@pytest.mark.parametrize(
    "code",
    [None, [], {}, {"root": 5}, {"commit": "--x", "diff": 3}, {"commit": "0" * 40, "diff": "\ud800@@"}, {"diff": "@@ -1 +99999 @@\n+x"}],
)
def test_a_damaged_record_is_no_failure(repository: Repository, code: Any) -> None:
    recorded = replace(command(repository), code=code, variables=[1], definition={"argv": 5, "versions": [], "environment": {"A": 1}})
    assert compared(recorded, repository).changed


def test_the_lines_of_a_diff() -> None:
    text = (
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- gone\n+++ here\n"
        "diff --git a/y b/y\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n"
    )
    assert list(parse_diff(text)) == [("x", "-", None, "-- gone"), ("x", "+", 2, "++ here"), ("y", "-", None, "y")]


def test_what_has_changed_is_short_for_people() -> None:
    changed = tuple(Change(kind="variable", name=f"V{i}") for i in range(12))
    lines = Comparison(changed=changed, equal=("code",)).lines()
    assert (len(lines), lines[-2:]) == (11, ["  and 4 more", "  as recorded: code"])


def test_what_is_sent_to_a_back_end_has_no_code_in_it() -> None:
    span = SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_span_id=None,
        name="command",
        kind=1,
        start_ns=0,
        attributes={names.RUN_CODE: "{}", names.RUN_VARIABLES: "{}", names.RUN_NAME: "a"},
        resource=Resource(),
        scope=Scope(name=""),
    )
    assert view_of(span).attributes == {names.RUN_NAME: "a"}

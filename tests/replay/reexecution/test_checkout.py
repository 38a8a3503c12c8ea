"""The code of a run, laid out again."""

import json
from pathlib import Path
from typing import Any

import pytest

from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.recording.code import code_of
from spanreplay.recording.definition import lock
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.checkout import REQUIREMENTS, CheckoutError, check_out
from support.handmade import run
from support.repository import Repository


def recorded(repository: Repository, **changed: Any) -> Run:
    """A command that was started in the folder ``app`` of a repository."""
    code = code_of(repository.folder, Redactor(RedactionPolicy.default()))
    assert code is not None
    definition = {
        "argv": ["python", "agent.py"],
        "cwd": str(repository.folder / "app"),
        "python": {"version": "3.12.1"},
        "versions": {"dependencies": {"packages": ["a==1", "b==2", "-r /etc/passwd"], "lock": lock(repository.folder / "app")}},
    }
    kept = json.loads(json.dumps({**code.to_json(), **changed}))
    return run(run_id="c0ffee" * 4, is_command=True, code=kept, definition=definition)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.made(tmp_path / "r", {"app/agent.py": "1\n", "gone": "x\n", "uv.lock": "a==1\n"})
    made.write({"app/agent.py": "2\n", "app/new.py": "new\n"})
    (made.folder / "gone").unlink()
    return made


def test_commit_changes_and_packages_are_laid_out_and_the_working_tree_stays(repository: Repository, tmp_path: Path) -> None:
    command = recorded(repository)
    repository.write({"app/agent.py": "3\n", "gone": "back\n"})
    repository.commit()
    repository.write({"app/agent.py": "4\n"})
    before, status = repository.files(), repository.git("status", "--porcelain")
    made = check_out([command], tmp_path / "out", repositories=[repository.folder])
    assert (repository.files(), repository.git("status", "--porcelain")) == (before, status)
    laid_out = Repository(tmp_path / "out")
    assert laid_out.head == made.commit == command.code["commit"]
    assert {name: data for name, data in laid_out.files().items() if name not in (".git", REQUIREMENTS)} == {
        "app/agent.py": b"2\n",
        "app/new.py": b"new\n",
        "uv.lock": b"a==1\n",
    }
    assert made.files == ("M app/agent.py", "A app/new.py", "D gone")
    assert made.requirements == tmp_path / "out" / REQUIREMENTS
    assert made.requirements.read_text().splitlines()[1:] == ["a==1", "b==2"]
    assert (made.cwd, made.lock, made.argv) == (tmp_path / "out" / "app", ("uv.lock", True), ("python", "agent.py"))
    alone = check_out([command], tmp_path / "alone", repositories=[repository.folder], without_diff=True)
    assert (tmp_path / "alone" / "app" / "agent.py").read_text() == "1\n"
    assert alone.files == ()


def test_the_recorded_repository_is_looked_into_only_where_the_run_was_recorded_here(repository: Repository, tmp_path: Path) -> None:
    command = recorded(repository)
    with pytest.raises(CheckoutError, match="looked in no repository; fetch it, or name a repository that has it with --repository"):
        check_out([command], tmp_path / "out")
    assert check_out([command], tmp_path / "out", ours=True).repository == repository.folder


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"commit": None}, "had no commit when it was recorded"),
        ({"commit": "--help"}, "had no commit when it was recorded"),
        ({"commit": "0" * 40}, r"commit 0+ was not found; looked in .*; fetch it"),
        (
            {"diff": None, "why": "the diff has 9 bytes, more than the 5 that are kept"},
            "is not kept \\(the diff has 9 bytes.*--without-diff",
        ),
        ({"diff": "nonsense"}, "the recorded changes do not apply to the commit: git apply: .*--without-diff"),
        ({"diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", "redacted": 2}, "2 secrets were taken out of it"),
        ({"diff": "\ud800"}, "are damaged"),
    ],
)
def test_what_cannot_be_laid_out_is_said_and_leaves_nothing(
    repository: Repository, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(CheckoutError, match=said):
        check_out([recorded(repository, **changed)], tmp_path / "out", repositories=[repository.folder])
    assert not (tmp_path / "out").exists()
    assert repository.git("worktree", "list").count("\n") == 0


def test_a_folder_that_holds_something_is_left_alone(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for taken, said in ((repository.folder, "is not empty"), (tmp_path / "file", "is a file")):
        with pytest.raises(CheckoutError, match=said):
            check_out([recorded(repository)], taken, repositories=[repository.folder])
    (tmp_path / "empty").mkdir()
    check_out([recorded(repository)], tmp_path / "empty", repositories=[repository.folder])


def test_a_record_that_does_not_say_which_code_ran(tmp_path: Path) -> None:
    with pytest.raises(
        CheckoutError, match="does not say which code it ran: only a command that spanreplay record ran in a git repository"
    ):
        check_out([run()], tmp_path / "out")

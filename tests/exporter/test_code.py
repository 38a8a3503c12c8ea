"""What is kept of the code that a command is started from."""

import subprocess
from pathlib import Path

import pytest

from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.recording import code as module
from spanreplay.recording.code import Code, GitError, code_of, git
from support.repository import Repository

REDACTOR = Redactor(RedactionPolicy.default())


def state(repository: Repository) -> Code:
    found = code_of(repository.folder, REDACTOR)
    assert found is not None
    return found


def objects(repository: Repository) -> set[Path]:
    return set((repository.folder / ".git").rglob("*"))


def test_a_clean_tree_has_a_commit_and_nothing_else(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n"})
    found = state(repository)
    assert (found.commit, found.diff, found.files, found.why) == (repository.head, "", (), None)
    assert found.to_json()["dirty"] is False
    assert code_of(tmp_path, REDACTOR) is None


def test_all_that_is_not_committed_is_one_diff_that_makes_the_same_tree_again(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n2\n", "gone.py": "x\n", "sub/b.bin": "\0\1", ".gitignore": "*.log\n"})
    repository.write({"a.py": "1\n3\n", "new é.py": "new\n", "sub/b.bin": "\0\2", "more.log": "ignored", "sub/staged.py": "s\n"})
    (repository.folder / "gone.py").unlink()
    repository.git("add", "sub/staged.py")
    before = objects(repository)
    found = state(repository)
    assert found.files == ("M a.py", "D gone.py", "A new é.py", "M sub/b.bin", "A sub/staged.py")
    assert objects(repository) == before
    assert found.diff is not None
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repository.folder), str(other))
    git(other, "apply", "-", given=found.diff.encode(found.encoding))
    kept = {p.relative_to(other).as_posix(): p.read_bytes() for p in other.rglob("*") if p.is_file() and ".git/" not in p.as_posix()}
    live = repository.files()
    assert {name: data for name, data in live.items() if name != "more.log"} == kept


def test_a_secret_leaves_the_diff_and_is_counted(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n"})
    repository.write({"a.py": "1\nKEY = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF'\n"})
    found = state(repository)
    assert found.redacted == 1
    assert "abcdefghijklmnop" not in str(found.diff)


def test_text_that_is_no_utf8_is_kept(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n"})
    (repository.folder / "a.py").write_bytes("é\n".encode("latin-1"))
    found = state(repository)
    assert (found.encoding, "+é" in str(found.diff)) == ("latin-1", True)


def test_what_is_too_large_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n"})
    repository.write({"a.py": "2\n", "large": "x" * 100})
    monkeypatch.setattr(module, "_FILE_LIMIT", 50)
    found = state(repository)
    assert found.left_out == ("large",)
    assert "a/a.py" in str(found.diff)
    monkeypatch.setattr(module, "_FILE_LIMIT", 500)
    monkeypatch.setattr(module, "DIFF_LIMIT", 200)
    found = state(repository)
    assert (found.diff, found.files) == (None, ("M a.py", "A large"))
    assert found.why is not None
    assert "more than the 200 that are kept" in found.why


def test_a_repository_without_a_commit_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    git(tmp_path / "r", "init", "-q")
    (tmp_path / "r" / "a.py").write_text("1\n")
    found = code_of(tmp_path / "r", REDACTOR)
    assert found is not None
    assert (found.commit, found.files) == (None, ("A a.py",))
    assert "+1" in str(found.diff)


def test_what_git_cannot_say_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository.made(tmp_path / "r", {"a.py": "1\n"})
    monkeypatch.setattr(module, "_GIT", ("no-such-git",))
    found = state(repository)
    assert (found.commit, found.diff, found.why) == (repository.head, None, "git is not installed")
    assert found.to_json()["dirty"] is None
    monkeypatch.setattr(module, "_GIT", ("git",))

    def late(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", 1)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(GitError, match="took more than"):
        git(repository.folder, "status")

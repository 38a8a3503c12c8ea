"""The state that a command starts from is taken whole, without secrets, and within bounds; what is left out is named."""

import base64
import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from spanreplay.content.redaction import Redactor
from spanreplay.exporter.redacting import redactor_for
from spanreplay.recording import state as module
from spanreplay.recording.state import left_out, state_of


@pytest.fixture
def redactor() -> Redactor:
    return redactor_for(None)


def taken(tmp_path: Path, redactor: Redactor, *asked: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = state_of(asked, tmp_path, redactor)["paths"]
    return found


def test_files_and_folders_by_content(tmp_path: Path, redactor: Redactor) -> None:
    (tmp_path / "folder" / "deep" / "empty").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "a.txt").write_text("text")
    (tmp_path / "folder" / "b.bin").write_bytes(b"\xff\x00")
    (tmp_path / "folder" / "b.bin").chmod(0o640)
    folder, file, absent = taken(tmp_path, redactor, "folder", "folder/b.bin", str(tmp_path / "nothing"))
    assert (folder["kind"], folder["folders"]) == ("folder", ["deep", "deep/empty"])
    assert [(f["name"], f["content"], f["encoding"]) for f in folder["files"]] == [
        ("b.bin", base64.b64encode(b"\xff\x00").decode(), "base64"),
        ("deep/a.txt", "text", "utf-8"),
    ]
    (kept,) = file["files"]
    assert (file["kind"], kept["name"], kept["mode"], kept["size"]) == ("file", "", 0o640, 2)
    assert kept["digest"] == f"sha256:{sha256(bytes([255, 0])).hexdigest()}"
    assert (absent["kind"], absent["files"], absent["path"]) == ("absent", [], str(tmp_path / "nothing"))


def test_a_database_with_what_is_in_its_log(tmp_path: Path, redactor: Redactor) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (a)")
        db.execute("insert into t values ('remembered')")
        db.commit()
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "memory.db-shm"}
        for asked in ("memory.db", "."):
            (kept,) = taken(tmp_path, redactor, asked)
            (file,) = kept["files"]
            (tmp_path.parent / "copy.db").write_bytes(base64.b64decode(file["content"]))
            with closing(sqlite3.connect(tmp_path.parent / "copy.db")) as copy:
                assert copy.execute("select a from t").fetchall() == [("remembered",)]
        assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_database_that_stays_locked_is_named_and_not_waited_for(
    tmp_path: Path, redactor: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0)
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as other:
        other.execute("create table a (b)")
        other.execute("begin exclusive")
        (kept,) = taken(tmp_path, redactor, "x.db")
    assert kept["files"] == []
    assert "locked" in kept["left_out"][0]["why"]


def test_secrets_are_taken_out_of_texts_and_keep_other_files_out(tmp_path: Path, redactor: Redactor) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 5
    (tmp_path / "notes.txt").write_text(f"key: {secret} end")
    (tmp_path / "notes.bin").write_bytes(b"\xff" + f"key: {secret} end".encode())
    text, binary = taken(tmp_path, redactor, "notes.txt", "notes.bin")
    assert secret not in str((text, binary))
    assert text["files"][0]["content"].startswith("key: ")
    assert text["redacted"] == 1
    assert binary["files"] == []
    assert "secret" in binary["left_out"][0]["why"]


def test_what_is_no_file_and_what_is_too_much_is_named(tmp_path: Path, redactor: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL_LIMIT", 10)
    monkeypatch.setattr(module, "FILES_LIMIT", 2)
    (tmp_path / "s").mkdir()
    for name, size in (("a", 4), ("b", 100), ("c", 4), ("d", 1)):
        (tmp_path / "s" / name).write_text("x" * size)
    (tmp_path / "s" / "link").symlink_to("a")
    os.mkfifo(tmp_path / "s" / "pipe")
    state = state_of(["s"], tmp_path, redactor)
    assert [file["name"] for file in state["paths"][0]["files"]] == ["a", "c"]
    why = dict(left_out(state))
    assert set(why) == {"s/b", "s/d", "s/link", "s/pipe"}
    assert "100 bytes do not fit" in why["s/b"]
    assert why["s/link"] == "a symbolic link"

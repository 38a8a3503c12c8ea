"""What a record says of state is not trusted: nothing leaves its path, and nonsense is nothing."""

from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.isolation import state
from spanreplay.replay.isolation.paths import Territory
from spanreplay.replay.isolation.state import paths_of, put_back


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        "x",
        {},
        {"paths": "x"},
        {"paths": [None, 1, {}, {"path": "relative"}, {"path": "/"}, {"path": "/a/../b"}, {"path": "/a\0"}]},
    ],
)
def test_nonsense_is_no_state(found: Any, tmp_path: Path) -> None:
    assert paths_of(found) == ()
    assert put_back(tmp_path, found).overlaid == ()


def test_files_stay_below_their_path(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    names = ["in/x", "../out", "/etc/out", "in/../../out", "", None, 7, "nul\0"]
    files = [{"name": name, "content": "x", "encoding": "utf-8", "mode": 0o600} for name in names]
    broken = [{"name": "bad", "content": "?", "encoding": "base64"}, {"name": "none"}, None, {"name": "mode", "content": "", "mode": "x"}]
    state._restore(
        {"path": str(path), "kind": "folder", "folders": ["in", "../up", 3], "files": [f for f in files if f["name"] != ""] + broken}
    )
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["a", "a/b", "a/b/in", "a/b/in/x", "a/b/mode"]


def test_what_is_there_now_goes_away_first(tmp_path: Path) -> None:
    for name in ("db", "db-wal", "db-shm"):
        (tmp_path / name).write_text("now")
    state._restore({"path": str(tmp_path / "db"), "kind": "absent", "files": []})
    assert list(tmp_path.iterdir()) == []


def test_around_state_only_what_bears_its_name_may_be_written(tmp_path: Path) -> None:
    territory = Territory(tmp_path / "scratch", (), [Path("/work/memory.db"), Path("/work/logs")])
    allowed = ["/work/memory.db", "/work/memory.db-journal", "/work/.memory.db.lock", "/work/logs/deep/a"]
    assert all(territory.holds(path) for path in allowed)
    assert not any(territory.holds(path) for path in ("/work/other.db", "/work/deep/memory.db", "/work", "/memory.db"))

"""Where a path really leads."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.isolation.paths import Territory, exists


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("scratch", "outside", "scratch2"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / "scratch" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "scratch" / "outfile").symlink_to(tmp_path / "outside" / "file")
    (tmp_path / "outside" / "in").symlink_to(tmp_path / "scratch")
    return tmp_path


def territory(place: Path) -> Territory:
    return Territory(place / "scratch", [place / "log.txt"])


@pytest.mark.parametrize(
    ("name", "follow", "allowed"),
    [
        ("scratch", True, True),
        ("scratch/new", True, True),
        ("scratch/a/../new", True, True),
        ("log.txt", True, True),
        ("log.txt.1", True, False),
        ("scratch2/new", True, False),
        ("scratch/../outside/new", True, False),
        ("scratch/out/new", True, False),
        ("scratch/outfile", True, False),
        ("scratch/outfile", False, True),  # deleting the link leaves the file
        ("scratch/out/file", False, False),
        ("outside/in/new", True, True),
        ("outside/in", False, False),  # deleting the link changes outside
        ("outside/in/", False, False),
        ("scratch/out/..", True, False),
        ("scratch/.", False, True),
        ("outside/..", False, False),
    ],
)
@pytest.mark.parametrize("form", [str, os.fsencode, Path], ids=["str", "bytes", "Path"])
def test_outside(place: Path, name: str, follow: bool, allowed: bool, form: type) -> None:
    path = form(f"{place}/{name}")
    assert (territory(place).outside(path, follow=follow) is None) is allowed


def test_relative_paths_start_from_the_working_or_the_given_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = territory(place)
    monkeypatch.chdir(place / "outside")
    assert ground.outside("new") == str(place / "outside" / "new")
    assert ground.outside("../scratch/new") is None
    fd = os.open(place / "scratch", os.O_RDONLY)
    try:
        assert ground.outside("new", dir_fd=fd) is None
        assert ground.outside("../outside/x", dir_fd=fd) == str(place / "outside" / "x")
        assert exists("outfile", fd)
        assert not exists("missing", fd)
    finally:
        os.close(fd)
    assert ground.outside("new", dir_fd=fd) is not None
    monkeypatch.chdir(place / "scratch")
    assert ground.outside("new") is None


def test_descriptors(place: Path) -> None:
    ground = territory(place)
    reader, writer = os.pipe()
    inside = os.open(place / "scratch" / "f", os.O_CREAT | os.O_WRONLY)
    beyond = os.open(place / "outside" / "file", os.O_RDONLY)
    try:
        for fd, allowed in ((1, True), (2, True), (writer, True), (inside, True), (beyond, False), (999_999, True)):
            assert (ground.outside(fd) is None) is allowed
        for form in ("/dev/fd/{}", "/proc/self/fd/{}", f"/proc/{os.getpid()}/fd/{{}}", "/proc/thread-self/fd/{}"):
            for fd, allowed in ((1, True), (2, True), (writer, True), (inside, True), (beyond, False)):
                assert (ground.outside(form.format(fd)) is None) is allowed, form.format(fd)
    finally:
        for fd in (reader, writer, inside, beyond):
            os.close(fd)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/tty", "/dev/stdout", "/dev/stderr"])
def test_devices(place: Path, device: str) -> None:
    assert territory(place).outside(device) is None


def test_other_devices_are_outside(place: Path) -> None:
    assert territory(place).outside("/dev/shm/x") is not None
    assert territory(place).outside("/proc/self/mem") is not None


def test_looking_changes_nothing(place: Path) -> None:
    before = {path: path.lstat() for path in place.rglob("*")}
    territory(place).outside(place / "scratch" / "out" / "new" / "deep")
    after = {path: path.lstat() for path in place.rglob("*")}
    assert {path: (s.st_mtime_ns, s.st_size) for path, s in after.items()} == {
        path: (s.st_mtime_ns, s.st_size) for path, s in before.items()
    }


def test_link_loop_is_outside_or_inside_but_no_error(place: Path) -> None:
    (place / "outside" / "loop").symlink_to(place / "outside" / "loop")
    assert territory(place).outside(place / "outside" / "loop") is not None


PART = st.sampled_from(["scratch", "outside", "out", "in", "..", ".", "new", "file"])
DEPTH = 6


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(PART, max_size=DEPTH))
def test_verdict_is_where_a_file_would_appear(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    top = tmp_path_factory.getbasetemp() / "verdict"
    root = top.joinpath(*"abcdef"[:DEPTH])  # as deep as ".." can climb
    if not root.exists():
        for name in ("scratch/new", "outside/new", "scratch/file", "outside/file"):
            (root / name).mkdir(parents=True)
        (root / "scratch" / "out").symlink_to("../outside")
        (root / "outside" / "in").symlink_to(root / "scratch")
    path = os.path.join(root, *parts, "leaf")
    allowed = Territory(root / "scratch", ()).outside(path) is None
    try:
        Path(path).touch()
    except OSError:
        return
    (made,) = top.rglob("leaf")
    made.unlink()
    assert made.is_relative_to(root / "scratch") is allowed


def test_the_journals_of_an_allowed_database_are_allowed_too(tmp_path: Path) -> None:
    territory = Territory(tmp_path / "scratch", [tmp_path / "ck.sqlite", tmp_path])
    only = Territory(tmp_path / "scratch", [tmp_path / "ck.sqlite"])
    for end in ("-journal", "-wal", "-shm"):
        assert only.outside(tmp_path / f"ck.sqlite{end}") is None
    for other in ("ck.sqlite-other", "ck.sqlite-journal/x", "other-journal"):
        assert only.outside(tmp_path / other) is not None
    assert territory.outside(tmp_path.parent / f"{tmp_path.name}-journal") is not None, "a folder is no database"

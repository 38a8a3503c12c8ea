"""Of what is shared by name, a replay makes locks, and nothing else."""

import sys
from multiprocessing.synchronize import SemLock
from pathlib import Path

import pytest

from spanreplay.replay.isolation.shared_memory import SharedMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/shm is Linux's")


def _path(name: str) -> str:
    return SharedMemory.FOLDER + name


def _temporary() -> str:
    from spanreplay.replay.isolation import shared_memory

    return "sem.Ab3dE9" if shared_memory._GLIBC else "tmp-12345"


def test_a_lock_is_made_under_a_temporary_name_and_linked() -> None:
    shared = SharedMemory()
    made, lock = _path(_temporary()), _path(("sem." if _temporary().startswith("sem") else "") + "mp-t35t0fus")
    assert shared.takes(made)
    assert shared.takes(lock)
    shared.moved(made, lock, kept=True)
    assert shared.takes(made, deleted=True)
    assert not shared.takes(made, deleted=True)
    assert shared.takes(lock)
    assert shared.takes(lock, deleted=True)


@pytest.mark.parametrize("name", ["nc", "sem.mine", "psm_0123abcd", "folder/sem.mp-abcdefgh", "sem.mp-abc/def", "torch_1_2"])
def test_whatever_else_is_made_there_is_outside(name: str) -> None:
    assert not SharedMemory().takes(_path(name))


def test_a_lock_of_somebody_else_is_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedMemory, "FOLDER", f"{tmp_path}/")
    (tmp_path / "sem.mp-abcdefgh").touch()
    assert not SharedMemory().takes(f"{tmp_path}/sem.mp-abcdefgh")


def test_the_names_are_those_of_this_python() -> None:
    name = SemLock._make_name()  # type: ignore[attr-defined]
    assert SharedMemory().takes(_path(("sem." if _temporary().startswith("sem") else "") + name[1:]))

"""Which System V calls change what others find by a key."""

import ctypes
import sys
from typing import Any

import pytest

from spanreplay.replay.isolation.numbered import has_key, only_looks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="System V tables are Linux's")

KEY = 0x5EAF11E


def test_what_has_a_key_is_others_and_what_is_private_is_not() -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    private, known = libc.shmget(0, 4096, 0o1600), libc.shmget(KEY, 4096, 0o1600)
    try:
        assert not has_key("shmat", private)
        assert has_key("shmat", known)
        assert not has_key("shmat", 2**30)
    finally:
        for number in (private, known):
            libc.shmctl(number, 0, None)


@pytest.mark.parametrize(
    ("call", "second", "third", "looks"),
    [
        ("shmat", 0, 0o10000, True),
        ("shmat", 0, 0, False),
        ("shmctl", 2, 0, True),
        ("shmctl", 0x102, 0, True),
        ("shmctl", 0, 0, False),
        ("shmctl", 11, 0, False),
        ("semctl", 0, 11, True),
        ("semctl", 0, 12, True),
        ("semctl", 0, 16, False),
        ("semctl", 2, 0, False),
        ("msgctl", 2, 0, True),
        ("msgsnd", 2, 2, False),
        ("semop", 2, 2, False),
    ],
)
def test_a_look_changes_nothing(call: str, second: int, third: int, looks: bool) -> None:
    assert only_looks(call, second, third) is looks

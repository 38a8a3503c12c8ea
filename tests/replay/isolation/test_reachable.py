"""Hosts that are named may be looked up and connected to; what a name stands for is learned by looking it up."""

import socket
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.isolation.reachable import Reachable


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked up; they all stand for 192.0.2.7."""
    found: list[str] = []

    def getaddrinfo(host: str, _port: object) -> list[Any]:
        found.append(host)
        return [(0, 0, 0, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return found


@pytest.mark.parametrize(
    ("allowed", "host", "port", "holds"),
    [
        (("192.0.2.1", 443), "192.0.2.1", 443, True),
        (("192.0.2.1", 443), "192.0.2.1", 80, False),
        (("192.0.2.1", 0), "192.0.2.1", 80, True),
        (("192.0.2.1", 0), "192.0.2.2", 80, False),
        (("192.0.2.1", 443), "::ffff:192.0.2.1", 443, True),
        (("2001:db8:0:0::1", 443), "2001:db8::1", 443, True),
        (("fe80::1", 443), "fe80::1%eth0", 443, True),
        (("/run/db.sock", 0), "/run/db.sock", 0, True),
        (("/run/db.sock", 0), "/run/docker.sock", 0, False),
        (("api.example.", 443), "API.example", 443, True),
        (("api.example", 443), "192.0.2.7", 443, True),
        (("api.example", 443), "192.0.2.7", 80, False),
        (("api.example", 443), "192.0.2.8", 443, False),
    ],
)
def test_addresses(allowed: tuple[str, int], host: str, port: int, holds: bool, tmp_path: Path, asked: list[str]) -> None:
    assert Reachable([allowed], tmp_path).holds(host, port) is holds


def test_a_name_is_not_looked_up_for_every_connection(tmp_path: Path, asked: list[str]) -> None:
    reachable = Reachable([("api.example", 443)], tmp_path)
    assert [reachable.holds("192.0.2.7", 443), reachable.holds("192.0.2.7", 443), reachable.holds("192.0.2.8", 443)] == [True, True, False]
    assert asked == ["api.example"]


def test_what_one_process_has_looked_up_another_knows(tmp_path: Path, asked: list[str]) -> None:
    here, there = (Reachable([("api.example", 443)], tmp_path) for _ in range(2))
    here.learn("api.example", ["192.0.2.99"])
    here.learn("other.example", ["192.0.2.100"])
    with (tmp_path / "reached").open("a") as file:
        file.write('nonsense\n{"host": "other.example", "addresses": []}\n{"host": "api.example", "addr')
    assert there.holds("192.0.2.99", 443)
    assert not there.holds("192.0.2.100", 443)


def test_nothing_is_allowed_by_default(tmp_path: Path) -> None:
    reachable = Reachable([], tmp_path)
    assert (bool(reachable), reachable.looks_up, reachable.ports) == (False, False, frozenset())
    assert not reachable.holds("127.0.0.1", 80)

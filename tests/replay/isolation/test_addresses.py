"""Which addresses and names ask nobody outside."""

import ipaddress
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.isolation import addresses


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST.", "app.localhost", b"127.0.0.1", "::ffff:127.0.0.1", "127.1"]
)
def test_loopback(host: object) -> None:
    assert addresses.is_loopback(host)
    assert addresses.is_local_answer(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "10.0.0.1", "localhost.evil.com", "notlocalhost", "169.254.1.1", "example.com"])
def test_not_loopback(host: str) -> None:
    assert not addresses.is_loopback(host)
    assert not addresses.binds_inside(socket.AF_INET, (host, 0))


@pytest.mark.parametrize("host", ["example.com", b"example.com", "localhost.evil.com", "host", "1.2.3.4.5"])
def test_names_that_ask_somebody(host: object) -> None:
    assert not addresses.is_local_answer(host)


@settings(max_examples=60)
@given(address=st.ip_addresses())
def test_numeric_addresses_ask_nobody(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert addresses.is_local_answer(str(address))


def test_binding_by_family() -> None:
    assert addresses.binds_inside(socket.AF_INET6, ("::1", 0, 0, 0))
    assert addresses.binds_inside(socket.AF_NETLINK, (0, 0))
    assert not addresses.binds_inside(socket.AF_PACKET, ("lo", 0))
    assert not addresses.binds_inside(socket.AF_INET, "127.0.0.1")


@pytest.mark.parametrize(
    ("address", "shown", "parts"),
    [
        (("10.0.0.1", 443), "10.0.0.1:443", ("10.0.0.1", 443)),
        (("fe80::1", 1, 0, 0), "[fe80::1]:1", ("fe80::1", 1)),
        ("/run/docker.sock", "/run/docker.sock", ("/run/docker.sock", 0)),
        (b"\0abstract", "@abstract", ("\0abstract", 0)),
        ((0, 0), "(0, 0)", ("", 0)),
    ],
)
def test_shown(address: object, shown: str, parts: tuple[str, int]) -> None:
    assert addresses.shown(address) == shown
    assert addresses.host_and_port(address) == parts


@pytest.mark.parametrize(
    ("name", "file"),
    [
        (":memory:", None),
        ("", None),
        ("a.db", "a.db"),
        ("/x/a b.db", "/x/a b.db"),
        ("file:a.db", "a.db"),
        ("file:/x/a%20b.db", "/x/a b.db"),
        ("file:///x/a.db", "/x/a.db"),
        ("file://localhost/x/a.db?cache=shared", "/x/a.db"),
        ("file:a.db?mode=ro", None),
        ("file:a.db?mode=ro&mode=rwc", "a.db"),
        ("file:a.db?immutable=1", None),
        ("file:a.db?mode=rw#mode=ro", "a.db"),
        ("file:name?mode=memory&cache=shared", None),
        ("file::memory:", None),
        ("file:", None),
    ],
)
def test_sqlite_file(name: str, file: str | None) -> None:
    assert addresses.sqlite_file(name) == file

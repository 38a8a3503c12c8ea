"""Which addresses a replay may connect to all the same: those that were named for its live calls, and nobody else.

A host that is named is looked up by whoever connects to it. Level 1 sees what Python's look-ups answer; level 2 is told of that by the
processes it watches (``SCRATCH/reached``, a JSON line for each look-up), and looks the names up by itself for what C code has looked up.
"""

import ipaddress
import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from spanreplay.replay.isolation.addresses import bare, numeric

Address: TypeAlias = tuple[str, int]
"""Host and port. The host is a name, a numeric address or, with port 0, the path of a Unix socket; port 0 stands for every port."""

REACHED: Final = "reached"
_AGAIN_S: Final = 2.0
"""A name that gave no match is not looked up again for so long."""


class Reachable:
    """The addresses of ``allow_connect``. False where there are none. May be used from any thread.

    Args:
        allowed: see :data:`Address`.
        scratch: of the replay, where its processes tell each other what names stand for; ``None`` where there is only this one.
    """

    def __init__(self, allowed: Sequence[Address], scratch: Path | None) -> None:
        self._allowed: Final = tuple((_plain(host), port) for host, port in allowed)
        self._names: Final = frozenset(host for host, _ in self._allowed if _is_name(host))
        self._told: Final = None if scratch is None else scratch / REACHED
        self._known: Final[dict[str, set[str]]] = {name: set() for name in self._names}
        self._read = 0
        self._looked: dict[str, float] = {}
        self._lock: Final = threading.RLock()  # the guard asks from wherever the collector runs

    def __bool__(self) -> bool:
        return bool(self._allowed)

    @property
    def looks_up(self) -> bool:
        """Whether names must be looked up, which asks name servers."""
        return bool(self._names)

    @property
    def ports(self) -> frozenset[int]:
        """The ports; 0 among them stands for every port."""
        return frozenset(port for host, port in self._allowed if not host.startswith("/"))

    def is_named(self, host: str) -> bool:
        """Whether a host, as given to a look-up, is one of those allowed."""
        return _plain(host) in {name for name, _ in self._allowed}

    def holds(self, host: str, port: int) -> bool:
        """Whether a connection to a host or numeric address, or to the path of a Unix socket, is allowed."""
        wanted = _plain(host)
        named = [name for name, allowed in self._allowed if allowed in (0, port)]
        if wanted in named:
            return True
        if not any(name in self._names for name in named):
            return False
        return self._stands_for(wanted, named) or (self._learn_more(named) and self._stands_for(wanted, named))

    def learn(self, host: str, addresses: Iterable[str]) -> None:
        """A look-up of ``host`` has given these numeric addresses."""
        name = _plain(host)
        found = {_plain(address) for address in addresses}
        if name not in self._names or found <= self._known[name]:
            return
        self._known[name] |= found
        if self._told is None:
            return
        line = json.dumps({"host": name, "addresses": sorted(found)}) + "\n"
        descriptor = os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def _stands_for(self, address: str, names: Sequence[str]) -> bool:
        return any(address in self._known.get(name, ()) for name in names)

    def _learn_more(self, names: Sequence[str]) -> bool:
        with self._lock:
            self._read_told()
            for name in names:
                if name in self._names and time.monotonic() - self._looked.get(name, -_AGAIN_S) >= _AGAIN_S:
                    self._looked[name] = time.monotonic()
                    self._known[name] |= _look_up(name)
        return True

    def _read_told(self) -> None:
        if self._told is None:
            return
        try:
            with self._told.open("rb") as file:
                file.seek(self._read)
                lines = file.read()
        except OSError:
            return
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                told: Any = json.loads(line)
                name, addresses = told["host"], told["addresses"]
            except (ValueError, KeyError, TypeError):
                continue
            if name in self._names:
                self._known[name] |= set(addresses)


def _look_up(name: str) -> set[str]:
    try:
        return {_plain(str(found[4][0])) for found in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()


def _plain(host: str) -> str:
    if host.startswith("/"):
        return host
    name = bare(host).partition("%")[0]
    address = numeric(name)
    if address is None:
        return name
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _is_name(host: str) -> bool:
    return not host.startswith("/") and numeric(host) is None

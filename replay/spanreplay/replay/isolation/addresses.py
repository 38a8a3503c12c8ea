"""Socket addresses, host names and SQLite names: which of them stay inside this machine's own answers."""

import ipaddress
import socket
from typing import Final
from urllib.parse import parse_qs, unquote

_LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_KERNEL_ONLY: Final = frozenset(int(getattr(socket, name)) for name in ("AF_NETLINK", "AF_ALG") if hasattr(socket, name))
_INTERNET: Final = frozenset({int(socket.AF_INET), int(socket.AF_INET6)})


def text(value: object) -> str:
    """Give a host name or socket path as ``str``, undecodable bytes escaped."""
    return bytes(value).decode("utf-8", "backslashreplace") if isinstance(value, bytes | bytearray) else str(value)


def is_loopback(host: object) -> bool:
    """Tell whether ``host`` is a loopback address or one of the names that always mean one."""
    name = bare(host)
    if name in _LOCAL_NAMES or name.endswith(".localhost"):
        return True
    address = numeric(name)
    return address is not None and (address.is_loopback or bool(getattr(getattr(address, "ipv4_mapped", None), "is_loopback", False)))


def is_local_answer(host: object) -> bool:
    """Tell whether looking up ``host`` asks nobody: nothing, a numeric address or a loopback name."""
    return host is None or bare(host) == "" or is_loopback(host) or numeric(bare(host)) is not None


def binds_inside(family: int, address: object) -> bool:
    """Tell whether binding ``address`` (a tuple) lets only this machine in. Port and all-addresses binds of the network do not."""
    if family in _INTERNET:
        return isinstance(address, tuple) and is_loopback(address[0])
    return family in _KERNEL_ONLY


def host_and_port(address: object) -> tuple[str, int]:
    """Split an internet address; the host is the path and the port 0 for ``AF_UNIX``, and both are empty for other families."""
    if isinstance(address, str | bytes | bytearray):
        return text(address), 0
    if isinstance(address, tuple) and len(address) >= 2 and isinstance(address[0], str | bytes | bytearray):
        return text(address[0]), address[1] if isinstance(address[1], int) else 0
    return "", 0


def shown(address: object) -> str:
    """Give an address for people: ``host:port``, ``[host]:port`` for IPv6, or the path of a Unix socket (NUL as ``@``)."""
    host, port = host_and_port(address)
    if isinstance(address, tuple) and host:
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return host.replace("\0", "@") if host else str(address)


def sqlite_file(name: str) -> str | None:
    """Give the file that ``sqlite3.connect(name)`` may write, or None for memory, a temporary or a read-only database.

    A ``file:`` name is taken as a URI (https://www.sqlite.org/uri.html): the event does not say whether ``uri=True`` was given.
    """
    if name in ("", ":memory:"):
        return None
    if not name.startswith("file:"):
        return name
    path, _, query = name.removeprefix("file:").partition("#")[0].partition("?")
    options = parse_qs(query, keep_blank_values=True)
    if options.get("mode", [""])[-1] in ("memory", "ro") or options.get("immutable", ["0"])[-1] in ("1", "on", "yes", "true"):
        return None
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    path = unquote(path)
    return None if path in ("", ":memory:") else path


def bare(host: object) -> str:
    """Give a host as it is compared: lower case, without the dot of a full name."""
    return text(host).rstrip(".").lower()


def numeric(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Give the address that ``name`` is the text of, or None."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:  # the short forms that the C library takes as numbers: 127.1, 0x7f000001
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None

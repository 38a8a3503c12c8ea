"""Where a receiver listens, whom it lets in, and how much it takes."""

import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20


class ReceiverError(Exception):
    """A receiver cannot be run so. The text says what was wanted, what was found and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of one receiver."""

    store: Path
    host: str = "127.0.0.1"
    http_port: int = 4318
    """0: any that is free."""
    grpc_port: int = 4317
    tokens: tuple[str, ...] = ()
    """Whoever sends has to show one of them, if there are any."""
    certificate: Path | None = None
    """PEM: the certificate and those that vouch for it."""
    key: Path | None = None
    limit: int = 64 * MIB
    """Bytes of one body, packed and unpacked; what the OTLP specification recommends."""
    waiting_bytes: int = 256 * MIB
    """Bytes of bodies held at once, over both protocols."""
    waiting_requests: int = 256
    connections: int = 512
    """Over HTTP."""
    head_s: float = 10.0
    """How long the head of a request may take."""
    idle_s: float = 10.0
    """How long nothing more of a body may come."""
    body_s: float = 120.0
    """How long a body may take in all."""
    stop_s: float = 10.0
    """How long a stop waits for requests that have begun."""

    @property
    def address(self) -> str:
        """What is listened on, as an IP address as a rule: ``localhost`` alone could be either of two."""
        bare = self.host.strip("[]")
        return "127.0.0.1" if bare.lower() == "localhost" else bare

    def check(self) -> None:
        """Refuses what would let strangers in, or read what is said.

        Raises:
            ReceiverError: it says what to do.
        """
        if (self.certificate is None) != (self.key is None):
            raise ReceiverError("a certificate needs its key, and a key its certificate: give both --tls-cert and --tls-key")
        for what, file in (("--tls-cert", self.certificate), ("--tls-key", self.key)):
            if file is not None and not file.is_file():
                raise ReceiverError(f"{what}: there is no file {file}")
        if is_loopback(self.host):
            return
        missing = [
            *([] if self.tokens else ["a token (--token-file FILE)"]),
            *([] if self.certificate else ["TLS (--tls-cert and --tls-key)"]),
        ]
        if missing:
            raise ReceiverError(
                f"{self.host} can be reached by other machines, and traces hold what agents were told: {' and '.join(missing)}"
                f" {'is' if len(missing) == 1 else 'are'} needed there. Without them it listens on loopback only, such as 127.0.0.1."
            )

    def lets_in(self, authorization: str | None) -> bool:
        """Whether a value of the header ``Authorization`` is good enough. Takes as long for a wrong token as for a right one."""
        if not self.tokens:
            return True
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        found = [hmac.compare_digest(given, known.encode()) for known in self.tokens]
        return scheme.lower() == "bearer" and any(found)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def tokens_in(text: str) -> tuple[str, ...]:
    """The tokens of a file: one a line, so that a new one can be given out before the old one goes; ``#`` begins a remark.

    Raises:
        ReceiverError: there is none, or one that is too easily guessed.
    """
    found = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))
    if not found:
        raise ReceiverError("the token file has no token; it has one a line")
    if any(len(token) < _SHORTEST for token in found):
        raise ReceiverError(f"a token has at least {_SHORTEST} letters; `openssl rand -hex 32` makes one")
    if any(not token.isascii() or any(letter.isspace() for letter in token) for token in found):
        raise ReceiverError("a token is ASCII without spaces, one a line")
    return found


_SHORTEST: Final = 16

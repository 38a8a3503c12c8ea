"""What stands in a text where a secret was: ``[redacted:KIND:xxxxxxxx]``."""

import hashlib
import hmac
import json
import re
from typing import Final

from spanreplay.content._fields import REPLACED
from spanreplay.content._tokens import Span

_SECRETS: Final = 256
_SECRET: Final = 1024
_SCHEME: Final = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)


class Replacements:
    """The replacements of one policy. Safe to share between threads.

    Args:
        salt: Key of the digests in them.
    """

    def __init__(self, salt: str) -> None:
        self._key = salt.encode()
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, secret: str) -> str:
        """Return the replacement of a secret."""
        known = self._known.get((kind, secret))  # the credentials of a service come with each of its requests
        if known is None:
            known = self._made(kind, secret)
            if len(self._known) < _SECRETS and len(secret) <= _SECRET:
                self._known[kind, secret] = known
        return known

    def _made(self, kind: str, secret: str) -> str:
        scheme = _SCHEME.match(secret)
        plain = _unescaped(secret[scheme.end() :] if scheme else secret)
        digest = hmac.digest(self._key, plain.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:8]
        return f"%5Bredacted:{kind}:{digest}%5D" if kind == "userinfo" else f"[redacted:{kind}:{digest}]"

    def put(self, text: str, spans: list[Span]) -> tuple[str, int]:
        """Return the text with each of these secrets replaced, and how many that were: what overlaps is one, of the outermost's kind."""
        spans.sort(key=_outer_first)
        parts: list[str] = []
        done = count = 0
        at = 0
        while at < len(spans):
            start, end, kind = spans[at]
            at += 1
            while at < len(spans) and spans[at].start < end:
                end = max(end, spans[at].end)
                at += 1
            parts += (text[done:start], self.of(kind, text[start:end]))
            done = end
            count += 1
        parts.append(text[done:])
        return "".join(parts), count


def mask(text: str) -> str:
    """Make every ``[redacted:KIND:xxxxxxxx]`` into ``[redacted:KIND]``, so that texts of two runs can be compared."""
    if "redacted:" not in text:
        return text
    return REPLACED.sub(lambda match: f"{match[0][: match.end(1) - match.start()]}{match[0][match.end(1) - match.start() + 9 :]}", text)


def _unescaped(secret: str) -> str:
    """Undo JSON escapes, however often they were applied, so that a secret has one digest at every depth."""
    for _ in range(4):
        if "\\" not in secret:
            break
        try:
            secret = json.loads(f'"{secret}"')
        except ValueError:
            break
    return secret


def _outer_first(span: Span) -> tuple[int, int]:
    return span.start, -span.end

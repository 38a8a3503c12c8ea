"""The bodies of the ``HTTPError`` of urllib that a step has raised: what has come of one is kept with the step's end, the rest as it comes.

urllib raises when it has the headers. Nobody but the agent waits for the body, and only if it reads it; what it reads, a replay gives it.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from spanreplay.boundary.writing import Writing, lossy_in
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.content.urllib_bodies import Arriving, Rest, hold
from spanreplay.content.urllib_errors import LACKS, is_http_error
from spanreplay.semconv import attributes as names

_CAUSES: Final = 5


class Held(NamedTuple):
    """A body that had not come when its step ended."""

    depth: int
    """Of how many errors the one with it is a cause."""
    arriving: Arriving
    rest: Rest


def hold_bodies(error: BaseException) -> list[Held]:
    """Let an error, and each of its causes, keep what has come of its body and what the agent will read of it; nothing is waited for.

    Returns:
        The bodies that have not come yet.
    """
    held: list[Held] = []
    at: BaseException | None = error
    for depth in range(_CAUSES):
        if at is None:
            break
        if is_http_error(type(at)):
            with suppress(Exception):  # telemetry never breaks the agent, and what else is known of the error is worth more
                _hold(getattr(at, "fp", None), depth, held)
        at = at.__cause__
    return held


def _hold(response: Any, depth: int, held: list[Held]) -> None:
    from http.client import HTTPResponse

    if type(response) is not HTTPResponse or response.fp is None:
        return
    arriving = hold(response)
    if arriving is not None:
        rest = arriving.rest(response)
        if not arriving.body(rest)[1]:
            held.append(Held(depth, arriving, rest))


class LateBodies:
    """Tells a sink of the bodies of an error that come after its step has ended.

    Args:
        error: typed JSON text of the error, with what had come.
        attributes: of the step's end.
        writing: of the step.
        amend: tells the sink.
    """

    def __init__(self, error: str, attributes: Mapping[str, Any], writing: Writing, amend: Callable[[Mapping[str, Any]], None]) -> None:
        self._error = json.loads(error)
        self._lossy = lossy_in(attributes) if names.STEP_LOSSY in attributes else None
        self._writing = writing
        self._amend = amend

    def follow(self, held: list[Held]) -> None:
        """Hear of these."""
        for depth, arriving, rest in held:
            arriving.follow(rest, partial(self._came, depth))

    def _came(self, depth: int, body: bytes, whole: bool) -> None:
        kept = self._error["v"]
        for _ in range(depth):
            kept = kept["cause"]["v"]
        kept["http"]["content"] = json.loads(codec.encode(body).text)
        if whole and self._lossy is not None:
            place = ".".join(["__cause__"] * depth)
            gone = {f"{names.STEP_ERROR} ({place}{', ' * bool(depth)}{lack})" for lack in LACKS}
            self._lossy = [name for name in self._lossy if name not in gone]
        redacted = self._writing.redacted
        had_secrets = redacted.pop(names.STEP_ERROR, 0) > 0
        amended = {names.STEP_ERROR: self._writing.typed(names.STEP_ERROR, codec.dump(self._error))}
        if self._lossy is not None:
            amended[names.STEP_LOSSY] = canonical_json(self._lossy)
        if redacted or had_secrets:
            amended[names.STEP_REDACTED] = canonical_json(redacted)
        self._amend(amended)

"""Which exchange is a further attempt of which: a client library that sends the same request again does so from the same place.

A request to another server is another call, whatever it says: a client that falls back to a second provider starts anew there.
"""

from typing import Final, cast

from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content.canonical import digest
from spanreplay.semconv import attributes as names

RETRIED_STATUS: Final = frozenset({408, 409, 429})
"""With every 5xx, what the SDKs of model APIs send again (``_should_retry`` of openai 3 and anthropic 2)."""

_MEMO: Final = "http.failed"
_REMEMBERED: Final = 64
"""Failed requests remembered in one scope; one that is sent again is forgotten."""


def is_retried(status: int | None, error: BaseException | None) -> bool:
    """Would a client library send the request again after this end?"""
    if error is not None:
        return isinstance(error, Exception)
    return status is not None and (status in RETRIED_STATUS or status >= 500)


def take(scope: Scope, call: Call) -> tuple[int, str | None]:
    """The number of the attempt that ``call`` is, from 1, and the span id of the attempt before it."""
    failed = _failed(scope)
    before = failed.pop(_key(call), None) if failed else None
    return (1, None) if before is None else (before[0] + 1, before[1])


def remember(step: Step, attempt: int) -> None:
    """The attempt failed; the same request from the same scope is the next one."""
    failed = _failed(step.scope)
    while len(failed) >= _REMEMBERED:
        failed.pop(next(iter(failed), ""), None)
    failed[_key(step.call)] = (attempt, step.span_id)


def _failed(scope: Scope) -> dict[str, tuple[int, str]]:
    return cast("dict[str, tuple[int, str]]", scope.memo.setdefault(_MEMO, {}))


def _key(call: Call) -> str:
    place = f"{call.attributes.get(names.SERVER_ADDRESS)}:{call.attributes.get(names.SERVER_PORT)}"
    return digest(f"{call.kind}\n{place}\n{call.name}\n{call.input.text if call.input is not None else ''}")

"""LlamaIndex: a tool that waits for an event raises ``WaitingForEvent``, and is called again when there is one.

The exception holds the class of the event, which no record keeps: while it passes the Boundary, it holds the name of the class.
"""

import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from spanreplay.boundary.boundary import acall
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope

_EVENTS: Final = "workflows.events"


async def acall_or_wait(scope: Scope, call: Call, invoke: Callable[[], Awaitable[Any]]) -> Any:
    """As :func:`spanreplay.boundary.boundary.acall`, for a tool that may wait for an event.

    Args:
        scope: where the call is made.
        call: the call.
        invoke: makes it.
    """
    told: list[type] = []

    async def body() -> Any:
        try:
            return await invoke()
        except Exception as error:
            add = getattr(error, "add", None)
            event = getattr(add, "event_type", None)
            if is_wait(error) and isinstance(event, type):
                told.append(event)
                object.__setattr__(add, "event_type", repr(event))
            raise

    try:
        return await acall(scope, call, body)
    except Exception as error:
        add = getattr(error, "add", None)
        name = getattr(add, "event_type", None)
        if is_wait(error) and isinstance(name, str):
            event = told[0] if told else _event(name)
            if event is not None:
                object.__setattr__(add, "event_type", event)
        raise


def is_wait(error: BaseException) -> bool:
    """Whether a tool has raised this to be called again when there is an event."""
    return type(error).__name__ == "WaitingForEvent"


def _event(name: str) -> type | None:
    """The class of events of this name, looked for among those that there are."""
    return next((found for found in _below(vars(sys.modules.get(_EVENTS, object)).get("Event")) if repr(found) == name), None)


def _below(base: object) -> Iterator[type]:
    waiting, seen = [base] if isinstance(base, type) else [], set[type]()
    while waiting:
        found = waiting.pop()
        if found not in seen:
            seen.add(found)
            yield found
            waiting += type.__subclasses__(found)

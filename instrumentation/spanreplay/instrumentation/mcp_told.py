"""What an MCP server tells its client while a request of it is open: how far it is, what it logs, that its tools have changed.

The client's callbacks for that are the agent's own code. So what came is kept with the request, and told again, in its order, where a
replay answers it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from spanreplay.boundary.scope import Scope
from spanreplay.content import codec

Message: TypeAlias = Mapping[str, Any]
"""``{"method", "params"}`` of a notification, or ``{"progress": arguments}`` of a callback that was called with them."""

_TOLD: Final = "told"


class Told:
    """What is told while one request is open, see :class:`spanreplay.boundary.call.Held`.

    Args:
        tell: in a replay, given each message of the record.
        early: what came before the request, when none was open.
    """

    __slots__ = ("_tell", "messages")

    def __init__(self, tell: Callable[[Message], object], early: list[Message]) -> None:
        self._tell = tell
        self.messages = early

    def begin(self) -> None:
        """The request is sent."""

    def left(self) -> str | None:
        """The messages, as typed JSON; ``None`` where there are none."""
        return codec.encode({_TOLD: self.messages}).text if self.messages else None

    def change(self, left: str) -> list[str]:
        """Tell again what :meth:`left` kept."""
        for message in codec.decode(left)[_TOLD]:
            self._tell(message)
        return []


def heard(scope: Scope | None, on_progress: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """A callback for the progress of a request that keeps what it is told.

    Args:
        scope: inside the request's step.
        on_progress: the agent's own.
    """
    held = None if scope is None or scope.step is None else scope.step.call.held

    async def progress(*told: Any) -> None:
        if isinstance(held, Told):
            held.messages.append({"progress": list(told)})
        await on_progress(*told)

    return progress

"""Inside a step's body: its scope and its span are the current ones."""

from contextvars import Token
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope

if TYPE_CHECKING:
    from spanreplay.boundary.step import Step


def detach(token: Token[Context]) -> None:
    """Undo an ``attach``, in whatever context this runs.

    The public function logs an error where a generator or coroutine is closed from another context than it ran in.
    """
    try:
        otel_context._RUNTIME_CONTEXT.detach(token)
    except Exception:  # noqa: BLE001 — there is nothing to undo in this context
        return


class Body:
    """Enters a step's scope and makes its span the current one; undone in the same context."""

    __slots__ = ("_otel", "_step", "_token")

    def __init__(self, step: "Step") -> None:
        self._step = step

    def __enter__(self) -> "Step":
        """Enter the step."""
        step = self._step
        self._token: Token[Scope | None] = scopes.enter(step.inner)
        self._otel: Token[Context] = otel_context.attach(step.inner_context)
        return step

    def __exit__(self, *_: object) -> None:
        """Leave the step."""
        scopes.leave(self._token)
        detach(self._otel)

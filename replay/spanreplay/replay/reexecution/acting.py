"""Whether a live call may act, and what of its request is changed on its way."""

from collections.abc import Callable, Sequence
from typing import Any

from spanreplay.boundary.step import Step as LiveStep
from spanreplay.instrumentation.mcp_connections import CONNECT
from spanreplay.replay.isolation.reachable import Address
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution import closed, overrides
from spanreplay.replay.reexecution.ledger import CHANGE, Ledger
from spanreplay.replay.reexecution.policy import RESULT, Policy, PolicyError
from spanreplay.semconv import attributes as names


class Acting:
    """Allows and changes live calls.

    Args:
        policy: what is live.
        runs: those that answer.
        ledger: what is refused is entered there.
        hosts: host and port that model calls may go to; ``None`` for any.
    """

    def __init__(self, policy: Policy, runs: Sequence[Run], ledger: Ledger, hosts: Sequence[Address] | None) -> None:
        self._policy = policy
        self._runs = runs
        self._ledger = ledger
        self._hosts = None if hosts is None else {(host.lower(), port) for host, port in hosts}
        self._connected = False
        """A connection to an MCP server is live."""

    def allow(self, step: LiveStep, expected: Step | None = None) -> None:
        """See that a call may act.

        Args:
            step: the call.
            expected: the recorded step at its place.

        Raises:
            CallRefused: it may not.
        """
        why = closed.why_closed(step, self._policy, self._runs)
        if why is not None:
            raise closed.refused(step, why, self._ledger, expected=expected)
        self._connect(step)
        host = step.call.attributes.get(names.SERVER_ADDRESS)
        if step.call.kind == "model_call" and isinstance(host, str) and self._hosts is not None and not self._policy.finish:
            port = step.call.attributes.get(names.SERVER_PORT)
            if not {(host.lower(), port), (host.lower(), 0)} & self._hosts:
                why = f"the model is asked at {host}:{port}, where the recorded run asked none; to let it: --allow-host {host}:{port}"
                raise closed.refused(step, why, self._ledger, action="connect", expected=expected)

    def _connect(self, step: LiveStep) -> None:
        """A request to an MCP server needs a live connection: one that was answered leads nowhere, and would be waited for for ever."""
        if step.call.kind == "mcp" and step.call.name == CONNECT:
            self._connected = True
        elif not self._connected and names.MCP_METHOD_NAME in step.call.attributes:
            where = "whose connection was answered from the record; begin at the step that connects, or before"
            why = f"{step.call.name} is of an MCP server {where}"
            raise closed.refused(step, why, self._ledger, action="connect")

    def change(self, step: LiveStep, on_withdrawn: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Have the request of a model call changed on its way.

        Args:
            step: the call.
            on_withdrawn: called where the request shows that it cannot be; the call is refused then.

        Returns:
            What is changed.

        Raises:
            CallRefused: it cannot be.
        """
        wanted = {key: value for key, value in self._policy.changes.items() if key != RESULT}
        if not wanted or step.call.kind != "model_call":
            return {}
        provider = step.call.attributes.get(names.WIRE_PROVIDER)
        if not isinstance(provider, str):
            why = f"{', '.join(wanted)} of {step.call.name} cannot be changed: it is asked in this process, not over HTTP; change the agent"
            raise closed.refused(step, why, self._ledger, action=CHANGE)
        try:
            made = overrides.rewrite(wanted, provider)
        except PolicyError as error:
            raise closed.refused(step, str(error), self._ledger, action=CHANGE) from error

        def rewritten(target: str, body: bytes) -> tuple[str, bytes]:
            try:
                return made(target, body)
            except PolicyError as error:
                on_withdrawn()
                raise closed.refused(step, str(error), self._ledger, action=CHANGE) from error

        step.rewrite = rewritten
        return wanted

"""A child process goes on with the run of its parent: trace, run and causal path travel in its environment."""

import functools
import os
import subprocess
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from opentelemetry import trace

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.shims.patching import Patches

TRACEPARENT: Final = "TRACEPARENT"
RUN_ID: Final = "SPANREPLAY_RUN_ID"
RUN_PATH: Final = "SPANREPLAY_RUN_PATH"

_patches = Patches()


def put_context(environment: MutableMapping[str, str]) -> None:
    """Write into ``environment`` what a child needs to go on with the run in force here."""
    scope = scopes.current_scope() if scopes.process.active else None
    if scope is None:
        return
    context = trace.get_current_span().get_span_context()
    if not context.is_valid and scope.step is not None:
        context = scope.step.context
    if context.is_valid:
        environment[TRACEPARENT] = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    if scope.run is not None:
        environment[RUN_ID] = scope.run.run_id
    environment[RUN_PATH] = scope.fork("process").path


def _spawning(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
        if scopes.process.active and scopes.current_scope() is not None and len(rest) < 10:  # env is the eleventh
            given = kwargs.get("env")
            environment = dict(os.environ if given is None else given)
            put_context(environment)
            kwargs["env"] = environment
        original(self, args, *rest, **kwargs)

    return __init__


def install() -> None:
    """Patch ``subprocess.Popen``, which run, check_output and asyncio's subprocesses pass."""
    _patches.replace(subprocess.Popen, "__init__", _spawning)


def uninstall() -> None:
    """Undo :func:`install`."""
    _patches.undo()

"""A child process goes on with the run of its parent: trace, run and causal path travel in its environment."""

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

import wrapt
from opentelemetry import trace

from spanreplay.boundary import scope as scopes
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import started
from spanreplay.instrumentation.shims.own_code import caller

TRACEPARENT: Final = "TRACEPARENT"
RUN_ID: Final = "SPANREPLAY_RUN_ID"
RUN_PATH: Final = "SPANREPLAY_RUN_PATH"

_ENV_POSITION: Final = 9
"""Of ``env`` among the arguments of ``Popen`` behind ``args``."""

_SPAWN: Final = "multiprocessing.popen_spawn_posix"
_PREPARING: Final = "multiprocessing.spawn"
_FORK_SERVER: Final = "multiprocessing.popen_forkserver"

ENVIRONMENT: Final = "spanreplay_environment"
"""Key, in what multiprocessing tells a child of the fork server, of the variables that the server does not have."""

_patches = Patches()
_hooked: Final[set[str]] = set()
"""Modules with a post-import hook, which cannot be taken back."""
_complete: Callable[[Mapping[str, str]], dict[str, str]] = dict


def complete_with(function: Callable[[Mapping[str, str]], dict[str, str]] | None) -> None:
    """Give every child's environment to ``function`` first; ``None`` gives it to nobody.

    For the layer that starts recordings: a child can only take part with the variables that start one, whatever environment the
    agent gives it.
    """
    global _complete  # noqa: PLW0603 — process-wide by nature
    _complete = dict if function is None else function


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


def told_in_shell(command: Any) -> Any:
    """A command of ``os.system`` that goes on with the run in force here: it gets the environment of this process, and takes no other."""
    context: dict[str, str] = {}
    put_context(context)
    if os.name != "posix" or not context or not isinstance(command, str | bytes):
        return command
    told = "".join(f"export {name}={shlex.quote(value)}; " for name, value in context.items())
    return told + command if isinstance(command, str) else told.encode() + command


def _child_environment(given: Mapping[Any, Any] | None) -> dict[str, str] | None:
    try:
        made = _complete({os.fsdecode(name): os.fsdecode(value) for name, value in (os.environ if given is None else given).items()})
        put_context(made)
    except Exception:  # noqa: BLE001 — what is odd about an environment is for Popen to say
        return None
    return made


def _spawning(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:  # noqa: N807 — it stands in for one
        if scopes.process.active and scopes.current_scope() is not None:
            positional = len(rest) > _ENV_POSITION
            environment = _child_environment(rest[_ENV_POSITION] if positional else kwargs.get("env"))
            if environment is not None and positional:
                rest = (*rest[:_ENV_POSITION], environment, *rest[_ENV_POSITION + 1 :])
            elif environment is not None:
                kwargs["env"] = environment
        original(self, args, *rest, **kwargs)

    return __init__


def _launching(original: Callable[..., Any]) -> Callable[..., Any]:
    """Multiprocessing's ``spawn`` gives a child the environment of this process, and takes no other."""

    @functools.wraps(original)
    def _launch(self: Any, process_obj: Any) -> Any:
        if not scopes.process.active:
            return original(self, process_obj)
        before = {name: os.environ.get(name) for name in (TRACEPARENT, RUN_ID, RUN_PATH)}
        put_context(os.environ)
        try:
            return original(self, process_obj)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    return _launch


def _preparing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Multiprocessing's fork server has the environment of when it was started, and so have its children."""

    @functools.wraps(original)
    def get_preparation_data(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if scopes.process.active and caller().f_globals.get("__name__") == _FORK_SERVER:
            environment = _child_environment(None) or {}
            made[ENVIRONMENT] = {n: v for n, v in environment.items() if n == TRACEPARENT or n.startswith("SPANREPLAY_")}
        return made

    return get_preparation_data


def _multiprocessing(module: Any) -> None:
    from spanreplay.instrumentation import shims

    if shims._installed and module.__name__ == _SPAWN:
        _patches.replace(module.Popen, "_launch", _launching)
    elif shims._installed:
        _patches.replace(module, "get_preparation_data", _preparing)


def install() -> None:
    """Patch ``subprocess.Popen``, which run, check_output and asyncio's subprocesses pass, and what multiprocessing starts."""
    _patches.replace(subprocess.Popen, "__init__", _spawning)
    for name in (_SPAWN, _PREPARING):
        if name in sys.modules:
            _multiprocessing(sys.modules[name])
        elif name not in _hooked:
            wrapt.register_post_import_hook(_multiprocessing, name)
            _hooked.add(name)
    started.install()


def uninstall() -> None:
    """Undo :func:`install`."""
    started.uninstall()
    _patches.undo()

"""What models have asked for: the link from a model's output to the call that it caused."""

import json
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from spanreplay.boundary.scope import Scope
from spanreplay.boundary.session import RunContext
from spanreplay.boundary.step import Step
from spanreplay.content.canonical import canonical_json

_STATE: Final = "asked"
_SAID: Final = "said"
_KEPT: Final = 1000
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 — another thread may have held it
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Asked(NamedTuple):
    """A tool call that a model asked for."""

    call_id: str | None
    name: str
    arguments: str
    """Canonical JSON."""
    span_id: str
    """The model step that asked."""
    run_id: str
    """The run of that step."""


def ask_for(step: Step, calls: Iterable[tuple[str | None, str, object]]) -> None:
    """Note the tool calls (id, name, arguments as a JSON value) in a model's output."""
    if step.run is None:
        return
    made = [Asked(call_id, name, canonical_json(arguments), step.span_id, step.run.run_id) for call_id, name, arguments in calls]
    if made:
        _wait(step.run, made)
        _know(step.scope, made)


def _wait(run: RunContext, made: Sequence[Asked]) -> None:
    with _lock:
        waiting: list[Asked] = run.state.setdefault(_STATE, [])
        waiting.extend(made)
        del waiting[:-_KEPT]


def _know(scope: Scope, made: Sequence[Asked]) -> None:
    known = scope.session.asked
    with _lock:
        for asked in made:
            if asked.call_id is not None:
                known.pop(asked.call_id, None)
                known[asked.call_id] = asked
        while len(known) > _KEPT:
            del known[next(iter(known))]


def said(step: Step) -> None:
    """Note that a model has answered: what a framework reads out of a text it reads out of the latest answer given there."""
    step.scope.memo[_SAID] = step.span_id


def ask_as_heard(scope: Scope, name: str, arguments: object) -> None:
    """Note a tool call that a framework has read out of a model's text, where the model's API knows nothing of tools.

    Args:
        scope: where the model was asked.
        name: name of the tool.
        arguments: its arguments, a JSON value.
    """
    span_id = scope.memo.get(_SAID)
    if scope.run is not None and isinstance(span_id, str):
        _wait(scope.run, [Asked(None, name, canonical_json(arguments), span_id, scope.run.run_id)])


def claim(scope: Scope, name: str, arguments: str, call_id: str | None = None) -> Asked | None:
    """The earliest open request for this very call, now made; where there is none, the one of the same id that it was made for before.

    A call is made again when a framework repeats it, or when a run goes on in which a human was asked: the model asked in the run before.

    Args:
        scope: where the call is made.
        name: name of the tool.
        arguments: its arguments as JSON text.
        call_id: its id, where the framework knows it.
    """
    if scope.run is None:
        return None
    waiting: list[Asked] = scope.run.state.get(_STATE, ())
    if not waiting:
        return _made_before(scope, name, call_id)
    canonical = None if call_id is not None else canonical_json(json.loads(arguments))
    with _lock:
        for asked in waiting:
            if asked.call_id == call_id if call_id is not None else (asked.name == name and asked.arguments == canonical):
                waiting.remove(asked)
                return asked
    return _made_before(scope, name, call_id)


def _made_before(scope: Scope, name: str, call_id: str | None) -> Asked | None:
    asked = None if call_id is None else scope.session.asked.get(call_id)
    return asked if isinstance(asked, Asked) and asked.name == name else None

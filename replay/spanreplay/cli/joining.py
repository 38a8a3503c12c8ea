"""The option of every command that rebuilds runs: what several traces have in common that are one run."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from spanreplay.cli.sections import under

if TYPE_CHECKING:
    from spanreplay.replay.model import Run
    from spanreplay.replay.rebuilding.joins import Join
    from spanreplay.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])

NAMES: Final = ("conversation", "call-id")
"""As :data:`spanreplay.replay.rebuilding.joins.JOINS`, which ``--help`` does not import."""
_KEPT: Final = "spanreplay.join"
_APART_NS: Final = 3600 * 10**9
"""Traces of a store that began further from a run are not looked at for its calls."""
_MOST: Final = 1000


def joining(function: F) -> F:
    """``--join``."""

    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.meta[_KEPT] = value

    text = "Make one run of traces that share a conversation, or of which one holds calls that another asked for."
    option = click.option("--join", type=click.Choice(NAMES), expose_value=False, callback=keep, help=text)
    return cast("F", under("Which runs", option)(function))


def asked_join() -> "Join | None":
    """What was asked for."""
    context = click.get_current_context(silent=True)
    return cast("Join | None", context.meta.get(_KEPT)) if context is not None else None


def traces_to_join(store: "Store", run: "Run", by: "Join") -> Sequence[str]:
    """Traces of a store that may belong to a run: of its session, or that began within an hour of it."""
    if by == "conversation":
        rows = store.find_runs(session=run.session_id, limit=_MOST) if run.session_id is not None else []
    else:
        until = (run.ended_ns or run.started_ns) + _APART_NS
        found = store.find_runs(since_ns=run.started_ns - _APART_NS, limit=_MOST)
        rows = [row for row in found if row.started_ns <= until]
    return list(dict.fromkeys(trace for row in rows for trace in store.traces_of(row.run_id)))

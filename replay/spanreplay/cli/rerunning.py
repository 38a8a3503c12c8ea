"""``--rerun``: the command that a run was recorded in, executed again.

Only one that this user recorded here: a trace of others may name any.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import click

from spanreplay.cli.options import WrongUse, complain
from spanreplay.replay.showing import short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.model import Run
    from spanreplay.store.store import Store

_RECORDED_HERE: Final = frozenset({"recorder", "exporter"})
"""Origins of what this user's own processes wrote, see :class:`spanreplay.store.rows.RunRow`."""


class Recorded(Protocol):
    """Runs that were chosen, and all of their command."""

    @property
    def runs(self) -> "Sequence[Run]": ...  # noqa: D102
    @property
    def siblings(self) -> "Sequence[Run]": ...  # noqa: D102
    @property
    def ours(self) -> bool: ...  # noqa: D102


def recorded_here(store: "Store", run_id: str, command_id: str | None) -> bool:
    """Whether a run, with all of its command, was recorded into this store and not brought to it: imported, or received."""
    rows = store.find_runs(run_id=run_id) if command_id is None else store.find_runs(command_id=command_id)
    return bool(rows) and all(_RECORDED_HERE.issuperset((row.origin or "unknown").split(",")) for row in rows)


def own_command(recorded: Recorded) -> tuple[list[str], str | None]:
    """The command that a run was recorded in, and where.

    Raises:
        WrongUse: the record has none, or it is not this user's.
    """
    if not recorded.ours:
        raise WrongUse("--rerun takes runs of your own store only, that were recorded there; give the command after -- to replay others")
    definition = next((r.definition for r in recorded.siblings if r.is_command and isinstance(r.definition, dict)), None)
    argv = definition.get("argv") if definition else None
    if definition is None or not isinstance(argv, list) or not argv:
        named = "the run" if not recorded.runs else f"run {short_id(recorded.runs[0].run_id)}"
        raise WrongUse(f"{named} has no recorded command; give one after --")
    if "proxy" in definition:
        raise WrongUse(f"the run was recorded from between: spanreplay proxy --replay TARGET -- {shlex.join(map(str, argv))}")
    cwd = definition.get("cwd")
    return [str(word) for word in argv], cwd if isinstance(cwd, str) else None


def confirmed_command(loaded: "Loaded", *, yes: bool) -> tuple[list[str], Path | None]:
    """The recorded command of a TARGET, shown and agreed to.

    Raises:
        WrongUse: there is none, it is not this user's, or it was not agreed to.
    """
    argv, cwd = own_command(loaded)
    complain(f"recorded command: {shlex.join(argv)}" + (f"  (in {cwd})" if cwd else ""))
    if not yes:
        agree("run it again, answered from the record?", "not run; --yes runs it without asking")
    return argv, None if cwd is None else Path(cwd)


def agree(question: str, otherwise: str) -> None:
    """Ask.

    Raises:
        WrongUse: no, or there is nobody to ask.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        raise WrongUse(otherwise)

"""Options of every command that chooses among the recorded runs."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, get_args

import click

from spanreplay.boundary.call import OutcomeName
from spanreplay.cli.sections import under
from spanreplay.cli.when import moment
from spanreplay.replay.model import GRADE_ORDER

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs are wanted: those that meet every one given. As :meth:`spanreplay.store.store.Store.find_runs` takes them."""

    agent: str | None = None
    since_ns: int | None = None
    outcome: str | None = None
    grade: str | None = None
    tool: str | None = None
    session: str | None = None

    def asked(self) -> dict[str, Any]:
        """Those that are given, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


_OPTIONS: Final = (
    click.option("--agent", metavar="NAME", help="Only runs of this agent."),
    click.option("--since", metavar="WHEN", help="Only runs begun since: 30m, 2h, 7d, or a date."),
    click.option(
        "--outcome", type=click.Choice(get_args(OutcomeName)), metavar="OUTCOME", help="Only runs that ended so: ok, error, timeout …"
    ),
    click.option("--grade", type=click.Choice(GRADE_ORDER), help="Only runs of this grade."),
    click.option("--tool", metavar="NAME", help="Only runs that called this tool."),
    click.option("--session", metavar="ID", help="Only runs of this session."),
)


def filtering(function: F) -> F:
    """``--agent``, ``--since``, ``--outcome``, ``--grade``, ``--tool``, ``--session``, given to the command as ``filters``."""

    @functools.wraps(function)
    def gathered(*args: Any, agent: Any, since: str | None, outcome: Any, grade: Any, tool: Any, session: Any, **kwargs: Any) -> Any:
        since_ns = None if since is None else moment(since, "--since")
        filters = Filters(agent=agent, since_ns=since_ns, outcome=outcome, grade=grade, tool=tool, session=session)
        return function(*args, filters=filters, **kwargs)

    return cast("F", under("Which runs", *_OPTIONS)(gathered))

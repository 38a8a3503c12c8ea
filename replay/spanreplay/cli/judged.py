"""Options of every command that judges runs for a CI system: ``--junit`` and ``--github``."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from spanreplay.cli.sections import under
from spanreplay.cli.written_files import write_whole

if TYPE_CHECKING:
    from spanreplay.replay.case import Case

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """What is wanted besides the text."""

    junit: Path | None
    github: bool

    @property
    def asked(self) -> bool:
        """Whether any of it is."""
        return self.github or self.junit is not None

    def write(self, cases: "Sequence[Case]", *, name: str, as_json: bool) -> None:
        """Write them.

        Args:
            cases: in the order wanted.
            name: of the suite.
            as_json: standard output holds one JSON document, so annotations go to standard error, where the runner looks as well.

        Raises:
            WrongUse: the file cannot be written.
        """
        if self.junit is not None:
            from spanreplay.replay.reports import junit

            write_whole(self.junit, junit.write(cases, name=name), folder=True)
        if self.github:
            from spanreplay.replay.reports.github import annotations

            for line in annotations(cases):
                click.echo(line, err=as_json)


def reporting(function: F) -> F:
    """``--junit`` and ``--github``, given to the command as ``reports``."""

    @functools.wraps(function)
    def gathered(*args: Any, junit: Path | None, github: bool, **kwargs: Any) -> Any:
        return function(*args, reports=Reports(junit=junit, github=github), **kwargs)

    junit = click.option(
        "--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML for a CI system to FILE."
    )
    github = click.option("--github", is_flag=True, help="Print annotations for GitHub Actions as well.")
    return cast("F", under("Result", junit, github)(gathered))

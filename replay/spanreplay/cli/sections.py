"""Options under headings, for commands that have many."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import click

Decorator: TypeAlias = Callable[[Any], Any]

_ATTRIBUTE: Final = "section"
_OTHERS: Final = "Options"


def under(heading: str, *options: Decorator) -> Decorator:
    """These options, as one decorator, listed under ``heading`` in the help of a :class:`Sectioned` command, in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
            setattr(function.__click_params__[-1], _ATTRIBUTE, heading)
        return function

    return decorate


class Sectioned(click.Command):
    """A command whose help lists options under their headings: those without one first, then the headings as they come."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them."""
        sections: dict[str, list[tuple[str, str]]] = {_OTHERS: []}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                sections.setdefault(getattr(parameter, _ATTRIBUTE, _OTHERS), []).append(row)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

"""``spanreplay checkout``."""

import shlex
from pathlib import Path

import click

from spanreplay.cli.options import WrongUse, common, complain, many, print_json, print_text, say


@click.command("checkout")
@click.argument("target")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--repository",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A repository that has the commit. Default: the one that was recorded, else the one around the working folder.",
)
@click.option("--without-diff", is_flag=True, help="The commit alone, without what was not committed when the run was recorded.")
@common
def command(target: str, folder: Path, repository: Path | None, without_diff: bool, store: Path | None, as_json: bool) -> None:
    """Lay out the code that a run was recorded with in a new folder.

    That is the commit, as a work tree of git, the changes that were not committed, and the packages as requirements.recorded.txt. Your own
    working tree is not touched; git worktree remove FOLDER takes it away again.

    Exit code: 0 done, 2 it cannot be done, 3 the input cannot be read.

    \b
    spanreplay checkout last ../as-recorded
    """  # noqa: D301
    from spanreplay.cli.target import load
    from spanreplay.replay.reexecution.checkout import CheckoutError, check_out
    from spanreplay.replay.showing import safe

    loaded = load(target, store)
    runs = [*loaded.runs, *loaded.siblings]
    try:
        made = check_out(
            runs,
            folder,
            repositories=[repository] if repository is not None else [Path.cwd()],
            ours=repository is None and loaded.ours,
            without_diff=without_diff,
        )
    except CheckoutError as error:
        raise WrongUse(str(error)) from error
    if as_json:
        print_json({"schema": 1, **made.to_json()})
        return
    print_text(
        safe(f"{made.folder}: commit {made.commit[:12]}" + (f" and {many(len(made.files), 'uncommitted change')}" if made.files else ""))
    )
    for line in made.files:
        print_text(safe(f"  {line}"))
    if made.left_out:
        complain(f"not in the record, as too large: {', '.join(made.left_out)}")
    if made.lock is not None and not made.lock[1]:
        complain(f"{made.lock[0]} is not there as it was when the run was recorded; requirements.recorded.txt has the packages")
    if made.requirements is not None:
        say(f"its packages: pip install -r {shlex.quote(str(made.requirements))}")
    if made.argv:
        say(f"its command: cd {shlex.quote(str(made.cwd))} && {shlex.join(made.argv)}")

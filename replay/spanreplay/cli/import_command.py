"""``spanreplay import``."""

from pathlib import Path

import click

from spanreplay.cli.options import common, print_json, print_text, say, store_path


@click.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@common
def command(sources: tuple[str, ...], store: Path | None, as_json: bool, quiet: bool, verbose: bool) -> None:
    """Read traces into the store. A second import of the same spans changes nothing.

    SOURCE is a file, a folder, or - for standard input; its format is recognised by its content.

    \b
    spanreplay import traces.jsonl
    """  # noqa: D301
    from spanreplay.cli.target import ready_store
    from spanreplay.replay.source import open_source

    path = store_path(store)
    done = []
    with ready_store(path, create=True) as opened_store:
        for source in sources:
            opened = open_source(source)
            added = opened_store.add(opened.records, origin="import")
            done.append((source, opened, added))
    with ready_store(path):
        pass
    if as_json:
        print_json(
            {
                "schema": 1,
                "imports": [
                    {
                        "source": source,
                        "format": opened.format,
                        "new": added.new,
                        "same": added.same,
                        "changed": added.changed,
                        "rejected": added.rejected + opened.report.rejected,
                        "fidelity": list(opened.report.fidelity),
                    }
                    for source, opened, added in done
                ],
            }
        )
        return
    for source, opened, added in done:
        rejected = added.rejected + opened.report.rejected
        print_text(
            f"{source} ({opened.format}): {added.new} new, {added.same} known already, {added.changed} changed"
            + (f", {rejected} rejected" if rejected else "")
        )
        for warning in opened.report.warnings():
            say(f"  {warning}", quiet=quiet)

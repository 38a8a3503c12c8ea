"""What ``-v`` tells about runs beyond their steps."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spanreplay.cli.options import detail, many
from spanreplay.replay.model import Json, Run
from spanreplay.replay.reasons import untaped
from spanreplay.replay.showing import short, short_id

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded


def about(loaded: "Loaded") -> None:
    """Say, with ``-v``, what is known of the runs as wholes."""
    for run in loaded.runs:
        for line in facts(run, loaded.runs):
            detail(f"run {short_id(run.run_id)}: {line}")


def facts(run: Run, runs: "Sequence[Run]") -> Iterator[str]:
    """What is known of a run as a whole, a line each; ``runs`` are all that were read with it."""
    from spanreplay.replay.reexecution.missing_state import is_kept

    yield f"id {run.run_id}, in {many(len(run.trace_ids), 'trace')}: {', '.join(run.trace_ids)}"
    if run.command_id is not None:
        yield f"of the recorded command {run.command_id}"
    for name, seen in run.versions.to_json().items():
        named = dict.fromkeys(_named(entry) for entry in seen) if isinstance(seen, list) else {}
        if named:
            yield f"{name} in use: {', '.join(named)}"
    for item in run.untaped:
        if isinstance(item, dict) and not is_kept([r for r in runs if r.command_id == run.command_id], item):
            yield untaped(item)
    if run.dropped:
        yield f"{many(run.dropped, 'record')} could not be kept while it was recorded"
    if run.orphan_spans:
        yield f"{many(run.orphan_spans, 'span')} whose parent is not here"


def _named(entry: Json) -> str:
    if not isinstance(entry, dict):
        return short(entry)
    words = [str(entry[key]) for key in ("name", "request", "version") if entry.get(key)]
    return " ".join(words) or short(entry)

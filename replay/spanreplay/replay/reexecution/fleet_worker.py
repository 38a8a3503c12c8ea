"""A worker of :mod:`spanreplay.replay.reexecution.fleet`: a line of JSON in, a command re-executed, a line of JSON out."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from spanreplay.replay.rebuilding.behaviour import behaviour_hash
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reexecution.command import CommandMissing, replay_command
from spanreplay.replay.reexecution.options import Options
from spanreplay.replay.reports.verdict import render_verdict
from spanreplay.spans import otlp_json

_SAID: Final = 8_000
"""Bytes of a command's output that are kept, its end."""
_TEXT: Final = 20_000
"""Characters of the verdict for people."""
_MOST: Final = 50
"""Entries of each list in a verdict."""


def main() -> None:
    """Answer until there is nothing more to read."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing but answers goes there
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    with suppress(BrokenPipeError):  # nobody waits for it any more
        for line in sys.stdin:
            out.write(json.dumps(_done(json.loads(line))) + "\n")
            out.flush()


def _done(asked: Mapping[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        try:
            found = _executed(asked, said)
        except CommandMissing as error:
            found = {"exit_code": 125, "failed": str(error)}
        except Exception as error:  # noqa: BLE001 — one of many: the others go on
            found = {"exit_code": 125, "failed": f"{type(error).__name__}: {error}"}
        return {**found, "seconds": time.monotonic() - began, "said": _end_of(said)}


def _executed(asked: Mapping[str, Any], said: IO[bytes]) -> dict[str, Any]:
    path = Path(asked["recording"])
    records = list(otlp_json.decode(json.loads(path.read_text(encoding="utf-8")), path.name))
    path.unlink()
    runs = [run for run in build_runs(records) if run.run_id in asked["runs"]]
    done = replay_command(
        runs,
        records,
        asked["argv"],
        focus=asked["focus"],
        options=Options.from_json(asked["options"]),
        cwd=None if asked["cwd"] is None else Path(asked["cwd"]),
        output=said,
        errors=said,
        stdin=subprocess.DEVNULL,
        limit=asked["limit"],
    )
    if done.overran and done.verdict.exit_code in (0, 125):  # else what it had done until then tells enough
        return {"exit_code": 125, "failed": f"no end after {asked['limit']:g} s; --limit says how long a run may take"}
    return {
        "exit_code": done.verdict.exit_code,
        "command_exit_code": done.exit_code,
        "verdict": _bounded(done.verdict.to_json()),
        "text": render_verdict(done.verdict, done.runs, colour=False)[:_TEXT],
        "behaviours": {run.run_id: behaviour_hash(run) for run in runs if run.run_id in asked["named"]},
    }


def _bounded(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict of which whoever collects thousands keeps little: the first of what there can be one of for each step."""
    for holder, name in (
        (verdict, "differences"),
        (verdict, "refusals"),
        (verdict, "notices"),
        (verdict, "inside_answered"),
        (verdict["steps"], "unreached"),
    ):
        holder[name] = holder[name][:_MOST]
    return verdict


def _end_of(said: IO[bytes]) -> str:
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - _SAID))
    return said.read().decode("utf-8", "replace")


if __name__ == "__main__":
    main()

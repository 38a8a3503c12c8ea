"""Recordings that lie in a repository beside the tests that use them: one file of OTLP JSON, written to be compared line by line.

A recording that is replaced by one of another behaviour keeps the decision to accept that, where readers of OTLP ignore it::

    "spanreplay": {"schema": 1, "decisions": [{"when": "2026-11-29T22:48:19Z", "who": "ana", "why": "…", "replaces": "sha256:…"}]}

``replaces`` is the digest of the file that was there before; the oldest decision comes first.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from spanreplay.instrumentation.shims import randomness
from spanreplay.recording import control
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.model import Run
from spanreplay.replay.outgoing import of_runs
from spanreplay.replay.rebuilding.behaviour import behaviour_hash, numbered
from spanreplay.replay.rebuilding.runs import build_runs, index
from spanreplay.replay.reexecution.diff import differences
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record
from spanreplay.store.holds import whoami
from spanreplay.store.store import Store

_INDENT: Final = 1
_KEY: Final = "spanreplay"
_NAMED: Final = 3


class NothingRecorded(Exception):  # noqa: N818 — reads as what happened
    """A recording has no step, or was made inside another one."""


class BehaviourChanged(Exception):  # noqa: N818 — reads as what happened
    """A recording would be replaced by one of another behaviour, and nobody has said why."""


@dataclass(slots=True)
class Baseline:
    """What was recorded in a block."""

    runs: list[Run] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@contextmanager
def recorded() -> Iterator[Baseline]:
    """Record everything that this process does in the block; what is yielded is filled at its end, also when the block fails.

    Raises:
        NothingRecorded: this process is being recorded or replayed already.
    """
    if control.status().recording:
        raise NothingRecorded("this process is being recorded already: record the tests alone, without spanreplay record around them")
    made = Baseline()
    with tempfile.TemporaryDirectory(prefix="spanreplay-") as folder, randomness.untouched():
        control.start(store=folder, seed_random=True)
        try:
            yield made
        finally:
            control.stop()
            made.records = _records(Path(folder))
            made.runs = [run for run in build_runs(made.records) if run.steps]


def recorded_in(folder: Path) -> Baseline:
    """What is in a store."""
    records = _records(folder)
    return Baseline(runs=[run for run in build_runs(records) if run.steps or run.is_command], records=records)


def _records(path: Path) -> list[Record]:
    with Store.open(path, create=True) as store:
        store.compact()
        index(store)
        with store.reading():
            traces = sorted({trace for row in store.find_runs() for trace in store.traces_of(row.run_id)})
            return [*store.traces(traces), *store.logs(traces)]


def read(path: Path) -> list[Run]:
    """The runs of a file, in the order they began.

    Raises:
        UnreadableSource: it is not there, or holds no traces.
    """
    return build_runs(open_source(str(path)).records)


def decisions(path: Path) -> list[dict[str, Any]]:
    """The decisions that are kept in a recording, the oldest first.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON.
    """
    found = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    kept = found.get(_KEY) if isinstance(found, dict) else None
    made = kept.get("decisions") if isinstance(kept, dict) else None
    return [one for one in made if isinstance(one, dict)] if isinstance(made, list) else []


def write(path: Path, records: Sequence[Record], runs: Sequence[Run], *, reason: str | None = None) -> bool:
    """Write runs to a file, whole or not at all.

    A file that has them already, under other ids and times, stays as it is.

    Args:
        path: the file.
        records: what the runs were rebuilt from.
        runs: the runs.
        reason: why another behaviour than that of the file is right now.

    Returns:
        Whether it was written.

    Raises:
        NothingRecorded: there is no run.
        BehaviourChanged: the file has runs of another behaviour, and there is no reason.
        UnreadableSource: there is a file that holds no traces, and no reason.
        OSError: the file cannot be written.
    """
    if not any(run.steps for run in runs):
        raise NothingRecorded(f"{path} is not written: no model or tool call was made")
    kept = [] if reason is None else [_decision(reason, None)]
    if path.exists():
        before = _read_before(path, reason)
        changed = before is None or list(_changes(before, runs))
        if not changed and before is not None and _places(before) == _places(runs):
            return False
        if changed and reason is None:
            raise BehaviourChanged("\n".join(changed if isinstance(changed, list) else ()))
        kept = _decisions_if_any(path)
        if changed and reason is not None:
            kept.append(_decision(reason, path.read_bytes()))
    document = otlp_json.encode(of_runs(records, runs)) | ({_KEY: {"schema": 1, "decisions": kept}} if kept else {})
    text = json.dumps(document, indent=_INDENT, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="surrogatepass")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return True


def _read_before(path: Path, reason: str | None) -> list[Run] | None:
    try:
        return read(path)
    except UnreadableSource:
        if reason is None:
            raise
        return None


def _decision(reason: str, replaced: bytes | None) -> dict[str, Any]:
    digest = None if replaced is None else f"sha256:{sha256(replaced).hexdigest()}"
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), "who": whoami(), "why": reason, "replaces": digest}


def _decisions_if_any(path: Path) -> list[dict[str, Any]]:
    try:
        return decisions(path)
    except ValueError:
        return []


def _places(runs: Sequence[Run]) -> list[list[str | None]]:
    """Where in the program each step was made: what a replay looks for, and no part of the behaviour."""
    return [[step.path for step in run.steps] for run in _own(runs)]


def _own(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.steps]


def _changes(before: Sequence[Run], now: Sequence[Run]) -> Iterator[str]:
    """What runs do otherwise than others did, for people: nothing where their behaviour is equal."""
    old, new = _own(before), _own(now)
    if [behaviour_hash(run) for run in old] == [behaviour_hash(run) for run in new]:
        return
    if len(old) != len(new):
        yield f"{len(old)} runs were recorded, now there are {len(new)}"
    for left, right in zip(old, new, strict=False):
        if behaviour_hash(left) == behaviour_hash(right):
            continue
        found = list(differences(_plain(left), _plain(right)))
        if not found:
            yield "the same steps, inside of others than before"
        for one in found[:_NAMED]:
            was, now_is = one.texts()[:2]
            yield f"{one.path}: was {was}, now {now_is}"
        if len(found) > _NAMED:
            yield f"and {len(found) - _NAMED} more differences"


def _plain(run: Run) -> dict[str, Any]:
    """A run by its steps, so that a path in it reads well: ``step 2 tool_call price.input.arguments.item``."""
    ids: dict[str, str] = {}
    steps = {
        f"step {step.seq} {step.kind} {step.name}": {
            "input": numbered(step.input, ids) if step.kind == "model_call" else step.input,
            "output": numbered(step.output, ids) if step.kind == "model_call" else step.output,
            "error": step.error,
            "outcome": step.outcome,
        }
        for step in run.steps
    }
    return {"input": run.input, **steps, "output": run.output, "outcome": run.outcome}

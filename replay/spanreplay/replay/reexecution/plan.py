"""What a replayed command is given: the recording and what it may do, as files in the replay's scratch folder.

::

    SCRATCH/plan.json        {"schema": 1, "runs": [run ids], "focus": [run ids], "join": null,
                             "options": as in spanreplay.replay.reexecution.options, "announce": bool}
    SCRATCH/code.json        the working tree that the command is started from, as spanreplay.run.code; or null
    SCRATCH/recording.json   the spans and log records of these runs, as OTLP JSON
    SCRATCH/claims/          what of the record each process has taken, see spanreplay.replay.reexecution.claims
    SCRATCH/ledgers/         one ledger a process, see spanreplay.replay.reexecution.ledger
    SCRATCH/ends/            marks of processes that were stopped, see spanreplay.replay.reexecution.ending
    SCRATCH/tmp/             the command's TMPDIR
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanreplay.replay.model import Json, Run
from spanreplay.replay.rebuilding.joins import Join
from spanreplay.replay.reexecution.options import STRICT, Options
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record

ENVIRONMENT: Final = "SPANREPLAY_PLAN"
"""Names the scratch folder to the processes of a replayed command."""

CLAIMS: Final = "claims"
LEDGERS: Final = "ledgers"
ENDS: Final = "ends"
TEMPORARY: Final = "tmp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a replayed command may do, and which runs answer it."""

    runs: tuple[str, ...]
    focus: tuple[str, ...] = ()
    """The runs that were asked for; empty where all of them were."""
    options: Options = STRICT
    join: Join | None = None
    """What made one run of several traces, see :func:`spanreplay.replay.rebuilding.runs.build_runs`."""
    announce: bool = False
    """The first process says what has changed since the runs were recorded."""
    schema: int = 1


def lay_out(scratch: Path, plan: Plan, records: Iterable[Record], code: Json = None) -> None:
    """Write a plan and its recording into an empty scratch folder.

    Args:
        scratch: the folder.
        plan: the plan.
        records: what the runs are rebuilt from.
        code: the present working tree, as ``spanreplay.run.code``.
    """
    (scratch / CLAIMS).mkdir()
    (scratch / LEDGERS).mkdir()
    (scratch / ENDS).mkdir()
    (scratch / TEMPORARY).mkdir()
    found = {"schema": plan.schema, "runs": plan.runs, "focus": plan.focus, "join": plan.join, "options": plan.options.to_json()}
    found["announce"] = plan.announce
    (scratch / "plan.json").write_text(json.dumps(found), encoding="utf-8")
    (scratch / "code.json").write_text(json.dumps(code), encoding="utf-8")
    (scratch / "recording.json").write_text(json.dumps(otlp_json.encode(records)), encoding="utf-8")


def read_plan(scratch: Path) -> Plan:
    """Read the plan back."""
    found = json.loads((scratch / "plan.json").read_text(encoding="utf-8"))
    return Plan(
        runs=tuple(found["runs"]),
        focus=tuple(found["focus"]),
        options=Options.from_json(found["options"]),
        join=found["join"],
        announce=found["announce"],
    )


def read_code(scratch: Path) -> Json:
    """The working tree that the command was started from."""
    return json.loads((scratch / "code.json").read_text(encoding="utf-8"))


def read_recording(scratch: Path, plan: Plan) -> Sequence[Run]:
    """Rebuild the runs that the plan names from the recording beside it."""
    from spanreplay.replay.rebuilding.runs import build_runs

    document = json.loads((scratch / "recording.json").read_text(encoding="utf-8"))
    runs = build_runs(otlp_json.decode(document, "recording.json"), join=plan.join)
    return [run for run in runs if run.run_id in plan.runs]

"""Runs as the stable JSON of the command line (schema 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from spanreplay.replay.model import SCHEMA, Json, Run
from spanreplay.replay.reading.fields import strict
from spanreplay.replay.rebuilding.behaviour import behaviour_hash


def document(runs: Sequence[Run], *, format: str, spans: int, fidelity: Sequence[Mapping[str, Any]] = ()) -> dict[str, Json]:  # noqa: A002 — its name in the JSON
    """The document of ``spanreplay replay TARGET --json``.

    Args:
        runs: the runs, in order.
        format: name of the format that they were read from.
        spans: how many spans were read.
        fidelity: what the format cannot hold, each with ``code``, ``detail`` and ``spans``.

    Returns:
        ``{"schema": 1, "source": {…}, "runs": […]}``, strict JSON: a number that JSON has no notation for is its name as text.
    """
    source = {"format": format, "spans": spans, "fidelity": [dict(entry) for entry in fidelity]}
    made: dict[str, Json] = strict(
        {"schema": SCHEMA, "source": source, "runs": [{**run.to_json(), "behaviour": behaviour_hash(run)} for run in runs]}
    )
    return made

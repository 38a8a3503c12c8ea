"""OTLP JSON: one document that every OTLP reader takes."""

import json
from collections.abc import Sequence
from typing import Final

from spanreplay.replay.model import Run
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record

NAME: Final = "otlp-json"
BINARY: Final = False
LOGS: Final = True


def write(records: Sequence[Record], runs: Sequence[Run]) -> bytes:
    """One line of ASCII."""
    del runs
    return (json.dumps(otlp_json.encode(records), ensure_ascii=True) + "\n").encode("ascii")

"""``make bench``: prints every ratio; writes them to ``bench-results.json``."""

import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench import cases, conversations, fleets, frameworks, imports, large_store, mlflow_ingest, phoenix_ingest, writing
from bench.adapters import Overheads, adapters
from bench.conversations import Times
from bench.measure import Rate, Ratio
from bench.rivals import Comparison, rivals

CASES: Final[tuple[Callable[[], Ratio | Rate | Times | Comparison | Overheads], ...]] = (
    cases.off,
    cases.seen_content,
    cases.small_span,
    cases.foreign_span,
    cases.new_content,
    cases.model_step,
    cases.stubbed_tools,
    cases.help_time,
    imports.import_json,
    imports.import_reading,
    imports.import_rows,
    imports.import_deriving,
    imports.import_histories,
    imports.derive_long,
    imports.import_writing,
    imports.import_json_small,
    imports.import_proto,
    imports.import_proto_small,
    writing.on_the_thread,
    writing.on_the_thread_without_fast,
    writing.on_the_thread_as_it_is,
    writing.on_the_thread_simple,
    writing.to_the_end,
    writing.to_the_end_floor,
    writing.executemany,
    mlflow_ingest.mlflow_ingest,
    phoenix_ingest.phoenix_ingest,
    writing.writers_at_once,
    writing.writers_stall,
    conversations.size_50,
    conversations.load_50,
    conversations.size_200,
    conversations.load_200,
    large_store.one_run,
    large_store.runs_command,
    large_store.show_command,
    fleets.fleet_workers,
    frameworks.replay_openai_agents,
    frameworks.replay_pydantic_ai,
    frameworks.replay_langgraph,
    rivals,
    adapters,
)


def main() -> None:
    """Measure what the arguments name, or everything."""
    wanted = sys.argv[1:]
    results: list[dict[str, object]] = []
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        found = case()
        cases.deactivate()
        results.append(found.to_json())
        print(found.line(), flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "spanreplay": version("spanreplay")}
    document = {"schema": 1, "machine": machine, "results": results}
    Path("bench-results.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


main()

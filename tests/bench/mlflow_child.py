"""Records spans with mlflow into a SQLite database of its own, a round for each line that comes in; says what a span took."""

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

mlflow: Final[Any] = importlib.import_module("mlflow")  # in an environment of its own; no checker knows it here


def main(folder: Path) -> None:
    """Rounds of runs, until there are no more lines."""
    given = json.loads((folder / "attributes.json").read_text(encoding="utf-8"))
    per_run = int(sys.argv[2])
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("bench")
    for number, _ in enumerate(sys.stdin):
        start = time.process_time()
        for first in range(0, len(given), per_run):
            with mlflow.start_span("agent") as root:
                root.set_attributes({**given[first], "round": number})
                for attributes in given[first + 1 : first + per_run]:
                    with mlflow.start_span("step") as span:
                        span.set_attributes({**attributes, "round": number})
        mlflow.flush_trace_async_logging()
        print((time.process_time() - start) / len(given) * 1e6, flush=True)


main(Path(sys.argv[1]))

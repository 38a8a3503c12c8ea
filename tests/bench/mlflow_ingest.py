"""What keeping a span takes, against mlflow, which keeps it in SQLite: in an environment of its own, on the same spans."""

import json
import sqlite3
import statistics
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.conversations import Times
from bench.writing import RUN, attributes, ours
from support.environments import environment
from support.size import FULL

_PAIRS: Final = 30 if FULL else 3
_RUNS: Final = 1
"""Runs that mlflow records in a round, which takes it about as long as ours takes for 64."""
_HERE: Final = Path(__file__).parent


def mlflow_ingest() -> Times:
    """CPU of the process from the first span to the last one in the database, a span; the two in turn."""
    name = "CPU of a span, mlflow into SQLite / recorded and loaded into the database"
    try:
        python = environment("bench-mlflow", _HERE / "mlflow.txt", checkout=False) / "bin" / "python"
    except (subprocess.CalledProcessError, OSError) as error:
        return Times(name=name, goal=20, median=0, other=0, ours=0, unit="us", note=f"skipped: mlflow cannot be installed here ({error})")
    theirs, mine = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder, ours(load=True) as keep:
        (Path(folder) / "attributes.json").write_text(json.dumps(attributes()[: _RUNS * RUN]), encoding="utf-8")
        command = [str(python), str(_HERE / "mlflow_child.py"), folder, str(RUN)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            for _ in range(_PAIRS + 1):
                child.stdin.write("\n")
                child.stdin.flush()
                theirs.append(float(child.stdout.readline()))
                start = time.process_time()
                spans = keep()
                mine.append((time.process_time() - start) / spans * 1e6)
            child.stdin.close()
        with closing(sqlite3.connect(Path(folder) / "mlflow.db")) as connection:
            ((kept,),) = connection.execute("SELECT count(*) FROM spans").fetchall()
        assert kept == (_PAIRS + 1) * _RUNS * RUN, f"mlflow kept {kept} spans"
    ratios = sorted(other / own for other, own in zip(theirs[1:], mine[1:], strict=True))
    return Times(
        name=name,
        goal=20,
        median=statistics.median(ratios),
        other=statistics.median(theirs[1:]),
        ours=statistics.median(mine[1:]),
        unit="us",
        note=f"{_PAIRS} pairs, from {ratios[0]:.1f} to {ratios[-1]:.1f}; the first ones left out",
    )

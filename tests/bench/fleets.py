"""``replay --all``: one worker and two over the same batch, in turn."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.conversations import Times
from spanreplay.replay.outgoing import of_runs
from spanreplay.replay.reexecution import baseline
from spanreplay.replay.reexecution.fleet import Job, executed
from spanreplay.replay.reexecution.options import STRICT
from spanreplay.spans import otlp_json
from support.size import FULL

AGENT = """
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    return {"x": x}

with agent_run("looker", input="q") as run:
    run.output = [look(n) for n in range(50)]
"""
BATCH = 24 if FULL else 8
ROUNDS = 5 if FULL else 3


def fleet_workers() -> Times:
    """How much sooner two workers are done than one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT)
        command = [sys.executable, "agent.py"]
        line = [sys.executable, "-m", "spanreplay", "record", "-q", "--store", str(folder / "store"), "--", *command]
        subprocess.run(line, cwd=folder, check=True)
        made = baseline.recorded_in(folder / "store")
        recording = json.dumps(otlp_json.encode(of_runs(made.records, made.runs)))

        def seconds(workers: int) -> float:
            jobs = []
            for number in range(BATCH):
                file = folder / f"{number}.json"
                file.write_text(recording)
                runs = tuple(run.run_id for run in made.runs)
                jobs.append(
                    Job(
                        number=number,
                        agents=(),
                        runs=runs,
                        named=runs,
                        focus=(),
                        recording=file,
                        argv=tuple(command),
                        cwd=name,
                        options=STRICT.to_json(),
                    )
                )
            began = time.perf_counter()
            for result in executed(jobs, workers):
                assert result.exit_code == 0, f"{result.message()}\n{result.said}"
            return time.perf_counter() - began

        seconds(2)
        pairs = [(seconds(1), seconds(2)) for _ in range(ROUNDS)]
    return Times(
        name="replay --all: two workers over one",
        goal=1.8,
        median=statistics.median(one / two for one, two in pairs),
        other=statistics.median(one for one, _ in pairs) / BATCH * 1e3,
        ours=statistics.median(two for _, two in pairs) / BATCH * 1e3,
        unit="ms a run",
        note=f"{BATCH} runs, {ROUNDS} rounds of each, {os.cpu_count()} cores; other load on the machine makes it less",
    )

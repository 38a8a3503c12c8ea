"""A server that records before it forks its workers, as gunicorn does with --preload: master and workers write, side by side."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spanreplay.replay.rebuilding.runs import index, load_run
from spanreplay.store.store import Store

SERVER = """
import os, signal, sys, threading, time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool
trace.set_tracer_provider(TracerProvider())
recording.start(store=sys.argv[1])

@tool(effect="write")
def work(who, number):
    with trace.get_tracer("app").start_as_current_span(f"inner {who}"):
        return f"{who} {number} " + "same for all " * 200

@tool(effect="irreversible")
def die():
    os.kill(os.getpid(), signal.SIGKILL)

def serve(who):
    def request(number):
        with agent_run(who, input=str(number)) as run:
            work(who, 2 * number)
            run.output = work(who, 2 * number + 1)
    threads = [threading.Thread(target=request, args=(number,)) for number in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

serve("master before")
workers = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        serve(f"worker {number}")
        if number == 2:
            with agent_run("dying"):
                die()
        recording.stop()
        os._exit(0)
    workers.append(pid)
serve("master after")
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_master_and_workers_record_each_run_once_and_whole(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    told = {name: value for name, value in os.environ.items() if not name.startswith(("SPANREPLAY_", "OTEL_"))}
    done = subprocess.run([sys.executable, script, tmp_path / "store"], env=told, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[0, 0, -9]"), done.stderr
    store = Store.open(tmp_path / "store")
    report = store.compact()
    assert (report.crc_errors, report.dropped, report.rejected, report.refused) == (0, 0, 0, [])
    index(store)
    runs = store.find_runs()
    served = [run for run in runs if run.agent not in ("dying", None) and not run.is_command]
    names = ["master before", "master after", "worker 0", "worker 1", "worker 2"]
    assert sorted(str(run.agent) for run in served) == sorted(4 * names)
    for run in served:
        number = json.loads(str(run.input))
        steps = [step for step in load_run(store, run.run_id).steps if step.kind == "tool_call"]
        assert run.outcome == "ok"
        assert [str(step.output)[: str(step.output).index("same")] for step in steps] == [
            f"{{'result': '{run.agent} {2 * int(number) + more} " for more in (0, 1)
        ]
    (dying,) = (run for run in runs if run.agent == "dying")
    assert [(name, effect) for _, _, name, effect in store.unsettled([dying.run_id])] == [("die", "irreversible")]
    written = dict(store.query("SELECT name, count(*) FROM spans WHERE name LIKE 'inner %' GROUP BY ALL").rows)
    assert written == {f"inner {name}": 8 for name in names}, "spans of others too"
    assert list(store.query("SELECT count(*) FROM span_versions").rows) == [(0,)]

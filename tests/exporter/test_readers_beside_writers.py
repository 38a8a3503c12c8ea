"""Who reads while others write waits his turn, and sees each run as it had come so far: no lock error, no gap."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spanreplay.store.store import Store
from support.size import FULL

WRITERS = 8 if FULL else 3
RUNS = 60 if FULL else 6
OF_A_RUN = 30 if FULL else 12
READERS = 3 if FULL else 2

WRITER = f"""
    import sys
    from pathlib import Path
    from spanreplay.spans.record import SpanRecord
    from spanreplay.store.journal import get_writer
    writer, me = get_writer(Path(sys.argv[1])), int(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    for run in range({RUNS}):
        for n in range({OF_A_RUN}):
            trace, at = f"{{me + 1:016x}}{{run + 1:016x}}", 10**18 + run * 10**6 + n
            said = f"{{me}} {{run}} {{n}} " * (200 if n % 3 == 0 else 1)
            writer.write_span(SpanRecord(trace_id=trace, span_id=f"{{n + 1:016x}}", name="a", start_ns=at, end_ns=at + 1,
                attributes={{"said": said, "gen_ai.operation.name": "chat"}}), "recorder")
    writer.close()
"""
READER = """
    import sys
    from pathlib import Path
    from spanreplay.replay.rebuilding.runs import index
    from spanreplay.store.store import Store
    store = Store.open(Path(sys.argv[1]))
    done, rounds, known = False, 0, {}
    print("ready", flush=True)
    sys.stdin.readline()
    while not done:
        done = Path(sys.argv[2]).exists()
        store.compact()
        index(store)
        runs = store.find_runs()
        with store.reading():
            loaded = list(store.traces([trace for run in runs for trace in run.trace_ids]))
        for run in runs:
            places = [int(span.span_id, 16) for span in loaded if span.trace_id == run.run_id]
            assert places == list(range(1, len(places) + 1)), (run.run_id, places)
            assert len(places) >= known.get(run.run_id, 1), (run.run_id, places)
            known[run.run_id] = len(places)
        rows = store.query("SELECT run_id, n_steps, (SELECT count(*) FROM steps WHERE steps.run_id = runs.run_id) FROM runs").rows
        assert all(said == there for _, said, there in rows)
        rounds += 1
    print(rounds, len(known), set(known.values()))
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(900 if FULL else 120)
def test_readers_beside_writers_never_see_a_lock_or_half_a_run(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    written = tmp_path / "written"
    started = [*(start(WRITER, store.path, n) for n in range(WRITERS)), *(start(READER, store.path, written) for _ in range(READERS))]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate() for process in started[:WRITERS]]
    written.touch()
    told += [process.communicate() for process in started[WRITERS:]]
    assert [process.returncode for process in started] == [0] * len(started), [errors for _, errors in told if errors]
    assert list(store.query("SELECT count(*), count(DISTINCT trace_id) FROM spans").rows) == [(WRITERS * RUNS * OF_A_RUN, WRITERS * RUNS)]
    for output, _ in told[WRITERS:]:
        rounds, runs, sizes = output.split(" ", 2)
        assert int(rounds) >= 1
        assert (int(runs), sizes.strip()) == (WRITERS * RUNS, f"{{{OF_A_RUN}}}"), "in the end all of them, whole"

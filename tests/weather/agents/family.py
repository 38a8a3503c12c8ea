"""An agent whose tools run in threads, forks and child processes of every kind; ``family.py`` prints what came of them.

``family.py child NAME`` is one of the children. Nothing of the tests is imported: a child may have no PYTHONPATH.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Literal

from spanreplay.instrumentation import agent_run, tool


@tool(effect="read")
def note(where: str) -> str:
    """A call that says where it was made."""
    return where


@tool(effect="write")
def die(how: str) -> None:
    """A call that never comes back."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(5)


@tool(effect="unknown")
def delegate(to: str) -> int:
    """A call that starts a process."""
    environment: dict[str, str] | None = {} if to == "clean" else None
    return subprocess.run([sys.executable, __file__, "child", to], env=environment, check=True, stdout=subprocess.DEVNULL).returncode


def forked(where: str, how: str = "") -> int:
    """A plain fork."""
    child = os.fork()
    if child == 0:
        note(where)
        if how:
            die(how)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def processed(method: Literal["fork", "spawn", "forkserver"]) -> int | None:
    """A process of multiprocessing."""
    process = multiprocessing.get_context(method).Process(target=note, args=(method,))  # type: ignore[attr-defined]
    process.start()
    process.join()
    return int(process.exitcode)


def main() -> None:
    """Everything once."""
    seen: list[object] = []
    with agent_run("family") as run:
        seen.append(note("main"))
        thread = threading.Thread(target=note, args=("thread",))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            seen += pool.map(note, ["pool 1", "pool 2"])
        seen.append(forked("fork"))
        seen += [processed("fork"), processed("spawn"), processed("forkserver")]
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
            seen.append(pool.submit(note, "process pool").result())
        seen += [delegate("inherited"), delegate("clean")]
        seen += [forked("before the kill", "killed"), forked("before the exit", "left")]
        run.output = seen
    print(json.dumps(seen))


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        note(f"child {sys.argv[2]}")
    else:
        if "START" in os.environ:
            from spanreplay import recording

            recording.start(store=os.environ["START"])
        main()

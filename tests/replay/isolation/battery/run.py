"""Runs acts, each in a copy of this process, which is fresh: ``run.py HOW WORLDS``, with the worlds as JSON.

HOW is ``started`` where whatever is to stop them was put in force before this program began; ``hook`` or ``kernel`` where the guard is
armed here, after what an act opens before. Prints one JSON object a line: first ``{"open": [what this process has open]}``, then for each
act ``{"act", "raised", "confessed", "named", "took"}``.
"""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[3])

from replay.isolation.battery.registry import ACTS, CONFESSED, Act, World, load  # noqa: E402

PATIENCE_S = 20
SCRATCH = Path(os.environ.get("SPANREPLAY_PLAN") or os.environ["TMPDIR"])


def ledgers() -> dict[Path, int]:
    """How long they are."""
    return {file: file.stat().st_size for file in (SCRATCH / "ledgers").glob("*.ledger")}


def entries(before: dict[Path, int]) -> list[Any]:
    """What has been entered since."""
    found = []
    for file in (SCRATCH / "ledgers").glob("*.ledger"):
        with file.open("rb") as lines:
            lines.seek(before.get(file, 0))
            found += [json.loads(line) for line in lines]
    return [entry for entry in found if entry["entry"] in ("refused", "notice", "difference", "telemetry")]


def main() -> None:
    """Run every act for which there is a world."""
    print(json.dumps({"open": sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")[:-1])}), flush=True)
    how, worlds = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    load()
    if how != "started":
        import spanreplay.replay.isolation.guard
        import spanreplay.replay.isolation.naming  # noqa: F401 — once, and not in each copy
    for name, told in worlds.items():
        world = World(**{**told, "out": Path(told["out"]), "scratch": SCRATCH / "tmp"})
        before, began = ledgers(), time.monotonic()
        read, write = os.pipe()
        pid = copy()
        if pid == 0:
            signal.alarm(PATIENCE_S)
            raised = attempt(ACTS[name], world, how)
            os.write(write, json.dumps({"raised": raised, "confessed": bool(CONFESSED)}).encode())
            os.kill(os.getpid(), signal.SIGKILL)  # nothing more may run
        os.close(write)
        _, status = os.waitpid(pid, 0)
        said = json.loads(os.read(read, 10_000) or json.dumps({"raised": f"ended with {status}", "confessed": False}))
        os.close(read)
        print(json.dumps({"act": name, **said, "named": entries(before), "took": time.monotonic() - began}), flush=True)


def copy() -> int:
    """Fork as ``os.fork`` does, which a guard refuses."""
    python, libc = ctypes.pythonapi, ctypes.CDLL(None)
    python.PyOS_BeforeFork()
    pid: int = libc.fork()
    python.PyOS_AfterFork_Child() if pid == 0 else python.PyOS_AfterFork_Parent()
    return pid


def attempt(act: Act, world: World, how: str) -> str:
    """What it raised."""
    sys.stdin = open(os.devnull)
    try:
        handle = () if act.before is None else (act.before(world),)
        if how in ("hook", "kernel"):
            arm(how)
        act.run(world, *handle)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "nothing"


def arm(how: str) -> None:
    """Guard this process as a replay would."""
    from spanreplay.replay.isolation import kernel, naming
    from spanreplay.replay.isolation.guard import Guard
    from spanreplay.replay.reexecution.ledger import Ledger

    ledger = Ledger(SCRATCH / "ledgers" / f"{os.getpid()}.ledger")
    if how == "kernel":
        kernel.confine([SCRATCH], naming.HandOver(SCRATCH))
    Guard(scratch=SCRATCH, on_refusal=ledger.refuse).arm_process()


if __name__ == "__main__":
    main()

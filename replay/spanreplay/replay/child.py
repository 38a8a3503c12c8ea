"""Inside a replayed command: begin to answer its calls from the record before its first line runs.

Loaded by the start-up shim through the entry point group ``spanreplay_bootstrap``.
"""

import atexit
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from spanreplay.boundary import session as sessions
from spanreplay.boundary.session import RunContext
from spanreplay.recording import plugins
from spanreplay.replay.engine import ISOLATION, replay_session
from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.refusal import Refusal
from spanreplay.replay.ledger import Ledger
from spanreplay.replay.plan import ENVIRONMENT, LEDGERS, TEMPORARY, read_plan, read_recording


def start() -> None:
    """Begin the replay that the environment describes. Does nothing where it describes none."""
    folder = os.environ.get(ENVIRONMENT)
    if folder is None:
        return
    scratch = Path(folder)
    plan = read_plan(scratch)
    ledger = Ledger(scratch / LEDGERS / f"{os.getpid()}-{os.urandom(4).hex()}.ledger")
    session, _ = replay_session(read_recording(scratch, plan), ledger)
    command = RunContext(run_id="replay", name="command", fallback=True)
    plugins.install("auto")
    sessions.activate(session.root(command, os.environ.get("SPANREPLAY_RUN_PATH", "")))
    ledger.enter("started", pid=os.getpid(), argv=sys.orig_argv, isolation=ISOLATION if plan.guard else "none")
    if not plan.guard:
        return
    tempfile.tempdir = str(scratch / TEMPORARY)
    sys.dont_write_bytecode = True

    def enter(refusal: Refusal) -> None:
        ledger.enter("refused" if refusal.fatal else "notice", **{k: str(v) for k, v in asdict(refusal).items()})

    guard = Guard(scratch=scratch, allow_write=[Path(p) for p in plan.allow_write], on_refusal=enter)

    def leave() -> None:
        dropped = guard.telemetry_dropped
        if dropped:
            ledger.enter("telemetry", count=dropped)

    atexit.register(leave)
    guard.arm_process()

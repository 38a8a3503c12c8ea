"""``python -m conformance.host DRIVER``: has the SDKs and the driver loaded, and does the jobs on standard input, each in a new process.

Those of a :class:`Driver` are forked, so that importing the SDKs is paid once; those of a :class:`CommandDriver` are commands.
"""

import gc
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from conformance import warm
from conformance.child import play
from conformance.driver import CommandDriver, Driver, NoDriver, Replayed, load
from conformance.program import ENDED
from conformance.scenario import Scenario, scenarios
from conformance.world import Job

TIMEOUT: Final = 30.0
"""Seconds after which a recording or a replay is taken for one that does not end."""


def main() -> None:
    """Say who is tested, then do jobs until there are no more; of each, say whether it ended by itself."""
    try:
        driver = load(Path(sys.argv[1]))
        known = scenarios()
        sdks = {name: version(name) for name in ("openai", "anthropic")}
        said = {"name": driver.name, "version": driver.version(), "mode": driver.mode, "cannot": dict(driver.cannot)}
    except Exception as error:  # a driver file is anybody's
        print(json.dumps({"failed": _why(error)}), flush=True)
        return
    print(json.dumps({**said, "python": platform.python_version(), "sdks": sdks}), flush=True)
    if not isinstance(driver, CommandDriver):
        warm.up()
        driver.warm_up()
        gc.freeze()  # the forks need not look at it, and share it
    for line in sys.stdin:
        job = Job.from_json(json.loads(line))
        ended = _commanded(job, driver) if isinstance(driver, CommandDriver) else _forked(job, driver, known[job.scenario])
        print(json.dumps({"ended": ended}), flush=True)


def _why(error: Exception) -> str:
    """In a line, with the line of the driver file where there is one."""
    if isinstance(error, PackageNotFoundError):
        return f"{error.name} is not installed for {sys.executable}"
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == sys.argv[1]]
    where = f" (line {places[-1].lineno})" if places else ""
    return f"{error}" if isinstance(error, NoDriver) else f"it fails: {type(error).__name__}: {error}{where}"


def _forked(job: Job, driver: Driver, scenario: Scenario) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null, err = os.open(os.devnull, os.O_RDWR), os.open(job.err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for standard, opened in ((0, null), (1, err), (2, err)):
                os.dup2(opened, standard)
            os.chdir(job.folder)
            play(job, driver, scenario)
            code = 0
        finally:
            os._exit(code)  # threads that still run are no reason to wait
    given_up = time.monotonic() + TIMEOUT
    while time.monotonic() < given_up:
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            return True
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def _commanded(job: Job, driver: CommandDriver) -> bool:
    folder = Path(job.folder)
    told = folder / "job.json"  # the same name both times, since it is a part of the command
    told.write_text(json.dumps(job.to_json()), encoding="utf-8")
    command = [sys.executable, "-m", "conformance.program", str(told)]
    argv = driver.replay_command(command, folder) if job.replay else driver.record_command(command, folder)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    try:
        done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return False
    Path(job.err).write_text(done.stdout + done.stderr, encoding="utf-8")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(ENDED)]
    replayed = Replayed(**json.loads(lines[-1].removeprefix(ENDED))) if lines else Replayed()
    if job.replay:
        replayed.differences = driver.told(done.returncode, done.stdout, done.stderr, folder)
    if not lines:
        replayed.error = f"the program did not come to its end, exit code {done.returncode}"
    Path(job.result).write_text(json.dumps(asdict(replayed)), encoding="utf-8")
    return True


if __name__ == "__main__":
    main()

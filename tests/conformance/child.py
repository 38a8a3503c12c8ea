"""One recording or replay, in the process that does it."""

import asyncio
import functools
import inspect
import json
from dataclasses import asdict
from pathlib import Path

from conformance.driver import Driver, Program, Replayed
from conformance.scenario import Scenario
from conformance.world import Job, World

_SHOWN = 400


def program(scenario: Scenario, world: World) -> Program:
    """The scenario's program as a function without arguments."""
    if inspect.iscoroutinefunction(scenario.program):
        return functools.wraps(scenario.program)(lambda: asyncio.run(scenario.program(world)))
    return functools.wraps(scenario.program)(lambda: scenario.program(world))


def described(error: BaseException) -> str:
    """An exception in a line; of a group, what is in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:_SHOWN]


def play(job: Job, driver: Driver, scenario: Scenario) -> None:
    """Record or replay, and write how it ended to the job's file."""
    run = program(scenario, World(job, driver))
    folder = Path(job.folder)
    try:
        if job.replay:
            replayed = driver.replay(run, folder, scenario.needs)
        else:
            replayed = Replayed(value=driver.record(run, folder, scenario.needs))
    except BaseException as error:
        replayed = Replayed(error=described(error))
    Path(job.result).write_text(json.dumps(asdict(replayed)), encoding="utf-8")

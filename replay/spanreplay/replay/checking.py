"""Checks of recorded runs: a function of the user's looks at the steps of a run, and says whether they are as they should be.

A check takes a :class:`~spanreplay.replay.model.Run`; one whose only argument is named ``steps`` takes the run's steps. What it gives:

========================================  =====================================================================================
``None``, ``True``                        passed
``False``                                 failed
a number                                  a score; passed where it is as high as it has to be, or nothing is asked of it; from 0 to 1
                                          where a lowest score is asked for
``{"passed", "score", "detail"}``         each of them optional
========================================  =====================================================================================

An ``AssertionError`` is a failure, with its text; any other exception means that nothing could be judged.
"""

import importlib.util
import inspect
import linecache
import math
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final

from spanreplay.replay.case import Case, Ended
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.behaviour import behaviour_hash
from spanreplay.replay.showing import short_id

_KEYS: Final = frozenset({"passed", "score", "detail"})
_STEPS: Final = "steps"


class NoCheck(Exception):  # noqa: N818 — reads as what is wrong
    """A check cannot be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A function to judge runs by."""

    name: str
    function: Callable[..., Any]
    of_steps: bool
    """It takes the steps, and not the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a check said of a run."""

    check: str
    run: Run
    ended: Ended
    score: float | None = None
    detail: str = ""
    where: str | None = None
    """``file:line`` of what failed in the check."""

    def to_json(self) -> dict[str, Any]:
        """A row of ``spanreplay evaluate --json``."""
        return {
            "run_id": self.run.run_id,
            "agent": self.run.agent_name,
            "check": self.check,
            "result": self.ended,
            "score": self.score,
            "detail": self.detail,
            "where": self.where,
            "behaviour": behaviour_hash(self.run),
        }

    def case(self) -> Case:
        """For CI systems."""
        score = {} if self.score is None else {"score": self.score}
        return Case(
            group=self.check,
            name=f"run {short_id(self.run.run_id)}" + (f" {self.run.agent_name}" if self.run.agent_name else ""),
            ended=self.ended,
            word=self.ended,
            message=self.detail,
            where=self.where,
            properties={"run": self.run.run_id, "behaviour": behaviour_hash(self.run), **score},
        )


def load_check(reference: str) -> Check:
    """The check that a text names.

    Args:
        reference: ``FILE.py:FUNCTION``. The file is executed, as Python would; its folder is where it imports from.

    Raises:
        NoCheck: there is no such file or function, it is no plain function, or the file fails.
    """
    file, colon, name = reference.rpartition(":")
    path = Path(file)
    if not colon or not name.isidentifier() or path.suffix != ".py":
        raise NoCheck(f"wanted FILE.py:FUNCTION, found {reference!r}")
    if not path.is_file():
        raise NoCheck(f"there is no file {file}")
    function = getattr(_module(path), name, None)
    if not callable(function):
        raise NoCheck(f"{file} has no function {name}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise NoCheck(f"{name} of {file} is an async def; a check is a plain function, which may call asyncio.run")
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return Check(name=name, function=function, of_steps=len(parameters) == 1 and parameters[0].name == _STEPS)


class _AsItIs(SourceFileLoader):
    """Neither takes nor leaves compiled code beside the file: its time has seconds, and the file may just have been changed."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _module(path: Path) -> Any:
    name = f"spanreplay_check_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsItIs(name, str(path)))
    if spec is None or spec.loader is None:
        raise NoCheck(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise NoCheck(f"{path} fails: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def judge(check: Check, run: Run, *, at_least: float | None = None) -> Judgement:
    """Ask a check about a run; what it raises is a part of the answer.

    Args:
        check: the check.
        run: the run.
        at_least: the lowest score that passes, where the check gives one.
    """
    try:
        given = check.function(run.steps if check.of_steps else run)
        if inspect.iscoroutine(given):
            given.close()  # else Python warns that nobody awaits it
        ended, score, detail = _read(given, at_least)
    except AssertionError as error:
        where, line = _last_line(error)
        return Judgement(check=check.name, run=run, ended="failed", detail=str(error) or line, where=where)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — whatever the check raises, an exit too: the others are judged
        where, _ = _last_line(error)
        return Judgement(check=check.name, run=run, ended="error", detail=f"{type(error).__name__}: {error}", where=where)
    if ended == "failed":
        return Judgement(check=check.name, run=run, ended=ended, score=score, detail=detail or "the check gave False", where=_begins(check))
    return Judgement(check=check.name, run=run, ended=ended, score=score, detail=detail)


def _begins(check: Check) -> str | None:
    """``file:line`` of a check."""
    code = getattr(inspect.unwrap(check.function), "__code__", None)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _read(given: object, at_least: float | None) -> tuple[Ended, float | None, str]:
    passed: object = None
    score: object = None
    detail = ""
    if isinstance(given, Mapping) and given.keys() <= _KEYS:
        passed, score, detail = given.get("passed"), given.get("score"), str(given.get("detail") or "")
    elif isinstance(given, bool) or given is None:
        passed = given
    elif isinstance(given, int | float):
        score = given
    else:
        raise TypeError(f"a check gives None, True, False, a score, or a dict of passed, score and detail; it gave {type(given).__name__}")
    number = float(score) if isinstance(score, int | float) else None
    if number is not None and not math.isfinite(number):
        raise ValueError(f"a score is a finite number; it is {number}")
    if at_least is not None and number is not None and not 0 <= number <= 1:
        raise ValueError(f"a score that is to be {at_least:g} at least is one from 0 to 1; it is {number:g}")
    if passed is not None:
        return ("passed" if passed else "failed"), number, detail
    if at_least is not None and number is not None and number < at_least:
        return "failed", number, detail or f"score {number:g}, wanted {at_least:g} at least"
    return "passed", number, detail


def _last_line(error: BaseException) -> tuple[str | None, str]:
    """``file:line`` of the innermost place outside this module, and its text."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    if not frames or frames[-1].lineno is None:
        return None, ""
    return f"{frames[-1].filename}:{frames[-1].lineno}", linecache.getline(frames[-1].filename, frames[-1].lineno).strip()

"""spanreplay inside a process, as its pytest plugin and its ``Replayer`` do it."""

import contextlib
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.driver import HASH_SEED, Difference, Driver, Program, Replayed
from spanreplay.instrumentation import tool
from spanreplay.recording import plugins
from spanreplay.replay import Replayer
from spanreplay.replay.reexecution import baseline


class InProcess(Driver):
    """A file of OTLP JSON, ``@tool``, and nothing else."""

    name = "spanreplay (in process)"
    package = "spanreplay"
    mode = "pytest's `record_run` and `replay_run`: a file, and `Replayer`"
    cannot = {HASH_SEED: "inside a process whose hash seed is chosen already"}

    def warm_up(self) -> None:
        importlib.import_module("duckdb")
        for package in ("instrumentation", "exporter", "recording", "store", "replay"):
            for module in pkgutil.walk_packages(importlib.import_module(f"spanreplay.{package}").__path__, f"spanreplay.{package}."):
                if "_site" not in module.name:
                    with contextlib.suppress(ImportError):  # of an extra
                        importlib.import_module(module.name)
        plugins.install("auto", shortcuts=True).uninstall()  # what is looked for in thousands of modules has been looked for

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return tool(effect="irreversible" if acts else "read")(function)

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        with baseline.recorded() as made:
            value = program()
        baseline.write(folder / "run.json", made.records, made.runs)
        return value

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        ended: list[str] = []
        result = Replayer(baseline.read(folder / "run.json")).replay(lambda: ended.append(program()))
        told = [Difference(text=d.summary(), step=d.step, field=d.field) for d in result.differences]
        told += [Difference(text=str(r["text"])) for r in result.verdict.refusals]
        error = "the program was stopped" if result.error is None else f"{type(result.error).__name__}: {result.error}"
        return Replayed(value=ended[0] if ended else None, error=None if ended else error, differences=told)


DRIVER = InProcess()

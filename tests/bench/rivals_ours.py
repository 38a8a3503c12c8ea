"""spanreplay on the toy run, used as its own documentation says."""

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.rivals_contenders import Body, Contender, Replayed
from bench.rivals_toy import RUNS, Way
from spanreplay import recording
from spanreplay.boundary.session import RunContext, entered
from spanreplay.cli.target import Loaded, load
from spanreplay.instrumentation import agent_run, tool
from spanreplay.recording import plugins
from spanreplay.replay.reexecution import answering
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.replay.reexecution.ledger import Ledger
from support.size import FULL

ONCE: Final = 7
"""How often what is paid once is measured."""
BYTES_RUNS: Final = 50
"""Runs that the bytes of a store are divided by."""
MANY: Final = (1_000, 5_000) if FULL else (100, 500)
"""Runs between which what each takes is measured, once a store is no longer small."""


class Ours(Contender):
    """``recording.start()``, ``agent_run``, ``@tool``; ``Replayer`` on a loaded run, guard on."""

    name = "spanreplay"
    distribution = "spanreplay"
    loaded: Loaded
    """What was read last, with everything that was recorded of it."""

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return tool(effect="irreversible" if acts else "read")(function)

    def _store(self) -> Path:
        return self.folder / f"store-{next(self.numbers)}"

    def _run(self, body: Body) -> Any:
        with agent_run("toy") as run:
            run.output = value = body()
        return value

    @contextmanager
    def _recording(self, run: Body, store: Path) -> Iterator[Body]:
        recording.start(store=store)
        try:
            yield run
        finally:
            recording.stop()

    @contextmanager
    def _replaying(self, run: Body) -> Iterator[Body]:
        """With the transports in place, and out again afterwards, so that nobody else pays for them."""
        installed = plugins.install("auto", shortcuts=True)
        try:
            yield run
        finally:
            installed.uninstall()

    def ways(self, body: Body) -> list[Way]:
        value, run = self.record(body)

        def again() -> None:
            result = Replayer(run).replay(lambda: self._run(body))
            assert result.equal, result.verdict
            assert result.value == value

        @contextmanager
        def prepared() -> Iterator[Body]:
            sessions = iter([answering.prepared([run], Ledger()).session for _ in range(RUNS)])

            def once() -> None:
                with entered(next(sessions).root(RunContext(run_id="replay", name="replay", fallback=True))):
                    self._run(body)

            with self._replaying(once):
                yield once

        return [
            Way(tool=self.name, what="record", prepare=lambda: self._recording(lambda: self._run(body), self._store())),
            Way(tool=self.name, what="replay", prepare=lambda: self._replaying(again)),
            Way(tool=self.name, what="replay, session prepared", prepare=prepared),
        ]

    def once(self, body: Body) -> dict[str, float]:
        starts: list[float] = []
        first: list[float] = []
        later: list[float] = []
        for _ in range(ONCE):
            store = self._store()
            starts.append(_spent(functools.partial(recording.start, store=store)))
            self._run(body)
            starts[-1] += _spent(recording.stop)
            first.append(_spent(functools.partial(self._load, store)))
            later.append(_spent(functools.partial(self._load, store)))
        found = {"recording.start() and stop()": starts, "reading a new run, database made": first, "reading it again": later}
        return {what: statistics.median(spent) for what, spent in found.items()}

    def record(self, body: Body) -> tuple[Any, Any]:
        store = self._store()
        with self._recording(body, store):
            value = self._run(body)
        return value, self._load(store)

    def _load(self, store: Path) -> Any:
        loaded = load("last", store)
        self.loaded = loaded
        return loaded.one()

    def replay(self, kept: Any, body: Body, *, concurrent: bool = False) -> Replayed:
        return self._answered(Replayer(kept), body)

    def from_step(self, kept: Any, body: Body) -> Replayed:
        acting = sorted({step.name for step in kept.steps if step.effect not in (None, "read")})
        return self._answered(Replayer(kept, store=self._store()).fork(at=2, allow_effect=acting, target="bench"), body)

    def _answered(self, replayer: Replayer, body: Body) -> Replayed:
        ended: list[bool] = []

        def watched() -> Any:
            value = self._run(body)
            ended.append(True)
            return value

        with self._replaying(watched):
            result = replayer.replay(watched)
        told = [d.summary().partition(": recorded ")[0].partition("; nearest ")[0] for d in result.differences]
        told += [str(r.get("action", r.get("text"))) for r in result.verdict.refusals]
        why = told[0] if told else type(result.error).__name__
        return Replayed(value=result.value, stopped=None if ended else why, reported=told)

    def evidence(self, kept: Any) -> list[Any]:
        wires = [step.wire for step in kept.steps if step.wire is not None]
        bodies = [[w.request_body.decode(), w.response_body.decode(), w.request_headers, w.response_headers] for w in wires]
        return [kept.to_json(), bodies, [[dict(r.attributes), dict(r.resource.attributes)] for r in self.loaded.records]]

    def bytes_per_run(self, body: Body) -> dict[str, float]:
        store = self._store()
        with self._recording(body, store):
            self._run(body)
            first = _size(store)
            for _ in range(BYTES_RUNS):
                self._run(body)
            journal = (_size(store) - first) / BYTES_RUNS
        self._load(store)
        some = _size(store) / (BYTES_RUNS + 1)
        store, sizes = self._store(), []
        for more in (MANY[0], MANY[1] - MANY[0]):
            with self._recording(body, store):
                for _ in range(more):
                    self._run(body)
            self._load(store)
            sizes.append(_size(store))
        return {
            "journal, first run of a process": first,
            "journal, each further run": journal,
            f"database, one of {BYTES_RUNS + 1} runs": some,
            f"database, each run from the {MANY[0]}th to the {MANY[1]}th": (sizes[1] - sizes[0]) / (MANY[1] - MANY[0]),
        }


def _spent(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

"""obzerve: ``observer.instrument()``, ``@observer.replayable``; its bundle is kept in a file, where its users have a server."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from obzerve import Observer, SpanKind  # type: ignore[import-not-found]
from obzerve.replay import RECORDED, ReplayBundle, bundle_from_spans  # type: ignore[import-not-found]
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from conformance.driver import STREAMS, Difference, Driver, Program, Replayed


class Obzerve(Driver):
    """Policy RECORDED; spans go to memory, and its own ``bundle_from_spans`` makes of them what its server would."""

    name = "obzerve"
    package = "obzerve"
    mode = "`instrument()`, `@replayable`, policy `RECORDED`; `bundle_from_spans()` in the place of its server"
    cannot = {
        STREAMS: "streamed responses are not recorded for replay (its README)",
    }

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._made: Observer | None = None

    @property
    def observer(self) -> Any:
        """Made in the process that uses it."""
        if self._made is None:
            self._made = Observer(exporter=self._spans, service_name="conformance")
            self._made.instrument(huggingface_hub=False, transformers=False)
        return self._made

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return self.observer.replayable(kind=SpanKind.TOOL, side_effect=acts)(function)  # type: ignore[no-any-return]

    def record(self, program: Program, folder: Path, needs: frozenset[str]) -> str:
        value = self._traced(program)
        self.observer.flush()
        bundle = asdict(bundle_from_spans(self._spans.get_finished_spans()))
        bundle["recordings"] = list(bundle["recordings"].values())
        (folder / "bundle.json").write_text(json.dumps(bundle), encoding="utf-8")
        return value

    def replay(self, program: Program, folder: Path, needs: frozenset[str]) -> Replayed:
        bundle = ReplayBundle.from_json(json.loads((folder / "bundle.json").read_text(encoding="utf-8")))
        done = Replayed()
        with self.observer.replay(bundle, RECORDED) as session:
            try:
                done.value = self._traced(program)
            except Exception as error:
                done.error = f"{type(error).__name__}: {error}"
        done.differences = [Difference(text=f"divergences: {key}") for key in session.divergences]
        return done

    def _traced(self, program: Program) -> str:
        with self.observer.trace("conformance") as trace:
            value = program()
            trace.set_output(value)
        return value


DRIVER = Obzerve()

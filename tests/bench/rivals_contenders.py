"""Each tool, used as its own documentation says, behind one face."""

import importlib
import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from bench.rivals_toy import Way, World

Body = Callable[[], Any]


@dataclass(slots=True, kw_only=True)
class Replayed:
    """What a replay did."""

    value: Any = None
    stopped: str | None = None
    """Why the agent did not come to its end."""
    reported: list[str] = field(default_factory=list)
    """Differences it told of."""

    @property
    def verdict(self) -> str:
        """Refused, reported, or served silently."""
        if self.stopped is not None:
            return f"refused ({self.stopped})"
        return f"reported ({self.reported[0]})" if self.reported else "served silently"


class Contender:
    """What all have: a name, decorated tools, a recording, a replay."""

    name: ClassVar[str]
    distribution: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = itertools.count()
        self.version = version(self.distribution)

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        """The function as a tool; ``acts`` when it has a side effect."""
        raise NotImplementedError

    def tools(self, world: World) -> dict[str, Callable[..., Any]]:
        """The toy's two tools."""
        return {"get_weather": self.tool(world.get_weather, acts=False), "send_email": self.tool(world.send_email, acts=True)}

    def ways(self, body: Body) -> list[Way]:
        """What is timed."""
        raise NotImplementedError

    def record(self, body: Body) -> tuple[Any, Any]:
        """Record ``body``; its value, and what was kept of it."""
        raise NotImplementedError

    def replay(self, kept: Any, body: Body, *, concurrent: bool = False) -> Replayed:
        """Run ``body`` answered from what was kept."""
        raise NotImplementedError

    def evidence(self, kept: Any) -> list[Any]:
        """Everything that was kept, as JSON values."""
        raise NotImplementedError

    def bytes_per_run(self, body: Body) -> dict[str, float]:
        """Bytes by where they are."""
        raise NotImplementedError

    def once(self, body: Body) -> dict[str, float]:
        """What is paid once and not for every run: CPU milliseconds by what it is."""
        return {}

    def from_step(self, kept: Any, body: Body) -> Replayed | None:
        """The first step from the record, the others live; ``None`` where there is no such thing."""
        return None


class AgentRewind(Contender):
    """Decorated tools, ``patch_openai()``, one file a run; strict matching, and ``parallel`` for concurrent calls, as its README says."""

    name = "agent-rewind"
    distribution = "agent-rewind"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rewind = importlib.import_module("rewind")

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return self.rewind.tool(function)  # type: ignore[no-any-return]

    @contextmanager
    def _patched(self, run: Body) -> Iterator[Body]:
        undo = self.rewind.patch_openai()
        try:
            yield run
        finally:
            undo()

    def _file(self) -> Path:
        return self.folder / f"{next(self.numbers)}.rewind"

    def ways(self, body: Body) -> list[Way]:
        def record() -> None:
            with self.rewind.record(self._file()):
                body()

        def replay() -> None:
            with self.rewind.replay(kept):
                body()

        _, kept = self.record(body)
        return [
            Way(tool=self.name, what="record", prepare=lambda: self._patched(record)),
            Way(tool=self.name, what="replay", prepare=lambda: self._patched(replay)),
        ]

    def record(self, body: Body) -> tuple[Any, Path]:
        kept = self._file()
        with self._patched(body), self.rewind.record(kept):
            return body(), kept

    def replay(self, kept: Path, body: Body, *, concurrent: bool = False) -> Replayed:
        return self._guarded(lambda: self.rewind.replay(kept, match="parallel" if concurrent else "strict"), body)

    def from_step(self, kept: Path, body: Body) -> Replayed:
        return self._guarded(lambda: self.rewind.fork(kept, at=1), body)

    def _guarded(self, open_session: Callable[[], AbstractContextManager[Any]], body: Body) -> Replayed:
        done = Replayed()
        with warnings.catch_warnings(record=True) as told, self._patched(body):
            warnings.simplefilter("always")
            try:
                with open_session():
                    done.value = body()
            except Exception as error:
                done.stopped = type(error).__name__
        done.reported = [w.category.__name__ for w in told if w.category.__module__.startswith("rewind")]
        return done

    def evidence(self, kept: Path) -> list[Any]:
        return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]

    def bytes_per_run(self, body: Body) -> dict[str, float]:
        return {"trace file": self.record(body)[1].stat().st_size}


class Obzerve(Contender):
    """``observer.instrument()``, ``replayable`` tools; spans stay in memory, which costs least, where its users need its server."""

    name = "obzerve"
    distribution = "obzerve"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.module = importlib.import_module("obzerve")
        self.replays = importlib.import_module("obzerve.replay")
        self.spans = InMemorySpanExporter()
        self.observer = self.module.Observer(exporter=self.spans, service_name="toy")

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return self.observer.replayable(kind=self.module.SpanKind.TOOL, side_effect=acts)(function)  # type: ignore[no-any-return]

    @contextmanager
    def _patched(self, run: Body) -> Iterator[Body]:
        handle = self.observer.instrument(openai=True, anthropic=False, huggingface_hub=False, transformers=False)
        try:
            yield run
        finally:
            handle.uninstrument()
            self.observer.flush()
            self.spans.clear()

    def _trace(self, body: Body) -> Any:
        with self.observer.trace("toy", input={"question": "weather"}) as trace:
            value = body()
            trace.set_output(value)
        return value

    def ways(self, body: Body) -> list[Way]:
        def replay() -> None:
            with self.observer.replay(kept[0], self.replays.RECORDED):
                self._trace(body)

        _, kept = self.record(body)
        return [
            Way(tool=self.name, what="record", prepare=lambda: self._patched(lambda: self._trace(body)), finish=self.observer.flush),
            Way(tool=self.name, what="replay", prepare=lambda: self._patched(replay), finish=self.observer.flush),
        ]

    def record(self, body: Body) -> tuple[Any, Any]:
        with self._patched(body):
            value = self._trace(body)
            self.observer.flush()
            spans = self.spans.get_finished_spans()
            return value, (self.replays.bundle_from_spans(spans), spans)

    def replay(self, kept: Any, body: Body, *, concurrent: bool = False) -> Replayed:
        return self._under(kept, body, self.replays.RECORDED)

    def _under(self, kept: Any, body: Body, policy: Any) -> Replayed:
        done = Replayed()
        with self._patched(body), self.observer.replay(kept[0], policy) as session:
            try:
                done.value = self._trace(body)
            except Exception as error:
                done.stopped = type(error).__name__
        done.reported = [f"divergences: {key}" for key in session.divergences]
        return done

    def evidence(self, kept: Any) -> list[Any]:
        return [{"name": s.name, "attributes": dict(s.attributes), "resource": dict(s.resource.attributes)} for s in kept[1]]

    def bytes_per_run(self, body: Body) -> dict[str, float]:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        return {"OTLP sent to its server": encode_spans(self.record(body)[1][1]).ByteSize()}


def contenders(folder: Path) -> list[Contender]:
    """All of them, ours first."""
    from bench.rivals_ours import Ours

    return [Ours(folder), AgentRewind(folder), Obzerve(folder)]

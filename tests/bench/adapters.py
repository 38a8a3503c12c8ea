"""What an adapter costs a step, beside OpenInference and OpenLLMetry on the same agent of the same framework.

Each recorder has a process of its own, as an instrumentor that has once been in a process is not wholly taken out of it again; all of
them do a round in turn, and all are started anew several times, since where a process has its memory makes a difference, too. Ours
writes to a store; the others export over OTLP, in batches, to a receiver of this machine that takes everything.

Time is that of the processor for the whole process, its other threads and what they write and export included: ours is done when a call
returns, the others are told to export before the clock is read. A step is a call of a model or of a tool. A recorder that keeps fewer
spans than the agent makes calls (OpenInference's of litellm sees no tools) is held to those that it keeps: its time is divided by their
number. How many characters each keeps of a run is printed beside it, as the others keep no bodies of requests, and none waits for a disk.

Which others there are for a framework is in ``tests/frameworks/<framework>/bench.json``; ``bench.txt`` beside it has their versions.
"""

import contextlib
import json
import os
import statistics
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from bench.measure import interval
from frameworks.running import HERE
from recordings.servers import Model, Reply
from support.environments import environment

ROUNDS: Final = int(os.environ.get("SPANREPLAY_BENCH_ROUNDS", "30"))
STARTS: Final = 3
"""Times that every process is started anew."""
RUNS: Final = 6
"""Runs of the agent in a round, after one that is not timed: what is done once, at the first call, is none of a step's cost."""
OURS: Final = "spanreplay"
"""Begins our contenders' names: with the disk waited for before each tool of unknown effect, and without, as for tools that only read."""
OUR_RECORDERS: Final = {"bare": "bare", OURS: "spanreplay", f"{OURS}, tools that read": "spanreplay-read"}
CHILD: Final = Path(__file__).parent / "adapters_child.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """CPU time over the bare framework: microseconds a step, framework to recorder to (median, low, high)."""

    found: dict[str, dict[str, tuple[float, float, float]]] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    """Framework to met, missed or undecided: ours is below each of the others."""
    kept: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """Framework to recorder to ``spans`` and ``characters`` of their attributes, of a run."""

    def line(self) -> str:
        """For people, a line a framework."""
        lines = [f"reported   what adapters cost, us a step over the bare framework, median [95 %], {ROUNDS} rounds"]
        for name, recorders in self.found.items():
            told = ", ".join(f"{who} {m:.0f} [{low:.0f}, {high:.0f}]" for who, (m, low, high) in recorders.items())
            lines.append(f"{self.verdicts[name]:9}    {name}: {told}")
            kept = ", ".join(f"{who} {of['spans']:.0f} spans, {of['characters'] / 1000:.1f} kB" for who, of in self.kept[name].items())
            lines.append(f"{'':13}{name} keeps of a run: {kept}")
            ratios = [
                f"{who} / {other} {mine / theirs:.1f}"
                for who, (mine, _, _) in recorders.items()
                if who.startswith(OURS)
                for other, (theirs, low, _) in recorders.items()
                if not other.startswith(OURS) and low > 0
            ]
            if ratios:
                lines.append(f"{'':13}{name}: {', '.join(ratios)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {"name": "adapters", "us_a_step": self.found, "kept": self.kept, "verdicts": self.verdicts, "rounds": ROUNDS}


class Again(Model):
    """Gives its script from the start again after its end, and takes what is exported."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        super().__init__(script * 100_000)

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if path == "/v1/traces":
            return 200, "application/x-protobuf", b""
        return super()._answer(method, path, headers, body)


def adapters() -> Overheads:
    """Measure every framework that has a bench.json."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    verdicts: dict[str, str] = {}
    kept: dict[str, dict[str, dict[str, float]]] = {}
    wanted = os.environ.get("SPANREPLAY_FRAMEWORKS", "all")
    for file in sorted(HERE.glob("*/bench.json")):
        name = file.parent.name
        if wanted != "all" and name not in wanted.split(","):
            continue
        told = json.loads(file.read_text(encoding="utf-8"))
        times, steps, kept[name] = _times(name, told)
        bare = times.pop("bare")
        seen = {who: min(steps, round(kept[name][who]["spans"])) for who in times}
        over = {who: [(b - a) / seen[who] * 1e6 for a, b in zip(bare, took, strict=True)] for who, took in times.items()}
        found[name] = {who: (statistics.median(each), *interval(each)) for who, each in over.items()}
        verdicts[name] = _verdict(over)
    return Overheads(found=found, verdicts=verdicts, kept=kept)


def _times(name: str, told: dict[str, Any]) -> tuple[dict[str, list[float]], int, dict[str, dict[str, float]]]:
    """Of each recorder the seconds of each round, the calls of a run, and what each recorder keeps of one."""
    case = json.loads((HERE / name / "case.json").read_text(encoding="utf-8"))
    turns = json.loads((HERE / "script.json").read_text(encoding="utf-8"))
    script = [turn for turn in turns if case["nested"] or not turn.get("nested")]
    python = environment(f"bench-{name}", HERE / name / "bench.txt") / "bin" / "python"
    recorders = OUR_RECORDERS | told["others"]
    found: dict[str, list[float]] = {who: [] for who in recorders}
    kept: dict[str, dict[str, float]] = {}
    steps = len(script) + sum(len(turn.get("calls", ())) for turn in script)
    for _ in range(STARTS):
        with contextlib.ExitStack() as stack:
            children = {
                who: stack.enter_context(
                    _Child([str(python), str(CHILD), str(HERE / name / "agent.py"), told["mode"], what, str(RUNS)], script)
                )
                for who, what in recorders.items()
            }
            kept = {who: child.kept for who, child in children.items() if who != "bare"}
            for number in range(max(ROUNDS // STARTS, 1)):
                turn = number % len(children)
                for who in (*children, *children)[turn : turn + len(children)]:
                    found[who].append(children[who].round(silent=who == "bare"))
    return found, steps, kept


class _Child:
    """A process with one recorder, and the model that its agent asks."""

    def __init__(self, command: list[str], script: list[dict[str, Any]]) -> None:
        self._command = command
        self._model = Again(script)
        self._spans: int | None = None
        self.kept: dict[str, float] = {}
        """Of a run: ``spans``, and ``characters`` of their attributes."""

    def __enter__(self) -> Self:
        url = self._model.__enter__().url
        keys = dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"), "a-key")
        addresses = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_BASE": f"{url}/v1", "GOOGLE_GEMINI_BASE_URL": url}
        switches = {"OPENAI_AGENTS_DISABLE_TRACING": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        variables = {"PYTHONPATH": str(HERE), "TOOL_BODIES": os.devnull, **switches, **keys, **addresses}
        self._process = subprocess.Popen(
            self._command,
            env={"PATH": os.environ["PATH"], "RECEIVER": f"{url}/v1/traces", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.kept = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._model.__exit__(None, None, None)

    def round(self, *, silent: bool) -> float:
        """CPU seconds of a run of the agent. A recorder has to see the same in each round, and something in all."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        told = self._read()
        if self._spans not in (None, told["spans"]) or silent is bool(told["spans"]):
            raise RuntimeError(f"{self._command}: {told['spans']} spans after {self._spans}: nothing is compared")
        self._spans = told["spans"]
        return float(told["s"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._command}: ended with {self._process.wait()}")
        return json.loads(line)


def _verdict(over: dict[str, list[float]]) -> str:
    ours = over[OURS]
    others = [each for who, each in over.items() if not who.startswith(OURS)]
    intervals = [interval([mine - other for mine, other in zip(ours, each, strict=True)]) for each in others]
    if not intervals:
        return "reported"
    if all(high <= 0 for _, high in intervals):
        return "met"
    return "missed" if any(low > 0 for low, _ in intervals) else "undecided"

"""What an adapter costs a step, beside OpenInference and OpenLLMetry on the same agent of the same framework, in the same process.

Which others there are for a framework is in ``tests/frameworks/<framework>/bench.json``; ``bench.txt`` beside it has their versions.
"""

import json
import os
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.measure import interval
from frameworks.running import HERE
from recordings.servers import Model
from support.environments import environment

ROUNDS: Final = int(os.environ.get("SPANREPLAY_BENCH_ROUNDS", "30"))
OURS: Final = "spanreplay"
"""Begins our contenders' names: with the disk waited for before each tool of unknown effect, and without, as for tools that only read."""
CHILD: Final = Path(__file__).parent / "adapters_child.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """CPU time over the bare framework: microseconds a step, framework to recorder to (median, low, high)."""

    found: dict[str, dict[str, tuple[float, float, float]]] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    """Framework to met, missed or undecided: ours is below each of the others."""

    def line(self) -> str:
        """For people, a line a framework."""
        lines = [f"reported   what adapters cost, us a step over the bare framework, median [95 %], {ROUNDS} rounds"]
        for name, recorders in self.found.items():
            told = ", ".join(f"{who} {m:.0f} [{low:.0f}, {high:.0f}]" for who, (m, low, high) in recorders.items())
            lines.append(f"{self.verdicts[name]:9}    {name}: {told}")
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
        return {"name": "adapters", "us_a_step": self.found, "verdicts": self.verdicts, "rounds": ROUNDS}


class Again(Model):
    """Gives its script from the start again after its end."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        super().__init__(script * 10_000)


def adapters() -> Overheads:
    """Measure every framework that has a bench.json."""
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    verdicts: dict[str, str] = {}
    wanted = os.environ.get("SPANREPLAY_FRAMEWORKS", "all")
    for file in sorted(HERE.glob("*/bench.json")):
        name = file.parent.name
        if wanted != "all" and name not in wanted.split(","):
            continue
        told = json.loads(file.read_text(encoding="utf-8"))
        times, steps = _times(name, told)
        bare = times.pop("bare")
        over = {who: [(b - a) / steps * 1e6 for a, b in zip(bare, took, strict=True)] for who, took in times.items()}
        found[name] = {who: (statistics.median(each), *interval(each)) for who, each in over.items()}
        verdicts[name] = _verdict(over)
    return Overheads(found=found, verdicts=verdicts)


def _times(name: str, told: dict[str, Any]) -> tuple[dict[str, list[float]], int]:
    case = json.loads((HERE / name / "case.json").read_text(encoding="utf-8"))
    turns = json.loads((HERE / "script.json").read_text(encoding="utf-8"))
    script = [turn for turn in turns if case["nested"] or not turn.get("nested")]
    python = environment(f"bench-{name}", HERE / name / "bench.txt") / "bin" / "python"
    command = [str(python), str(CHILD), str(HERE / name / "agent.py"), told["mode"], str(ROUNDS), json.dumps(told["others"])]
    with Again(script) as model:
        keys = dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"), "a-key")
        addresses = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_BASE": f"{model.url}/v1", "GOOGLE_GEMINI_BASE_URL": model.url}
        variables = {"PYTHONPATH": str(HERE), "TOOL_BODIES": os.devnull, "OPENAI_AGENTS_DISABLE_TRACING": "0", **keys, **addresses}
        done = subprocess.run(command, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    steps = len(script) + sum(len(turn.get("calls", ())) for turn in script)
    return json.loads(done.stdout.splitlines()[-1]), steps


def _verdict(over: dict[str, list[float]]) -> str:
    ours = over[OURS]
    others = [each for who, each in over.items() if not who.startswith(OURS)]
    intervals = [interval([mine - other for mine, other in zip(ours, each, strict=True)]) for each in others]
    if not intervals:
        return "reported"
    if all(high <= 0 for _, high in intervals):
        return "met"
    return "missed" if any(low > 0 for low, _ in intervals) else "undecided"

"""A replay through a real framework, beside the framework's own work over a mock transport: environments of their own."""

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Final

from bench.measure import Ratio, interval
from frameworks.running import HERE
from support.environments import environment

ROUNDS: Final = int(os.environ.get("SPANREPLAY_BENCH_ROUNDS", "30"))
GOAL: Final = 1.2
CHILD: Final = Path(__file__).parent / "frameworks_child.py"


def replay_openai_agents() -> Ratio:
    """The Agents SDK."""
    return _of("openai_agents", "OpenAI Agents SDK")


def replay_pydantic_ai() -> Ratio:
    """Pydantic AI."""
    return _of("pydantic_ai", "Pydantic AI")


def replay_langgraph() -> Ratio:
    """LangChain on LangGraph."""
    return _of("langgraph", "LangGraph")


def _of(name: str, title: str) -> Ratio:
    """CPU time of all threads, for three model calls and two tools: the replay's, verdict made and guard on, over the framework's own."""
    python = environment(f"framework-{name}-requirements", HERE / name / "requirements.txt") / "bin" / "python"
    done = subprocess.run(
        [str(python), str(CHILD), name, str(ROUNDS)], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    ratios = [replay / own for own, replay in zip(found["own"], found["replay"], strict=True)]
    low, high = interval(ratios)
    return Ratio(
        name=f"replay through {title} / the same over a mock transport",
        goal=GOAL,
        median=statistics.median(ratios),
        low=low,
        high=high,
        a_us=statistics.median(found["own"]) * 1e6,
        b_us=statistics.median(found["replay"]) * 1e6,
        pairs=ROUNDS,
    )

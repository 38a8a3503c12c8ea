"""The examples of the documentation run as they are: recorded beside a model that answers at once, and replayed without it."""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from frameworks.running import HERE, Framework, runs_in
from frameworks.test_contract import WANTED
from support.environments import environment
from support.size import FULL

EXAMPLES: Final = HERE.parent.parent / "docs" / "examples"
RUN_IN: Final = {"deepagents": "langgraph"}
"""Whose environment has it."""
ELSEWHERE: Final = frozenset({"application", "claude_agent_sdk"})
"""Not for a scripted model: tests/pages runs the first, and the other one needs the ``claude`` program."""
TURN: Final = {"text": "Paris is warmer."}

pytestmark = [pytest.mark.timeout(1200)]


def examples() -> list[Any]:
    """Example, and the framework whose environment it runs in."""
    found = []
    for file in sorted(EXAMPLES.glob("*/agent.py")):
        name = file.parent.name
        framework = RUN_IN.get(name, name)
        marks = []
        if WANTED != "all" and framework not in WANTED.split(","):
            marks = [pytest.mark.skip(reason="installs the framework: SPANREPLAY_FRAMEWORKS=all runs it")]
        elif WANTED == "all" and not FULL:
            marks = [pytest.mark.skip(reason="runs at SPANREPLAY_TEST_SIZE=full")]
        if name not in ELSEWHERE:
            found.append(pytest.param(name, framework, marks=marks, id=name))
    return found


@pytest.mark.parametrize(("name", "framework"), examples())
def test_an_example_is_recorded_and_replayed(name: str, framework: str, tmp_path: Path) -> None:
    python = environment(f"framework-{framework}-requirements", HERE / framework / "requirements.txt") / "bin" / "python"
    agent = Framework(name=framework, python=python, folder=tmp_path)
    program = [python, EXAMPLES / name / "agent.py"]
    recorded = agent.live([TURN], *agent.spanreplay("record", "--", *program), LITELLM_LOCAL_MODEL_COST_MAP="True")
    assert recorded.code == 0, recorded.err
    assert recorded.out.strip()
    steps = [step for run in runs_in(agent.exported()) for step in run.steps]
    assert sum(step.kind == "model_call" for step in steps) == len(recorded.requests)
    assert recorded.requests or any(step.kind == "tool_call" for step in steps)
    replayed = agent.run(*agent.spanreplay("replay", "last", "--json", "--", *program), LITELLM_LOCAL_MODEL_COST_MAP="True", **KEYS)
    told = json.loads(replayed.out)["replay"]
    assert (replayed.code, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.err


KEYS: Final = {name: "a-key" for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY") if name not in os.environ}

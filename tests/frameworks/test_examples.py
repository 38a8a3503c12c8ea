"""The examples of the documentation run as they are: recorded beside a model that answers at once, and replayed without it."""

import json
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
SAID: Final = "Paris is warmer."
_FIELDS: Final = {
    "next_thought": SAID,
    "next_tool_name": "finish",
    "next_tool_args": "{}",
    "reasoning": SAID,
    "findings": SAID,
    "answer": SAID,
}
SAYS: Final = {"dspy": "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in _FIELDS.items()) + "\n\n[[ ## completed ## ]]"}
"""What a model has to say where a plain text is no answer."""
NOWHERE: Final = {
    **dict.fromkeys(("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"), "a-key"),
    **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), "http://127.0.0.1:9/v1"),
    "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
}
"""A model elsewhere, as while it was recorded: clients send other requests to the providers' own addresses."""

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
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DSPY_CACHEDIR": str(tmp_path / "cache")}  # no price list, no cache of other runs
    recorded = agent.live([{"text": SAYS.get(name, SAID)}], *agent.spanreplay("record", "--", *program), **own)
    assert recorded.code == 0, recorded.err
    assert recorded.out.strip()
    steps = [step for run in runs_in(agent.exported()) for step in run.steps]
    assert sum(step.kind == "model_call" for step in steps) == len(recorded.requests)
    assert recorded.requests or any(step.kind == "tool_call" for step in steps)
    replayed = agent.run(*agent.spanreplay("replay", "last", "--json", "--", *program), **own, **NOWHERE)
    told = json.loads(replayed.out)["replay"]
    assert (replayed.code, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.err

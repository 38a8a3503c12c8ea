"""The examples of the documentation, as their README says to run them: recorded beside the bundled model, and replayed without it."""

import ast
import json
import re
import shutil
from collections import Counter
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
ELSEWHERE: Final = frozenset({"application"})
"""Has a model of its own: tests/pages runs it."""
ASKED: Final[dict[str, set[str]]] = {
    "agent_framework": {"get_weather", "ask_forecaster", "book"},
    "agno": {"get_weather", "book"},
    "autogen": {"get_weather"},
    "claude_agent_sdk": {"mcp__shop__get_price"},
    "crewai": {"get_weather"},
    "deepagents": {"get_weather", "task", "write_file", "read_file"},
    "dspy": {"get_weather", "get_time"},
    "fastmcp": {"order_status", "refund"},
    "google_adk": {"get_weather"},
    "haystack": {"get_weather", "book"},
    "langgraph": {"find_order", "refund"},
    "litellm": {"get_weather"},
    "llama_index": {"get_weather"},
    "mcp": {"order_status", "refund"},
    "openai_agents": {"find_order", "refund"},
    "pydantic_ai": {"find_order", "refund"},
    "smolagents": {"sales", "get_weather", "forecaster", "final_answer"},
    "strands": {"get_weather", "ask_forecaster", "book"},
}
"""Tools whose calls the record has to have."""
WITHOUT_MODEL: Final = frozenset({"fastmcp", "mcp"})

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


def copied(example: Path, folder: Path, tools: set[str], bodies: Path) -> set[str]:
    """The example with a first line in the body of each of its tools that leaves the tool's name in a file; their names."""
    shutil.copytree(example, folder, ignore=shutil.ignore_patterns("__pycache__"))
    marked = set()
    for file in folder.glob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.FunctionDef) and node.name in tools]
        for tool in sorted(found, key=lambda node: -node.lineno):
            place = tool.body[1].lineno - 1  # after the docstring
            lines[place:place] = [" " * tool.body[1].col_offset + f"open({str(bodies)!r}, 'a').write({tool.name + chr(10)!r})"]
            marked.add(tool.name)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return marked


@pytest.mark.parametrize(("name", "framework"), examples())
def test_an_example_is_recorded_and_replayed(name: str, framework: str, tmp_path: Path) -> None:
    python = environment(f"framework-{framework}-requirements", HERE / framework / "requirements.txt") / "bin" / "python"
    agent = Framework(name=framework, python=python, folder=tmp_path)
    own = copied(EXAMPLES / name, tmp_path / "example", ASKED[name], tmp_path / "bodies")
    program = [python, tmp_path / "example" / "agent.py"]
    model = ["sh", "-c", 'echo y | exec "$@"', "sh", python, EXAMPLES / "model.py", "--"]  # one example asks a person
    own_home = {"DSPY_CACHEDIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}  # no answers, no settings of other runs
    recorded = agent.run(*model, *agent.spanreplay("record", "--", *program), **own_home)
    assert recorded.code == 0, recorded.err
    assert recorded.out.strip()
    steps = [step for run in runs_in(agent.exported()) for step in run.steps]
    assert sum(step.kind == "model_call" for step in steps) == answered(recorded.err)
    assert bool(answered(recorded.err)) == (name not in WITHOUT_MODEL)
    called = Counter(step.name for step in steps if step.kind == "tool_call")
    assert set(called) >= ASKED[name], called
    assert Counter(recorded.bodies) == {tool: called[tool] for tool in own}
    replayed = agent.run(*model, *agent.spanreplay("replay", "last", "--json", "--", *program), **own_home)
    told = json.loads(replayed.out)["replay"]
    assert (replayed.code, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.err
    assert (answered(replayed.err), replayed.bodies) == (0, [])


def answered(told: str) -> int:
    """How many requests the bundled model says it answered."""
    (requests,) = re.findall(r"^model\.py: (\d+) requests answered", told, re.MULTILINE)
    return int(requests)

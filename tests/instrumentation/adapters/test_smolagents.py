"""smolagents' seams, on modules of the same shape."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import smolagents as adapter
from spanreplay.instrumentation.manual import agent_run
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed

RAN: list[str] = []


@dataclass
class Reply:
    content: str | None
    tool_calls: Any = None
    token_usage: Any = None
    raw: Any = None


class Text(str):
    """``AgentText``."""

    __slots__ = ()
    __module__ = "smolagents.agent_types"

    def to_raw(self) -> str:
        return str.__str__(self)


class FinalAnswerStep:
    def __init__(self, output: Any) -> None:
        self.output = output


def modules() -> dict[str, ModuleType]:
    made = {name: ModuleType(f"smolagents.{name}") for name in ("tools", "agents", "models", "agent_types")}

    class Tool:
        name, description, output_type = "look", "Look it up.", "string"
        inputs = {"city": {"type": "string"}, "days": {"type": "integer"}}

        def forward(self, city: str, days: int = 1) -> str:
            RAN.append(city)
            return f"{city} {days}"

        def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> Any:
            given = self.forward(*args, **kwargs)
            return Text(given) if sanitize_inputs_outputs else given

    class Model:
        def generate(self, messages: Any, **options: Any) -> Any:
            raise NotImplementedError

    Model.__module__ = "smolagents.models"

    class MultiStepAgent:
        name, description, system_prompt, max_steps = "clerk", "Counts.", "Be short.", 3
        tools, managed_agents = {"look": None}, {}  # type: ignore[var-annotated]

        def __init__(self, model: Any) -> None:
            self.model = model

        def run(self, task: str, stream: bool = False, **options: Any) -> Any:
            message = {"role": "user", "content": task}
            steps = (FinalAnswerStep(Text(self.model.generate([message]).content)) for _ in range(1))
            return steps if stream else next(steps).output

        def __call__(self, task: str, **kwargs: Any) -> Any:
            return f"report: {self.run(task)}"

    made["tools"].Tool = Tool  # type: ignore[attr-defined]
    made["models"].Model = Model  # type: ignore[attr-defined]
    made["agents"].MultiStepAgent = MultiStepAgent  # type: ignore[attr-defined]
    made["agent_types"].handle_agent_output_types = lambda value, kind: Text(value)  # type: ignore[attr-defined]
    return {module.__name__: module for module in made.values()}


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()

    class Own(made["smolagents.models"].Model):  # type: ignore[misc]
        model_id = "own"

        def generate(self, messages: Any, **options: Any) -> Any:
            RAN.append("model")
            return Reply(f"{messages[0]['content']}!", raw=object())

    yield SimpleNamespace(tool=made["smolagents.tools"].Tool, agent=made["smolagents.agents"].MultiStepAgent, model=Own)
    adapter.uninstall()


def test_nothing_happens_while_off_and_all_is_put_back(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert sdk.tool()("Paris", sanitize_inputs_outputs=True) == "Paris 1"
    assert sdk.agent(sdk.model()).run("hello") == "hello!"
    recorded(lambda: sdk.agent(sdk.model()).run("hello"))
    adapter.uninstall()
    assert not hasattr(sdk.tool.__call__, "__wrapped__")
    assert not hasattr(sdk.model.generate, "__wrapped__")


@pytest.mark.parametrize(("args", "kwargs"), [(("Paris", 2), {}), ((), {"city": "Paris", "days": 2}), (("Paris",), {"days": 2})])
def test_a_tool_is_a_step_however_it_is_called(sdk: Any, args: Any, kwargs: Any) -> None:
    def agent() -> Any:
        return sdk.tool()(*args, sanitize_inputs_outputs=True, **kwargs)

    tape = recorded(agent)
    (step,) = tape.steps
    assert json.loads(step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"city": "Paris", "days": 2}
    assert step[names.GEN_AI_TOOL_CALL_RESULT] == '"Paris 2"'
    again = replayed(tape, agent)
    assert (again.equal, again.value, type(again.value), RAN) == (True, "Paris 2", Text, ["Paris"])


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_is_a_run_with_the_calls_of_a_model_of_its_own(sdk: Any, stream: bool) -> None:
    def agent() -> Any:
        given = sdk.agent(sdk.model()).run("hello", stream)
        return [step.output for step in given] if stream else given

    tape = recorded(agent)
    run, model = tape.steps
    assert (run[names.RUN_NAME], json.loads(run[names.RUN_OUTPUT])) == ("clerk", "hello!")
    assert json.loads(run[names.RUN_DEFINITION])["model"] == "own"
    assert json.loads(model[names.GEN_AI_OUTPUT_MESSAGES])[0]["parts"] == [{"content": "hello!", "type": "text"}]
    again = replayed(tape, agent)
    assert (again.equal, again.value, RAN) == (True, ["hello!"] if stream else "hello!", ["model"])


def test_a_managed_agent_is_a_tool_call_that_a_replay_passes(sdk: Any) -> None:
    def agent() -> Any:
        with agent_run("boss"):
            return sdk.agent(sdk.model())("count")

    tape = recorded(agent)
    assert [step[names.STEP_KIND] for step in tape.steps] == ["agent", "tool_call", "agent", "model_call"]
    again = replayed(tape, agent)
    assert (again.equal, again.value, RAN) == (True, "report: count!", ["model"])


def test_another_smolagents_is_said_to_be_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("smolagents.tools")
    module.Tool = type("Tool", (), {"__call__": lambda self: None})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert "wanted Tool.__call__" in adapter.status()
    finally:
        adapter.uninstall()

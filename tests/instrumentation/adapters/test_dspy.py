"""DSPy's seams, on modules of the same shape."""

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import dspy as adapter
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

RAN: list[str] = []


def price(item: str) -> int:
    """Look a price up."""
    RAN.append(item)
    if item == "nothing":
        raise ValueError("no price")
    return len(item)


async def aprice(item: str) -> int:
    return price(item)


def modules() -> dict[str, ModuleType]:
    parts = ("adapters.types.tool", "primitives.module", "primitives.local_interpreter", "clients.cache", "utils.exceptions")
    made = {name: ModuleType(name) for name in ("dspy", *(f"dspy.{part}" for part in parts), "dspy.primitives.code_interpreter")}

    class Tool:
        name, desc, args = "price", "Look a price up.", {"item": {"type": "string"}}

        def __init__(self, func: Any) -> None:
            self.func = func

        def __call__(self, **kwargs: Any) -> Any:
            return self.func(**kwargs)

        async def acall(self, **kwargs: Any) -> Any:
            result = self.func(**kwargs)
            return await result if hasattr(result, "__await__") else result

    class ToolCall:
        name, args = "price", {"item": "umbrella"}

        def execute(self, functions: Any = None) -> Any:
            assert functions is not None
            return functions[self.name](**self.args)

    class Module:
        tools: Any = None

        def __init__(self, forward: Any) -> None:
            self.forward = forward

        def named_predictors(self) -> list[Any]:
            signature = SimpleNamespace(signature="question -> answer", instructions="Answer.")
            return [("answer", SimpleNamespace(signature=signature, demos=[SimpleNamespace(_store={"question": "?"})], lm=None))]

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.forward(*args, **kwargs)

        async def acall(self, *args: Any, **kwargs: Any) -> Any:
            return self.forward(*args, **kwargs)

    class Cache:
        def __init__(self, enable_disk_cache: bool, enable_memory_cache: bool) -> None:
            self.opened = enable_disk_cache
            self.enable_disk_cache, self.enable_memory_cache = enable_disk_cache, enable_memory_cache
            self.kept: dict[str, Any] = {}

        def cache_key(self, request: Any, ignored_args_for_cache_key: Any = None) -> str:
            return str(request["model"])

        def get(self, request: Any, ignored_args_for_cache_key: Any = None) -> Any:
            return self.kept.get(self.cache_key(request))

        def put(self, request: Any, value: Any) -> None:
            self.kept[self.cache_key(request)] = value

    class LocalInterpreter:
        def execute(self, code: str, variables: Any = None) -> Any:
            RAN.append(code)
            return FinalOutput(code) if code == "SUBMIT" else code.upper()

    class FinalOutput:
        def __init__(self, output: Any) -> None:
            self.output = output

    def format_error_for_lm(error: BaseException, *, traceback_frames: int = 0) -> str:
        trace, seen = error.__traceback__, []
        while trace is not None:
            seen.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        return f"{error} {seen}" if traceback_frames else str(error)

    made["dspy"].settings = SimpleNamespace(lm=SimpleNamespace(model="gpt-4o-mini"))  # type: ignore[attr-defined]
    for module, what in (
        ("adapters.types.tool", {"Tool": Tool, "ToolCalls": type("ToolCalls", (), {"ToolCall": ToolCall})}),
        ("primitives.module", {"Module": Module}),
        ("primitives.local_interpreter", {"LocalInterpreter": LocalInterpreter}),
        ("primitives.code_interpreter", {"FinalOutput": FinalOutput}),
        ("clients.cache", {"Cache": Cache}),
        ("utils.exceptions", {"format_error_for_lm": format_error_for_lm}),
    ):
        vars(made[f"dspy.{module}"]).update(what)
    return made


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(adapter, "_version", lambda: "dspy 0")
    RAN.clear()
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    yield SimpleNamespace(**{name: value for module in made.values() for name, value in vars(module).items() if not name.startswith("_")})
    adapter.uninstall()


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: Any) -> None:
    assert adapter.status() == "active"
    assert (sdk.Tool(price)(item="umbrella"), sdk.Module(price)("umbrella")) == (8, 8)
    adapter.uninstall()
    assert adapter.status() == "off"
    for function in (sdk.Tool.__call__, sdk.Module.__call__, sdk.Cache.get, sdk.LocalInterpreter.execute):
        assert not hasattr(function, "__wrapped__")


@pytest.mark.parametrize(("function", "awaited"), [(price, False), (price, True), (aprice, True)])
def test_a_tool_call_is_a_step_and_is_given_again(sdk: Any, function: Any, awaited: bool) -> None:
    tool = sdk.Tool(function)

    async def ask() -> Any:
        result = await tool.acall(item="umbrella") if awaited else tool(item="umbrella")
        assert tool.func is function
        return result

    tape = recorded(ask)
    (step,) = tape.steps
    assert (step[names.STEP_NAME], step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == ("price", '{"item":"umbrella"}')
    assert names.TOOL_SCHEMA_DIGEST in step
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, 8, ["umbrella"])


def test_a_call_is_executed_with_a_function_a_tool_or_what_is_there(sdk: Any) -> None:
    call = sdk.ToolCalls.ToolCall()
    tool = sdk.Tool(price)
    assert tool.name == "price"  # it is found by its name

    def ask() -> list[int]:
        return [call.execute({"price": price}), call.execute({"price": tool}), call.execute([tool]), call.execute()]

    tape = recorded(ask)
    assert [step[names.STEP_NAME] for step in tape.steps] == ["price"] * 4
    result = replayed(tape, ask)
    assert (result.equal, result.value, len(RAN)) == (True, [8] * 4, 4)


@pytest.mark.parametrize("awaited", [True, False])
def test_a_module_is_a_run_with_its_program(sdk: Any, awaited: bool) -> None:
    async def ask() -> None:
        module = type("Desk", (sdk.Module,), {})(lambda question: SimpleNamespace(_store={"answer": question}))
        await module.acall(question="hello") if awaited else module(question="hello")

    tape = recorded(ask)
    (run,) = [run for run in tape.runs() if run.agent_name == "Desk"]
    assert (run.input, run.output) == ({"question": "hello"}, {"answer": "hello"})
    assert run.definition["predictors"]["answer"]["instructions"] == "Answer."
    assert (run.definition["predictors"]["answer"]["demos"], run.definition["model"]) == (1, "gpt-4o-mini")
    assert replayed(tape, ask).equal


def test_a_module_that_only_asks_a_model_is_no_step_of_a_run(sdk: Any) -> None:
    predict = type("Predict", (sdk.Module,), {"__module__": "dspy.predict.predict"})(lambda: 1)
    tape = recorded(lambda: type("Desk", (sdk.Module,), {})(predict)())
    assert [step[names.STEP_NAME] for step in tape.steps] == ["Desk"]


def test_a_replay_finds_in_the_cache_what_was_found_and_puts_nothing_there(sdk: Any) -> None:
    caches = []

    def ask() -> list[Any]:
        cache = sdk.Cache(True, True)
        caches.append(cache)
        missed = cache.get({"model": "m"})
        cache.put({"model": "m"}, {"answer": 1})
        return [missed, cache.get({"model": "m"})]

    tape = recorded(ask)
    assert [step[names.STEP_KIND] for step in tape.steps] == ["io", "io"]
    result = replayed(tape, ask)
    assert (result.equal, result.value) == (True, [None, {"answer": 1}])
    assert [(cache.opened, bool(cache.kept), cache.enable_disk_cache) for cache in caches] == [(True, True, True), (False, False, True)]


def test_a_cache_that_is_off_is_no_step(sdk: Any) -> None:
    assert recorded(lambda: sdk.Cache(False, False).get({"model": "m"})).steps == []


def test_code_is_run_once(sdk: Any) -> None:
    def ask() -> list[Any]:
        interpreter = sdk.LocalInterpreter()
        return [interpreter.execute("print"), interpreter.execute("SUBMIT", {"n": 1}).output]

    tape = recorded(ask)
    assert [step[names.GEN_AI_TOOL_CALL_ARGUMENTS] for step in tape.steps] == ['{"code":"print"}', '{"code":"SUBMIT","variables":{"n":1}}']
    result = replayed(tape, ask)
    assert (result.equal, result.value, RAN) == (True, ["PRINT", "SUBMIT"], ["print", "SUBMIT"])


def test_a_model_is_told_of_an_error_what_it_is_told_without_spanreplay(sdk: Any) -> None:
    def ask() -> Any:
        try:
            return sdk.Tool(price)(item="nothing")
        except ValueError as error:
            return sys.modules["dspy.utils.exceptions"].format_error_for_lm(error, traceback_frames=5)

    off = ask()
    assert off == "no price ['ask', '__call__', 'price']"
    tape = recorded(ask)
    assert [step[names.STEP_NAME] for step in tape.steps] == ["price", "dspy.error"]
    assert tape.steps[1][names.STEP_RESULT] == f'"{off}"'
    result = replayed(tape, ask)
    assert (told(result), result.value) == ([], off)


def test_another_release_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("dspy.primitives.module")
    module.Module = type("Module", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()
    adapter.install()
    try:
        assert adapter.status() == "unsupported: wanted Module.__call__(self, args, kwargs), found the parameters (args, kwargs)"
    finally:
        adapter.uninstall()

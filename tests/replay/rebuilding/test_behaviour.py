"""Equal runs have equal hashes; anything they did otherwise changes it."""

import dataclasses

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.rebuilding.behaviour import behaviour_hash
from support.taped import recorded


def agent(city: str = "Paris", *, fails: bool = False) -> None:
    @tool(name="search")
    def search(city: str) -> str:
        if fails:
            raise LookupError(city)
        return f"found {city}"

    with agent_run("finder", input=city) as run:
        try:
            run.output = search(city)
        except LookupError:
            run.output = None


def run_of(city: str = "Paris", *, fails: bool = False) -> str:
    (run,) = (run for run in recorded(lambda: agent(city, fails=fails)).runs() if run.steps)
    return behaviour_hash(run)


def test_two_runs_of_one_agent_are_equal() -> None:
    assert run_of() == run_of()
    assert run_of().startswith("sha256:")


def test_another_input_and_another_outcome_are_not() -> None:
    assert len({run_of(), run_of("Oslo"), run_of(fails=True)}) == 3


def test_times_and_ids_do_not_matter_and_order_does() -> None:
    (run,) = (run for run in recorded(agent).runs() if run.steps)
    (step,) = run.steps
    other = dataclasses.replace(run, run_id="0" * 32, started_ns=1, steps=(dataclasses.replace(step, span_id="1" * 16, started_ns=7),))
    assert behaviour_hash(other) == behaviour_hash(run)
    twice = dataclasses.replace(run, steps=(step, dataclasses.replace(step, seq=2)))
    assert behaviour_hash(twice) != behaviour_hash(run)


def conversation(*said: list[str]) -> str:
    """The hash of a run whose model calls were asked these messages."""
    (run,) = (run for run in recorded(agent).runs() if run.steps)
    (step,) = run.steps
    calls = [dataclasses.replace(step, seq=i, kind="model_call", input={"messages": m, "tools": []}) for i, m in enumerate(said, 1)]
    return behaviour_hash(dataclasses.replace(run, steps=tuple(calls)))


def test_every_message_of_a_conversation_counts() -> None:
    grown = conversation(["a"], ["a", "b", "c"])
    assert grown == conversation(["a"], ["a", "b", "c"])
    others = [(["a"], ["b", "c"]), (["a"], ["a", "b"]), (["a"], ["a", "b", "d"]), (["x"], ["a", "b", "c"]), (["a", "b"], ["a", "b", "c"])]
    assert len({grown, *(conversation(*other) for other in others)}) == 6


def of_call(asked: str, answered: str) -> str:
    """The hash of a run whose model asks for a call under one id, and is told its result under another or the same."""
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": asked, "name": "search", "arguments": {}}]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": answered, "response": "found"}]}
    (run,) = (run for run in recorded(agent).runs() if run.steps)
    (step,) = run.steps
    first = dataclasses.replace(step, kind="model_call", input={"messages": []}, output={"messages": [call]})
    then = dataclasses.replace(step, seq=2, kind="model_call", input={"messages": [call, told]}, output={"messages": []})
    return behaviour_hash(dataclasses.replace(run, steps=(first, then)))


def test_the_ids_that_a_model_gives_its_calls_do_not_matter_and_whose_result_it_is_does() -> None:
    assert of_call("call_1", "call_1") == of_call("call_x", "call_x")
    assert of_call("call_1", "call_1") != of_call("call_1", "call_2")

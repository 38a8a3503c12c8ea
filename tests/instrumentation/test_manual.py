"""Runs, prompts, decisions, declared reads and named scopes; none of it does anything while off."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run, prompt, read, record_decision, scope, tool
from spanreplay.instrumentation._remembered import remembered
from spanreplay.instrumentation.manual import _defined
from spanreplay.semconv import attributes as names
from support.taped import COMMAND_RUN, recorded, recording, replayed, told


@tool(effect="read")
def look(x: int) -> int:
    return x


def model() -> None:
    here = boundary.here()
    assert here is not None
    boundary.call(here, Call(kind="model_call", name="m", input=codec.encode({"q": 1})), lambda: "a")


def test_off_everything_works_and_keeps_nothing() -> None:
    with agent_run("a", input=object()) as run:
        run.output = 1
    assert run.run_id is None
    made = prompt("p", template="{x:.2f} {y}")
    assert made.format(x=1, y="z") == "1.00 z"
    record_decision("t", "allow", by="me")
    assert read("now", lambda: 5) == 5
    with scope("k"):
        assert look(1) == 1


class Mute:
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("key", [1, ("a", 2.5), None, Mute()])
def test_names_that_are_no_text_are_their_text(key: Any) -> None:
    def agent() -> list[Any]:
        with agent_run(key), scope(key):
            return [read(key, lambda: 7), tool(name="t" if isinstance(key, Mute) else key)(lambda: 8)()]

    tape = recorded(agent)
    text = "<Mute>" if isinstance(key, Mute) else str(key)
    assert [step[names.STEP_NAME] for step in tape.steps][:2] == [text, text]
    assert len(tape.steps) == 3
    again = replayed(tape, agent)
    assert (told(again), again.value) == ([], [7, 8])


def test_a_run_has_an_id_its_input_and_output_and_its_steps_are_relative_to_it() -> None:
    with recording() as tape:
        with agent_run("a", input={"q": 1}, version="2", session="s", user="u", definition={"model": "m"}, attributes={"team": "t"}) as run:
            look(1)
            with agent_run("inner", input="i") as inner:
                look(2)
                inner.output = "o"
            run.output = {"n": 1}
    top, first, nested, second = tape.steps
    assert [step[names.GEN_AI_AGENT_NAME] for step in tape.steps] == ["a", "a", "inner", "inner"]
    assert top[names.RUN_ID] == run.run_id == inner.run_id != COMMAND_RUN
    assert (top[names.RUN_INPUT], top[names.RUN_OUTPUT], top[names.RUN_DEFINITION]) == ('{"q":1}', '{"n":1}', '{"model":"m"}')
    assert (top[names.GEN_AI_AGENT_VERSION], top[names.GEN_AI_CONVERSATION_ID], top[names.USER_ID], top["team"]) == ("2", "s", "u", "t")
    assert tape.paths == ["agent:a#0", "tool_call:look#0", "agent:inner#0", "agent:inner#0/tool_call:look#0"]
    assert names.RUN_ROOT in top
    assert names.RUN_ROOT not in nested
    assert nested[names.STEP_RESULT] == '"o"'
    assert {s[names.RUN_ID] for s in (first, nested, second)} == {run.run_id}


def test_many_runs_at_once_keep_their_own_ids() -> None:
    async def request(i: int) -> tuple[str | None, int]:
        async with agent_run("a", input=i) as run:
            await asyncio.sleep(0)
            await asyncio.gather(*(asyncio.to_thread(look, i) for _ in range(2)))
            return run.run_id, i

    async def server() -> list[tuple[str | None, int]]:
        return await asyncio.gather(*(request(i) for i in range(20)))

    with recording() as tape:
        ids = asyncio.run(server())
    assert len({run_id for run_id, _ in ids}) == 20
    for run_id, i in ids:
        mine = [s for s in tape.steps if s[names.RUN_ID] == run_id]
        assert [s.get(names.GEN_AI_TOOL_CALL_ARGUMENTS) for s in mine][1:] == [f'{{"x":{i}}}'] * 2
        assert sorted(s[names.STEP_PATH] for s in mine[1:]) == [f"~to_thread#{n}/~look#0/tool_call:look#0" for n in (0, 1)]


def test_runs_in_threads_are_runs_of_their_own() -> None:
    ids: list[str | None] = []

    def work() -> None:
        with agent_run("a") as run:
            look(1)
            ids.append(run.run_id)

    with recording(whole_process=True):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(ids)) == 4
    assert None not in ids


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_a_failing_run_is_kept_and_its_exception_is_the_same_object(error: BaseException) -> None:
    with recording() as tape, pytest.raises(type(error)) as caught, agent_run("a"):
        raise error
    assert caught.value is error
    assert tape.outcomes == [("cancelled" if isinstance(error, asyncio.CancelledError) else "error")]


def test_a_run_left_in_another_context_than_it_was_entered_in_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def gives() -> AsyncIterator[int]:
        async with agent_run("a"):
            yield 1
            yield 2

    async def agent() -> None:
        stream = gives()
        await anext(stream)
        await asyncio.create_task(stream.aclose())  # type: ignore[attr-defined]

    tape = recorded(agent)
    assert tape.outcomes == ["abandoned"]
    assert caplog.records == []


def test_a_prompt_is_in_force_for_the_model_calls_that_follow() -> None:
    with recording() as tape:
        model()
        made = prompt("greet", "3", template="Hello {name}, {price:.1f}")
        assert made.format(name="Ana", price=1.25) == "Hello Ana, 1.2"
        model()
        with prompt("inner", template="x"):
            model()
        model()
        look(1)
    plain, with_prompt, inner, again, call = tape.steps
    assert names.GEN_AI_PROMPT_NAME not in plain
    assert with_prompt[names.GEN_AI_PROMPT_NAME] == again[names.GEN_AI_PROMPT_NAME] == "greet"
    assert with_prompt[names.PROMPT_DIGEST] == made.digest
    assert with_prompt[names.GEN_AI_PROMPT_VARIABLE_PREFIX + "price"] == "1.25"
    assert (inner[names.GEN_AI_PROMPT_NAME], names.GEN_AI_PROMPT_VERSION in inner) == ("inner", False)
    assert names.GEN_AI_PROMPT_NAME not in call


def test_a_variable_that_has_no_text_costs_the_agent_nothing() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no")

        def __format__(self, spec: str) -> str:
            return "formatted"

    with recording():
        assert prompt("p", template="{x}").format(x=Mute()) == "formatted"


def test_prompts_of_tasks_do_not_mix() -> None:
    async def one(name: str) -> None:
        prompt(name, template=name)
        await asyncio.sleep(0)
        model()

    async def agent() -> None:
        await asyncio.gather(one("a"), one("b"))

    assert [s[names.GEN_AI_PROMPT_NAME] for s in recorded(agent).steps] == ["a", "b"]


def test_a_decision_is_a_step_bound_to_the_exact_arguments() -> None:
    with recording() as tape:
        record_decision("refund", "deny", by="ana", reason="too much", policy="max 100", arguments={"amount": 500}, call_id="c1")
    kept = tape.steps[0]
    decision = json.loads(kept[names.DECISION])
    assert (decision["outcome"], decision["by"], decision["arguments_digest"][:7]) == ("deny", "ana", "sha256:")
    assert kept[names.GEN_AI_TOOL_CALL_DECISION_OUTCOME] == "deny"


def test_a_read_is_recorded_and_comes_back_with_its_type() -> None:
    async def fetch(key: str, name: str = "") -> str:
        return f"{key}{name}"

    async def agent() -> list[Any]:
        return [read("now", datetime.now, UTC), await read("row", fetch, "k", name="n"), read("env", {"A": "1"}.get, "A")]

    tape = recorded(agent)
    assert [s[names.STEP_KIND] for s in tape.steps] == ["io"] * 3
    result = replayed(tape, agent)
    assert result.equal
    assert isinstance(result.value[0], datetime)
    assert result.value[1:] == ["kn", "1"]


def test_a_named_scope_counts_from_the_step_around_it() -> None:
    async def work(items: list[str]) -> None:
        for item in items:
            with scope(item):
                look(1)
                await asyncio.sleep(0)

    async def agent(first: list[str], second: list[str]) -> None:
        async with agent_run("a"):
            await asyncio.gather(work(first), work(second))

    one = recorded(agent, ["a", "b"], ["c", "a"])
    other = recorded(agent, ["c"], ["b", "a", "a"])
    assert sorted(one.paths) == sorted(other.paths)
    assert "@a#1/tool_call:look#0" in one.paths
    assert told(replayed(one, agent, ["c", "a"], ["a", "b"])) == []


@pytest.mark.parametrize("what", ["encode"])
def test_a_failing_codec_costs_the_agent_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("codec")

    monkeypatch.setattr(codec, what, broken)
    with recording():
        here = boundary.here()
        assert here is not None
        with agent_run("a", input=1, definition={"x": 1}) as run:
            run.output = 1
            record_decision("t", "allow", by="me", arguments={"a": 1})
            assert read("n", lambda: 5) == 5
        assert here.session.failures >= 3


@pytest.mark.parametrize("value", [1, 1.0, True, "1", None, [1, 2], (1, 2), {"b": 1, "a": 2}, b"1", float("nan"), Path("x"), "\ud800"])
def test_a_definition_is_kept_as_it_is_however_often_it_comes(value: object) -> None:
    wanted = codec.encode({"value": value}).text
    assert [remembered({"value": value}, _defined) for _ in range(2)] == [wanted, wanted]

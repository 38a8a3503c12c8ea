"""Runs that others recorded answer the real SDKs: which step, what it gives, what is found to differ, and what cannot answer."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel

from spanreplay.boundary.boundary import call as boundary_call
from spanreplay.boundary.boundary import here
from spanreplay.instrumentation import agent_run, framework, record_decision, tool
from spanreplay.instrumentation.framework import Offered
from spanreplay.replay import Replayer, ReplayResult, build_runs
from spanreplay.replay.model import Run
from spanreplay.replay.reports.verdict import render_verdict
from spanreplay.spans.record import STATUS_ERROR, SpanRecord
from support.size import FULL

SECOND = 1_000_000_000
ran: list[str] = []


@tool(effect="read")
def get_weather(city: str, unit: str = "C") -> Any:
    ran.append(city)
    return None


def no_request(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"a request was sent: {request.url}")


@pytest.fixture(autouse=True)
def _no_body_runs() -> Iterator[None]:
    ran.clear()
    yield
    assert ran == [], "a tool's body ran"


# ---- what others record ------------------------------------------------------------------------------------------


class Trace:
    """Spans in the GenAI conventions, one after the other."""

    def __init__(self, trace_id: str = "a" * 32, agent: str | None = None) -> None:
        self.trace_id = trace_id
        self.spans: list[SpanRecord] = []
        self.now = int(trace_id, 16) % 1000 * SECOND
        self.root = self.span("invoke_agent", f"invoke_agent {agent}", {"gen_ai.agent.name": agent}) if agent else None

    def span(self, operation: str, name: str, attributes: dict[str, Any], **changes: Any) -> SpanRecord:
        self.now += SECOND
        made = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items() if value is not None}
        record = SpanRecord(
            trace_id=self.trace_id,
            span_id=f"{len(self.spans) + 1:016x}",
            parent_span_id=self.spans[0].span_id if self.spans and self.spans[0].name.startswith("invoke_agent") else None,
            name=name,
            kind=1,
            start_ns=self.now,
            end_ns=self.now + SECOND // 2,
            status=0,
            status_message="",
            attributes={"gen_ai.operation.name": operation, **made},
        )
        self.spans.append(dataclasses.replace(record, **changes))
        return self.spans[-1]

    def chat(self, asked: list[dict[str, Any]], said: list[dict[str, Any]] | None, **changes: Any) -> "Trace":
        answered = None if said is None else [{"role": "assistant", "parts": said, "finish_reason": "stop"}]
        self.span(
            "chat",
            "chat m",
            {
                "gen_ai.request.model": "m",
                "gen_ai.provider.name": "openai",
                "gen_ai.input.messages": asked,
                "gen_ai.output.messages": answered,
            },
            **changes,
        )
        return self

    def tool(self, name: str, arguments: Any, result: Any = None, call_id: str | None = None, **changes: Any) -> "Trace":
        self.span(
            "execute_tool",
            f"execute_tool {name}",
            {
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.arguments": arguments,
                "gen_ai.tool.call.result": result,
                "gen_ai.tool.call.id": call_id,
            },
            **changes,
        )
        return self

    def failed(self, kind: str, message: str) -> "Trace":
        """The last span failed."""
        last = self.spans[-1]
        attributes = {**last.attributes, "error.type": kind}
        self.spans[-1] = dataclasses.replace(last, status=STATUS_ERROR, status_message=message, attributes=attributes)
        return self

    def runs(self) -> list[Run]:
        return list(build_runs(self.spans))


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": content}]}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": "get_weather", "arguments": arguments}


def given(call_id: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response}]}


def weather_trace(trace_id: str = "a" * 32, agent: str | None = None, question: str = "Paris?") -> Trace:
    asked = [user(question)]
    calls = [call("c1", city="Paris"), call("c2", city="Oslo")]
    trace = Trace(trace_id, agent).chat(asked, calls)
    trace.tool("get_weather", {"city": "Paris"}, {"celsius": 21}, "c1")
    trace.tool("get_weather", {"city": "Oslo"}, {"celsius": 4}, "c2")
    after = [*asked, {"role": "assistant", "parts": calls}, given("c1", {"celsius": 21}), given("c2", {"celsius": 4})]
    return trace.chat(after, [text(f"Warm. {question}")])


# ---- agents ------------------------------------------------------------------------------------------------------


def openai_client() -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(no_request), verify=False)
    return openai.OpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=http, max_retries=2)


def chat_agent(question: str = "Paris?", *, model: str = "m") -> Any:
    client = openai_client()
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        said = client.chat.completions.create(model=model, messages=messages).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for asked in said.tool_calls:
            assert asked.type == "function"
            result = get_weather(**json.loads(asked.function.arguments))
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": json.dumps(result)})


def replayed(runs: list[Run], agent: Callable[..., Any], *arguments: Any, **options: Any) -> ReplayResult:
    return Replayer(runs, **options).replay(agent, *arguments)


def told(result: ReplayResult) -> list[tuple[str, int | None, str | None]]:
    return [(d.kind, d.step, d.field) for d in result.differences]


# ---- the same again ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [None, "weather"])
def test_a_run_of_others_answers(agent: str | None) -> None:
    result = replayed(weather_trace(agent=agent).runs(), chat_agent)
    assert (told(result), result.value, result.error) == ([], "Warm. Paris?", None)
    verdict = result.verdict
    assert (verdict.exit_code, verdict.recorded, verdict.matched, verdict.matched_by_meaning, verdict.matched_by_input) == (0, 4, 4, 4, 0)
    assert verdict.to_json()["steps"]["matched_by_meaning"] == 4


def test_streamed_and_in_another_api_too() -> None:
    def streamed() -> str:
        chunks = openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    def responses() -> str:
        return openai_client().responses.create(model="m", input="Hi").output_text

    def messages() -> str:
        http = httpx2.Client(transport=httpx2.MockTransport(no_request), verify=False)
        client = anthropic.Anthropic(api_key="none", base_url="http://model.invalid", http_client=http)
        with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]) as stream:
            return "".join(stream.text_stream)

    for agent in (streamed, responses, messages):
        result = replayed(Trace().chat([user("Hi")], [text("Hello "), text("there")]).runs(), agent)
        assert (told(result), result.value) == ([], "Hello there")


def test_what_the_user_lets_differ_is_answered_and_reported() -> None:
    runs = weather_trace().runs()
    first = replayed(runs, chat_agent, "Oslo?").differences[0]
    assert first.field is not None
    result = replayed(runs, chat_agent, "Oslo?", ignore=[first.field])
    assert result.equal, told(result)
    assert result.verdict.matched_by_tolerance >= 1
    assert {value["field"] for value in result.verdict.ignored} == {first.field}


def test_equal_calls_answer_in_their_order_and_not_once_more() -> None:
    trace = Trace()
    for celsius in (1, 2):
        trace.tool("get_weather", {"city": "Oslo"}, {"celsius": celsius})
    assert replayed(trace.runs(), lambda: [get_weather("Oslo"), get_weather(city="Oslo")]).value == [{"celsius": 1}, {"celsius": 2}]
    result = replayed(trace.runs(), lambda: [get_weather("Oslo") for _ in range(3)])
    assert (told(result), result.verdict.exit_code) == ([("already_used", None, None)], 1)


def test_calls_at_once_find_their_steps_whatever_their_order() -> None:
    def agent(city: str) -> Any:
        return chat_agent(f"{city}?")

    traces = [weather_trace(f"{n:032x}", question=f"City {n}?") for n in range(1, 5)]
    runs = [run for trace in traces for run in trace.runs()]

    def at_once() -> list[Any]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(agent, [f"City {n}" for n in (3, 1, 4, 2)]))

    result = replayed(runs, at_once)
    assert (told(result), result.value) == ([], [f"Warm. City {n}?" for n in (3, 1, 4, 2)])


def two_agents(*, apart: bool) -> list[Run]:
    """Two agents at once, each with its question, ask the same of one tool and get different results; in one trace, or each in its own."""
    traces = [Trace("1" * 32), Trace("2" * 32)] if apart else [Trace()] * 2
    names = ("one", "two")
    for trace, name in zip(traces, names, strict=True):
        trace.chat([user(name)], [call(f"c-{name}", city="Oslo")])
    for trace, name in zip(traces, names, strict=True):
        trace.tool("get_weather", {"city": "Oslo"}, f"for {name}", f"c-{name}")
    return list(build_runs(span for trace in dict.fromkeys(traces) for span in trace.spans))


def one_turn(question: str) -> Any:
    """A model call and the tool call that it asks for, with an agent's way between."""
    said = openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": question}]).choices[0].message
    yield
    assert said.tool_calls
    return [get_weather(**json.loads(asked.function.arguments)) for asked in said.tool_calls if asked.type == "function"]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_equal_calls_of_two_agents_get_each_its_own_result_whatever_their_order(order: tuple[str, str], apart: bool) -> None:
    async def agent() -> dict[str, Any]:
        asked, answered, found = {n: asyncio.Event() for n in order}, {n: asyncio.Event() for n in order}, {}

        async def sub_agent(name: str) -> None:
            turn = one_turn(name)
            next(turn)
            asked[name].set()
            await asked["one"].wait()
            await asked["two"].wait()
            if name == order[1]:
                await answered[order[0]].wait()
            try:
                next(turn)
            except StopIteration as ended:
                found[name] = ended.value
            answered[name].set()

        await asyncio.gather(sub_agent("one"), sub_agent("two"))
        return found

    result = replayed(two_agents(apart=apart), agent)
    assert (told(result), result.value) == ([], {"one": ["for one"], "two": ["for two"]})


def test_equal_calls_find_the_agent_that_made_them_where_nothing_says_what_asked_for_them() -> None:
    trace = Trace(agent="boss")
    for name in ("one", "two"):
        inner = trace.span("invoke_agent", f"invoke_agent {name}", {"gen_ai.agent.name": name}, end_ns=trace.now + 9 * SECOND)
        trace.tool("get_weather", {"city": "Oslo"}, f"for {name}", parent_span_id=inner.span_id)

    def agent() -> list[Any]:
        found = []
        with agent_run("boss"):
            for name in ("two", "one"):
                with agent_run(name):
                    found.append(get_weather("Oslo"))
        return found

    result = replayed(trace.runs(), agent)
    assert (told(result), result.value) == ([], ["for two", "for one"])


def _asks(question: str) -> list[Any]:
    said = openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": question}]).choices[0].message
    assert said.tool_calls
    return [asked for asked in said.tool_calls if asked.type == "function"]


def _by_id(asked: Any) -> Any:
    """A tool call as a framework makes it, which knows the model's id of it."""
    scope = here()
    assert scope is not None
    offered = Offered(name="get_weather", function=get_weather)
    made = framework.tool_call(scope, offered, json.loads(asked.function.arguments), layer="acme", call_id=asked.id)
    assert made is not None
    return boundary_call(scope, made, lambda: get_weather(**json.loads(asked.function.arguments)))


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_equal_calls_of_agents_that_one_task_drives_are_told_apart_by_their_ids(order: tuple[str, str]) -> None:
    def agent() -> dict[str, Any]:
        asked = {name: _asks(name)[0] for name in ("one", "two")}
        return {name: _by_id(asked[name]) for name in order}

    result = replayed(two_agents(apart=False), agent)
    assert (told(result), result.value) == ([], {"one": "for one", "two": "for two"})
    assert result.verdict.matched_by_chance == 0


def test_equal_calls_of_agents_that_one_task_drives_are_in_their_order_and_said_to_be_by_chance_without_ids() -> None:
    def agent() -> list[Any]:
        asked = [_asks(name)[0] for name in ("one", "two")]
        return [get_weather(**json.loads(one.function.arguments)) for one in asked]

    runs = two_agents(apart=False)
    result = replayed(runs, agent)
    assert (told(result), result.value, result.verdict.matched_by_chance) == ([], ["for one", "for two"], 1)
    assert "by chance" in render_verdict(result.verdict, runs, colour=False)


def test_equal_calls_of_an_agent_and_of_the_one_around_it_are_each_their_own() -> None:
    trace = Trace(agent="boss")
    trace.tool("get_weather", {"city": "Oslo"}, "for boss")
    inner = trace.span("invoke_agent", "invoke_agent sub", {"gen_ai.agent.name": "sub"}, end_ns=trace.now + 9 * SECOND)
    trace.tool("get_weather", {"city": "Oslo"}, "for sub", parent_span_id=inner.span_id)

    def agent() -> list[Any]:
        with agent_run("boss"):
            with agent_run("sub"):
                inside = get_weather("Oslo")
            return [inside, get_weather("Oslo")]

    result = replayed(trace.runs(), agent)
    assert (told(result), result.value) == ([], ["for sub", "for boss"])


def test_a_call_of_an_earlier_answer_that_was_left_out_does_not_take_the_place_of_a_later_one() -> None:
    trace = Trace()
    for number, question in enumerate(("one", "two")):
        trace.chat([user(question)], [call(f"c{number}", city="Oslo")]).tool("get_weather", {"city": "Oslo"}, question)

    def agent() -> Any:
        _asks("one")
        return get_weather(**json.loads(_asks("two")[0].function.arguments))

    result = replayed(trace.runs(), agent)
    assert (told(result), result.value) == ([("unreached", 2, None)], "two")


def test_siblings_finish_in_the_recorded_order() -> None:
    @tool
    async def slow(name: str) -> str:
        raise AssertionError

    trace = Trace().chat([user("go")], [{**call(c, name=c), "name": "slow"} for c in ("a", "b")])
    trace.tool("slow", {"name": "a"}, "A", "a", end_ns=trace.now + 9 * SECOND)
    trace.tool("slow", {"name": "b"}, "B", "b")
    trace.chat([user("end")], [text("done")])

    async def agent() -> list[str]:
        client = openai.AsyncOpenAI(
            api_key="none",
            base_url="http://model.invalid/v1",
            http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(no_request), verify=False),
        )
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
        finished: list[str] = []

        async def one(name: str) -> None:
            finished.append(await slow(name))

        await asyncio.gather(one("a"), one("b"))
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "end"}])
        return finished

    result = replayed(trace.runs(), agent)
    assert (told(result), result.value) == ([], ["B", "A"])


def test_a_framework_makes_what_it_makes_of_what_its_function_is_answered() -> None:
    def through_a_framework(function: Callable[..., Any], city: str) -> dict[str, Any]:
        """A tool as a framework calls it: failures become results, and what the function gave is put into its own form."""
        scope = here()
        assert scope is not None
        offered = Offered(name="get_weather", function=function)
        call = framework.tool_call(scope, offered, {"city": city}, layer="acme")

        def body() -> dict[str, Any]:
            try:
                return {"id": city, "content": function(city)}
            except RuntimeError as error:
                return {"id": city, "content": f"failed: {error}"}

        assert call is not None
        return boundary_call(scope, call, body)

    trace = Trace().tool("get_weather", {"city": "Oslo"}, {"celsius": 4})
    trace.tool("get_weather", {"city": "Rome"}).failed("RuntimeError", "no service")
    result = replayed(trace.runs(), lambda: [through_a_framework(get_weather, city) for city in ("Oslo", "Rome")])
    assert told(result) == []
    assert result.value == [{"id": "Oslo", "content": {"celsius": 4}}, {"id": "Rome", "content": "failed: no service"}]

    def bare(city: str) -> Any:
        raise AssertionError("its body ran")

    whole = Trace().tool("get_weather", {"city": "Oslo"}, {"id": "Oslo", "content": "4"})
    result = replayed(whole.runs(), through_a_framework, bare, "Oslo")
    assert (told(result), result.value) == ([], {"id": "Oslo", "content": "4"}), "a function that is no @tool is answered at the framework"


# ---- what a call gets --------------------------------------------------------------------------------------------


class Weather(BaseModel):
    celsius: int


@dataclasses.dataclass
class Point:
    x: int


def test_a_result_is_what_the_tool_declares() -> None:
    @tool
    def as_text() -> str:
        raise AssertionError

    @tool
    def as_model() -> Weather:
        raise AssertionError

    @tool
    def as_list() -> list[Point]:
        raise AssertionError

    @tool
    def undeclared():  # type: ignore[no-untyped-def]
        raise AssertionError

    @tool
    def items() -> Iterator[int]:
        yield 0

    @tool
    def as_dict() -> dict[str, int]:
        raise AssertionError

    @tool
    def nothing() -> None:
        raise AssertionError

    trace = Trace().tool("as_text", {}, {"celsius": 21}).tool("as_model", {}, {"celsius": 21}).tool("as_list", {}, [{"x": 1}])
    trace.tool("undeclared", {}, '{"celsius": 21}').tool("items", {}, [1, 2])
    result = replayed(trace.runs(), lambda: [as_text(), as_model(), as_list(), undeclared(), list(items())])
    assert (told(result), result.value) == ([], ['{"celsius": 21}', Weather(celsius=21), [Point(1)], {"celsius": 21}, [1, 2]])
    texts = [("as_text", '{"celsius": 21}'), ("as_model", '{"celsius": 21}'), ("as_list", '[{"x": 1}]'), ("as_dict", '{"celsius": 21}')]
    plain, form = Trace(), {"openinference.span.kind": "TOOL", "output.mime_type": "text/plain"}
    for name, given_back in [*texts, ("undeclared", '{"celsius": 21}')]:
        plain.span("", name, {**form, "tool.name": name, "output.value": given_back, "input.value": "{}"})
    plain.span("", "nothing", {**form, "tool.name": "nothing", "output.value": "null", "output.mime_type": "application/json"})
    result = replayed(plain.runs(), lambda: [as_text(), as_model(), as_list(), as_dict(), undeclared(), nothing()])
    expected = ['{"celsius": 21}', Weather(celsius=21), [Point(1)], {"celsius": 21}, '{"celsius": 21}', None]
    assert (told(result), result.value) == ([], expected)


@pytest.mark.parametrize(
    "result",
    [
        [{"text": '{"celsius": 21}'}],
        {"toolUseId": "c", "status": "success", "content": [{"text": '{"celsius": 21}'}]},
        {"output": {"content": '{"celsius": 21}', "type": "tool", "tool_call_id": "c"}},
        {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": {"content": '{"celsius": 21}', "tool_call_id": "c"}},
        [{"type": "text", "text": '{"celsius": 21}'}],
    ],
)
def test_a_result_comes_out_of_the_envelope_that_a_framework_put_it_in(result: Any) -> None:
    assert replayed(Trace().tool("get_weather", {"city": "Oslo"}, result).runs(), get_weather, "Oslo").value == {"celsius": 21}


class NoWeatherError(Exception):
    pass


@pytest.mark.parametrize(
    ("kind", "message", "raised"),
    [
        ("RuntimeError", "no service", RuntimeError("no service")),
        ("builtins.TimeoutError", "late", TimeoutError("late")),
        (f"{__name__}.NoWeatherError", "none", NoWeatherError("none")),
        ("KeyError", "'Oslo'", KeyError("Oslo")),
        ("ValueError", "ValueError: no such city", ValueError("no such city")),
        ("", "Error running tool (non-fatal): {'tool_name': 'get_weather', 'error': \"it's off\"}", Exception("it's off")),
        ("somewhere.Unknown", "odd", None),
    ],
)
def test_a_failed_tool_raises_what_it_raised(kind: str, message: str, raised: Exception | None) -> None:
    def agent() -> Any:
        try:
            return get_weather("Oslo")
        except Exception as error:
            return error

    result = replayed(Trace().tool("get_weather", {"city": "Oslo"}).failed(kind, message).runs(), agent)
    assert told(result) == []
    assert str(result.value) == (message if raised is None else str(raised))
    assert raised is None or type(result.value) is type(raised)


@pytest.mark.parametrize(
    ("kind", "message", "raised"),
    [("429", "slow down", openai.RateLimitError), ("openai.BadRequestError", "Error code: 400 - no", openai.BadRequestError)],
)
def test_a_failed_model_call_is_a_response_of_its_status_and_not_tried_again(kind: str, message: str, raised: type[Exception]) -> None:
    result = replayed(Trace().chat([user("Paris?")], None).failed(kind, message).runs(), chat_agent)
    assert told(result) == []
    assert type(result.error) is raised
    assert message.rpartition(" - ")[2] in str(result.error)


@pytest.mark.parametrize(
    "said", ["no", "BadRequestError: Error code: 400 - no", "Error code: 400 - {'error': {'message': 'no', 'code': 'x'}}"]
)
def test_a_failed_model_call_says_what_the_server_said_once(said: str) -> None:
    result = replayed(Trace().chat([user("Paris?")], None).failed("openai.BadRequestError", said).runs(), chat_agent)
    assert str(result.error) == "Error code: 400 - no"


def test_a_model_call_that_failed_without_a_status_cannot_be_repeated() -> None:
    result = replayed(Trace().chat([user("Paris?")], None).failed("openai.APITimeoutError", "Request timed out.").runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("not_replayable", 1, None)], 125)
    assert "it ended as timeout" in result.differences[0].detail


def test_text_and_calls_of_one_answer_may_be_recorded_in_either_order() -> None:
    parts = [call("c1", city="Paris"), text("I look.")]
    messages = [user("Paris?"), {"role": "assistant", "parts": parts}, given("c1", "sunny")]
    history: Any = [
        {"role": "user", "content": "Paris?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]

    def agent(said: str) -> Any:
        history[1]["content"] = said
        return openai_client().chat.completions.create(model="m", messages=history).choices[0].message.content

    runs = Trace().chat(messages, [text("Done.")]).runs()
    assert told(replayed(runs, agent, "I look.")) == []
    assert told(replayed(runs, agent, "I looked.")) == [("input", 1, "messages[1].content")]


# ---- differences -------------------------------------------------------------------------------------------------


def test_a_changed_word_is_found() -> None:
    result = replayed(weather_trace().runs(), chat_agent, "Rome?")
    assert told(result) == [("input", 1, "messages[0].content")]
    (found,) = result.differences
    assert (found.recorded, found.actual, result.verdict.exit_code) == ('"Paris?"', '"Rome?"', 1)
    assert found.where is not None
    assert "test_foreign.py" in found.where


def test_a_secret_that_others_kept_is_no_difference_and_not_shown() -> None:
    secret = "sk-proj-" + "Ab3" * 12
    trace = weather_trace(question=f"Log in with {secret}!")
    result = replayed(trace.runs(), chat_agent, f"Log in with {secret}!")
    assert (told(result), result.value) == ([], f"Warm. Log in with {secret}!")
    (found,) = replayed(trace.runs(), chat_agent, f"Log out with {secret}!").differences
    assert secret not in json.dumps(dataclasses.asdict(found))


def test_another_model_is_found() -> None:
    result = replayed(weather_trace().runs(), lambda: chat_agent(model="n"))
    assert told(result) == [("input", 1, "model")]


def test_a_changed_argument_is_found_at_the_nearest_call() -> None:
    result = replayed(weather_trace().runs(), lambda: [get_weather("Paris"), get_weather("Bergen")])
    assert told(result) == [("input", 3, "arguments.city")]
    result = replayed(weather_trace().runs(), lambda: get_weather("Oslo", unit="F"))
    assert told(result) == [("input", 3, "arguments.unit")]


def test_an_argument_that_the_model_now_asks_for_is_found_where_calls_have_no_ids() -> None:
    asked = [user("Paris?")]
    calls = [call("c1", city="Bergen")]
    trace = Trace().chat(asked, calls).tool("get_weather", {"city": "Oslo"}, {"celsius": 4})
    trace.chat([*asked, {"role": "assistant", "parts": calls}, given("c1", {"celsius": 4})], [text("Cold.")])
    result = replayed(trace.runs(), chat_agent)
    assert [(d.field, d.recorded, d.actual) for d in result.differences] == [("arguments.city", '"Oslo"', '"Bergen"')]
    assert result.verdict.exit_code == 1


def test_a_tool_that_was_never_called_and_one_call_more() -> None:
    @tool
    def book() -> None:
        raise AssertionError

    result = replayed(weather_trace().runs(), book)
    assert told(result) == [("never_recorded", None, None)]
    assert "no call of this tool" in result.differences[0].detail


@pytest.mark.parametrize("lost", [{"c1"}, {"c2"}, {"c1", "c2"}])
def test_a_call_that_others_recorded_no_span_of_is_a_fault_of_the_record(lost: set[str]) -> None:
    trace = weather_trace()
    trace.spans = [span for span in trace.spans if span.attributes.get("gen_ai.tool.call.id") not in lost]
    result = replayed(trace.runs(), chat_agent)
    assert ([d.kind for d in result.differences], result.verdict.exit_code) == (["not_replayable"], 125)
    assert "has no span of this call, though step 1 asked for it" in result.differences[0].detail


def test_a_model_call_that_is_in_no_span_is_a_fault_of_the_trace() -> None:
    trace = weather_trace()
    del trace.spans[0]
    result = replayed(trace.runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("not_replayable", None, None)], 125)
    assert f"trace {'a' * 32} has no span of this call" in result.differences[0].detail
    assert "step 3" in result.differences[0].detail


def test_a_model_call_that_goes_on_where_the_record_ends_may_be_one_that_is_missing() -> None:
    trace = weather_trace()
    del trace.spans[-1]
    result = replayed(trace.runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("never_recorded", None, None)], 1)
    assert f"its span is missing in trace {'a' * 32}" in result.differences[0].detail


def test_a_call_that_begins_like_a_recorded_one_and_is_made_twice_is_the_agents_difference() -> None:
    def agent() -> None:
        for _ in range(2):
            openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": "Paris?"}])

    assert told(replayed(weather_trace().runs(), agent)) == [("input", 4, "messages[1]")]


def test_steps_add_up_and_what_was_not_compared_is_said() -> None:
    trace = Trace(agent="boss")
    outer = trace.span(
        "execute_tool",
        "execute_tool ask",
        {"gen_ai.tool.name": "ask", "gen_ai.tool.call.arguments": {"q": "Oslo?"}, "gen_ai.tool.call.result": "4"},
    )
    trace.spans[-1] = outer = dataclasses.replace(outer, end_ns=outer.start_ns + 9 * SECOND)
    helper = trace.span(
        "invoke_agent", "invoke_agent helper", {"gen_ai.agent.name": "helper"}, parent_span_id=outer.span_id, end_ns=outer.end_ns
    )
    trace.chat([user("A prompt")], [text("4")], parent_span_id=helper.span_id)
    other = trace.span(
        "invoke_agent",
        "invoke_agent other",
        {"gen_ai.agent.name": "other"},
        start_ns=trace.now + 20 * SECOND,
        end_ns=trace.now + 40 * SECOND,
    )
    trace.now += 25 * SECOND
    trace.chat([user("Hi")], [text("Ho")], parent_span_id=other.span_id)

    @tool
    def ask(q: str) -> str:
        raise AssertionError

    def agent() -> None:
        ask("Oslo?")
        openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])

    runs = trace.runs()
    result = replayed(runs, agent)
    assert told(result) == []
    found = result.verdict
    assert (found.recorded, found.matched, found.covered, dict(found.passed)) == (len(runs[0].steps), 2, 2, {"agent": 1})
    said = render_verdict(found, runs, colour=False).splitlines()
    assert (
        said[0]
        == "2 of 5 recorded steps answered a call, found by their meaning, 2 ran inside an answered tool, 1 needed no answer (agent)"
    )
    inside = "note: not compared, as the tool around it was answered whole: agent helper (step 2), model_call m of helper (step 3)"
    assert inside in said
    assert found.to_json()["inside_answered"] == [{"run_id": runs[0].run_id, "step": 2}, {"run_id": runs[0].run_id, "step": 3}]


def test_a_step_inside_a_tool_that_answered_a_call_itself_is_counted_once() -> None:
    trace = Trace(agent="boss")
    outer = trace.tool("get_weather", {"city": "Oslo"}, "4").spans[-1]
    trace.chat([user("Hi")], [text("Ho")], parent_span_id=outer.span_id)
    trace.spans[-2] = dataclasses.replace(outer, end_ns=outer.start_ns + 9 * SECOND)

    def agent() -> None:
        openai_client().chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        get_weather("Oslo")

    result = replayed(trace.runs(), agent)
    found = result.verdict
    assert (told(result), found.recorded, found.matched, found.covered, found.inside) == ([], 2, 2, 0, ())


def weather_inside_model_spans() -> list[Run]:
    trace = weather_trace()
    first, *tools, last = trace.spans
    first = dataclasses.replace(first, end_ns=tools[-1].end_ns)
    sent = dataclasses.replace(tools[0], span_id="f" * 16, name="POST", start_ns=first.start_ns + 1, end_ns=first.start_ns + 2)
    sent = dataclasses.replace(sent, attributes={"http.request.method": "POST", "url.full": "http://model.invalid"})
    trace.spans = [first, *(dataclasses.replace(span, parent_span_id=first.span_id) for span in (sent, *tools)), last]
    return trace.runs()


def test_a_model_call_that_answers_covers_none_of_the_agents_calls_inside_its_span() -> None:
    runs = weather_inside_model_spans()
    assert [step.parent_seq for step in runs[0].steps if step.kind == "tool_call"] == [1, 1]
    result = replayed(runs, chat_agent)
    assert (told(result), result.value, result.verdict.matched) == ([], "Warm. Paris?", 4)
    assert told(replayed(runs, get_weather, "Oslo"))[0] == ("unreached", 1, None)


def test_another_call_than_the_one_without_a_span_is_the_agents_difference() -> None:
    trace = weather_trace()
    trace.spans = [span for span in trace.spans if span.attributes.get("gen_ai.tool.call.id") != "c2"]
    result = replayed(trace.runs(), lambda: (openai_client(), get_weather("Rome")))
    assert told(result)[0] == ("input", 2, "arguments.city")


def test_threads_that_ask_the_same_each_stay_in_their_run() -> None:
    spans: list[SpanRecord] = []
    for place in range(2):
        trace = Trace(f"{place + 1:032x}", f"n{place}")
        for number in range(2):
            trace.chat([user("Hi")], [text(f"{place}.{number}")])
        whole = dataclasses.replace(trace.spans[0], end_ns=trace.now + SECOND)
        ahead = whole.start_ns - SECOND
        spans += [dataclasses.replace(s, start_ns=s.start_ns - ahead, end_ns=(s.end_ns or 0) - ahead) for s in (whole, *trace.spans[1:])]
    both = threading.Barrier(2)
    found: list[list[str | None]] = []

    def asks() -> None:
        hello: Any = [{"role": "user", "content": "Hi"}]
        said = []
        for _ in range(2):
            both.wait(30)
            said.append(openai_client().chat.completions.create(model="m", messages=hello).choices[0].message.content)
        found.append(said)

    def agent() -> None:
        threads = [threading.Thread(target=asks) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result = replayed(list(build_runs(spans)), agent)
    assert (told(result), sorted(found)) == ([], [["0.0", "0.1"], ["1.0", "1.1"]])
    assert result.verdict.matched_by_chance > 0


@pytest.mark.parametrize(("later", "answers", "chance"), [(0, "ab", 1), (0, "aa", 0), (90, "ab", 0)])
def test_that_chance_chose_between_equal_calls_made_at_once_is_said(later: int, answers: str, chance: int) -> None:
    trace = Trace()
    for place, said in enumerate(answers):
        start = trace.now + 2 * SECOND + place * later * SECOND
        made = {"gen_ai.agent.name": f"n{place}"}
        name = f"invoke_agent n{place}"
        agent = trace.span("invoke_agent", name, made, parent_span_id=None, start_ns=start, end_ns=start + 30 * SECOND)
        inner = start + 5 * SECOND
        trace.chat([user("Hi")], [text(said)], parent_span_id=agent.span_id, start_ns=inner, end_ns=inner + SECOND)

    def asks() -> list[str | None]:
        hello: Any = [{"role": "user", "content": "Hi"}]
        return [openai_client().chat.completions.create(model="m", messages=hello).choices[0].message.content for _ in answers]

    runs = trace.runs()
    result = replayed(runs, asks)
    assert (told(result), result.value, result.verdict.matched_by_chance) == ([], list(answers), chance)
    assert ("by chance" in render_verdict(result.verdict, runs, colour=False)) == bool(chance)


def test_calls_that_do_not_come_are_told() -> None:
    result = replayed(weather_trace().runs(), get_weather, "Paris")
    assert told(result) == [("unreached", 1, None), ("unreached", 3, None), ("unreached", 4, None)]


def test_a_tool_that_is_not_decorated_is_told() -> None:
    def plain_agent() -> str:
        client = openai_client()
        first = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Paris?"}]).choices[0].message
        results: list[Any] = [
            {"role": "tool", "tool_call_id": c, "content": json.dumps({"celsius": n})} for c, n in (("c1", 21), ("c2", 4))
        ]
        messages: list[Any] = [{"role": "user", "content": "Paris?"}, first.model_dump(exclude_none=True), *results]
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content or ""

    result = replayed(weather_trace().runs(), plain_agent)
    assert told(result) == [("unreached", 2, None), ("unreached", 3, None)]
    assert all("decorated with" in d.detail for d in result.differences)


def test_a_tool_that_is_an_agent_is_passed_through_and_a_failure_before_the_function_is_told_to_the_model() -> None:
    asked = [user("Paris?")]
    calls = [call("c1", town="Paris")]
    trace = Trace().chat(asked, calls).tool("get_weather", {"town": "Paris"}).failed("ValidationError", "no city")
    trace.tool("research", {"topic": "Paris"}, "warm")
    outer = trace.spans[-1]
    trace.spans[-1] = dataclasses.replace(outer, end_ns=(outer.end_ns or 0) + 9 * SECOND)
    trace.chat([user("Look up Paris")], [text("warm")])
    trace.spans[-1] = dataclasses.replace(trace.spans[-1], parent_span_id=outer.span_id)
    trace.now += 9 * SECOND
    trace.chat([*asked, {"role": "assistant", "parts": calls}, given("c1", "no city")], [text("Warm.")])

    def agent() -> Any:
        client = openai_client()
        messages: list[Any] = [{"role": "user", "content": "Paris?"}]
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Look up Paris"}])
        messages += [said.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "c1", "content": "no city"}]
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    result = replayed(trace.runs(), agent)
    assert (told(result), result.value) == ([], "Warm.")


def test_a_wrong_request_of_the_agents_own_is_stopped() -> None:
    result = replayed(weather_trace().runs(), lambda: httpx2.post("http://bank.invalid/pay"))
    assert told(result) == [("never_recorded", None, None)]


# ---- which run ---------------------------------------------------------------------------------------------------


def several() -> list[Run]:
    """Two runs of one agent and one of another, in traces of their own."""
    traces = (
        weather_trace("1" * 32, "north", "Oslo?"),
        weather_trace("2" * 32, "north", "Bergen?"),
        weather_trace("3" * 32, "south", "Rome?"),
    )
    return [run for trace in traces for run in trace.runs()]


def named(name: str, question: str) -> Any:
    with agent_run(name, input={"question": question}) as run:
        run.output = chat_agent(question)
        return run.output


def test_the_calls_tell_which_run_it_is() -> None:
    def in_any_order() -> list[Any]:
        return [chat_agent(question) for question in ("Rome?", "Bergen?", "Oslo?")]

    def under_names_of_its_own() -> list[Any]:
        return [named("main", question) for question in ("Rome?", "Bergen?", "Oslo?")]

    for agent in (in_any_order, under_names_of_its_own):
        result = replayed(several(), agent)
        assert (told(result), result.value) == ([], ["Warm. Rome?", "Warm. Bergen?", "Warm. Oslo?"])


def test_an_agent_of_the_recorded_name_is_compared_with_the_runs_of_that_name() -> None:
    result = replayed(several(), named, "south", "Oslo!")
    (found,) = result.differences
    assert (found.kind, found.recorded, found.actual) == ("input", '"Rome?"', '"Oslo!"')


def test_runs_that_did_not_come_are_one_difference_each() -> None:
    result = replayed(several(), chat_agent, "Rome?")
    assert told(result) == [("unreached", None, None)] * 2
    assert all(f"FILE#{'3' * 12}, or {'3' * 12} where" in d.detail for d in result.differences), "the run that it came to"
    assert "FILE#RUN, or RUN where" in replayed(several(), lambda: None).differences[0].detail


def test_a_run_without_content_does_not_stand_in_the_way_of_the_run_that_it_is() -> None:
    mute = Trace("4" * 32)
    mute.span("chat", "chat m", {"gen_ai.request.model": "m"})
    whole = weather_trace("5" * 32)
    assert replayed([*mute.runs(), *whole.runs()], chat_agent).value == "Warm. Paris?"

    def agent() -> None:
        client = openai_client()
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Paris?"}])
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Rome?"}])

    result = replayed([*mute.runs(), *whole.runs()], agent)
    assert [(d.kind, d.run_id, d.step) for d in result.differences] == [("input", "5" * 32, 4)]


def test_sub_agents_are_passed_through_and_decisions_are_no_calls() -> None:
    def agent() -> Any:
        with agent_run("lead"), agent_run("helper"):
            record_decision("get_weather", "allow", by="policy")
            return chat_agent()

    result = replayed(weather_trace(agent="weather").runs(), agent)
    assert (told(result), result.value) == ([], "Warm. Paris?")


# ---- grades ------------------------------------------------------------------------------------------------------


def test_a_step_without_content_cannot_answer_and_says_why() -> None:
    trace = Trace().chat([user("Paris?")], None)
    result = replayed(trace.runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("not_replayable", 1, None)], 125)
    assert "no output was captured" in result.differences[0].detail
    bare = Trace()
    bare.span("chat", "chat m", {"gen_ai.request.model": "m"})
    result = replayed(bare.runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("not_replayable", 1, None)], 125)
    assert "no input was captured" in result.differences[0].detail
    bare.tool("get_weather", None)
    assert told(replayed(bare.runs(), get_weather, "Paris")) == [("not_replayable", 2, None)]


def test_an_incomplete_record_is_judged_only_where_that_is_accepted() -> None:
    trace = weather_trace()
    trace.spans[1] = dataclasses.replace(trace.spans[1], dropped_attributes=3)
    result = replayed(trace.runs(), chat_agent)
    assert (told(result), result.verdict.exit_code) == ([("not_replayable", 2, None)], 125)
    accepted = replayed(trace.runs(), chat_agent, accept_incomplete=True)
    assert (told(accepted), accepted.value, accepted.verdict.exit_code) == ([], "Warm. Paris?", 0)
    assert accepted.verdict.to_json()["accept_incomplete"] is True
    assert replayed(trace.runs(), chat_agent, "Rome?", accept_incomplete=True).verdict.exit_code == 1


def test_what_is_left_of_a_cut_text_is_compared_where_that_is_accepted() -> None:
    question = "Which is the warmest city? " + "x" * 2100
    trace = Trace().tool("get_weather", question[:2048], {"celsius": 1})
    assert replayed(trace.runs(), get_weather, question).verdict.exit_code == 125
    accepted = replayed(trace.runs(), get_weather, question, accept_incomplete=True)
    assert (told(accepted), accepted.value) == ([], {"celsius": 1})


CUTS = ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]


@pytest.mark.parametrize("name", CUTS)
def test_what_is_left_of_cut_json_answers_and_is_compared_where_that_is_accepted(name: str) -> None:
    for place, span in enumerate(weather_trace().spans):
        whole = str(span.attributes.get(name, ""))
        for size in range(3, len(whole), 1 if FULL else max(5, len(whole) // 7)):
            trace = weather_trace()
            trace.spans[place] = dataclasses.replace(span, attributes={**span.attributes, name: whole[:size]})
            runs = trace.runs()
            accepted = replayed(runs, chat_agent, accept_incomplete=True)
            assert (told(accepted), accepted.verdict.exit_code) == ([], 0), whole[:size]
            changed = replayed(runs, chat_agent, "Rome?", accept_incomplete=True)
            assert changed.verdict.exit_code == 1 or (place, name) == (0, CUTS[0]), whole[:size]
    refused = replayed(runs, chat_agent)
    assert refused.verdict.exit_code == 125


def test_threads_of_one_run_share_it() -> None:
    trace = Trace()
    for n in range(20):
        trace.tool("get_weather", {"city": f"city {n}"}, {"celsius": n})
    found: list[Any] = []

    def agent() -> None:
        threads = [threading.Thread(target=lambda n=n: found.append((n, get_weather(f"city {n}")["celsius"]))) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    result = replayed(trace.runs(), agent)
    assert told(result) == []
    assert sorted(found) == [(n, n) for n in range(20)]

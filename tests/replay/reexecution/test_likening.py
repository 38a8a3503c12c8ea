"""When a live input counts as a recorded one: made ids and times, what the user lets differ, and which step a call then gets."""

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import process
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run, shims, tool
from spanreplay.instrumentation.provider import registry
from spanreplay.replay.model import Step, Wire
from spanreplay.replay.reexecution.comparing import Comparing
from spanreplay.replay.reexecution.engine import Replayer, ReplayResult
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.likening import Likening
from spanreplay.replay.reexecution.places import Place
from support.handmade import run, step
from support.taped import Tape, recorded, told


def replayed(tape: Tape, function: Callable[..., Any], *args: Any, more: bool | None = None, **how: Any) -> ReplayResult:
    active = process.active
    try:
        return Replayer(tape.runs(), guard=False, **how).replay(function, *args, **({} if more is None else {"more": more}))
    finally:
        process.active = active
        shims.uninstall()


# ---- ids and times --------------------------------------------------------------------------------------------------

ONE, OTHER = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def chat(call_id: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    called = {"id": call_id, "type": "function", "function": {"name": "t", "arguments": "{}"}}
    said = [{"role": "user", "content": text}, {"role": "assistant", "tool_calls": [called]}, {"role": "tool", "tool_call_id": call_id}]
    return {"method": "POST", "url": "https://m/v1/chat/completions", "body": {"model": "m", "messages": said, **more}}


def asked(number: int, request: dict[str, Any], provider: str = "openai.chat", output: Any = None) -> Step:
    wire = Wire(
        provider=provider,
        method="POST",
        url="",
        request_headers=(),
        request_body=b"",
        status=200,
        response_headers=(),
        response_body=b"",
        chunks=(),
        complete=True,
    )
    return step(number, f"model_call#{number}", json.dumps(request), wire=wire, output=output)


def judged(steps: list[Step], at: int, request: dict[str, Any], likening: Likening | None = None) -> Any:
    text = comparable(json.dumps(request))
    return (likening or Likening(run(*steps))).judge(steps[at], comparable(steps[at].typed_input), text)


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (chat("call_a1B2c3D4"), chat("call_x9Y8z7W6"), True),
        (chat(ONE), chat(OTHER), True),
        (chat("call_a1B2c3D4"), chat("toolu_x9Y8z7W6"), False),
        (chat("call_1"), chat("call_2"), False),
        (chat("user_settings"), chat("user_location"), False),
        (chat(ONE, "about it"), chat(OTHER, "about this"), False),
        (chat(ONE, f"of {ONE}"), chat(OTHER, f"of {OTHER}"), True),
        (chat("call_1", f"of {ONE}"), chat("call_1", f"of {OTHER}"), False),
        (chat(ONE, created=1732900000), chat(ONE, created=1732999999), True),
        (chat(ONE, created=1732900000), chat(ONE, created=7), False),
        (chat(ONE, metadata={"session": ONE}), chat(OTHER, metadata={"session": OTHER}), True),
        (chat(ONE, metadata={"session": ONE}), chat(OTHER, metadata={"session": "0e9fad5b-d9cb-469f-a165-70867728950e"}), False),
    ],
)
def test_ids_that_programs_make_count_as_equal_where_they_stand_for_each_other(
    before: dict[str, Any], after: dict[str, Any], counts: bool
) -> None:
    like = judged([asked(1, before)], 0, after)
    assert (like is not None and like.by == "renaming") is counts


def test_within_a_run_an_id_stands_for_one_other() -> None:
    steps = [asked(1, chat(ONE)), asked(2, chat(ONE, "and again"))]
    likening = Likening(run(*steps))
    like = judged(steps, 0, chat(OTHER), likening)
    assert like is not None
    likening.accept(like)
    assert judged(steps, 1, chat(OTHER, "and again"), likening).renamed == {}
    assert judged(steps, 1, chat(str(uuid.uuid4()), "and again"), likening) is None


def test_ids_that_the_record_gave_are_no_ones_own() -> None:
    given = {"messages": [{"parts": [{"type": "tool_call", "id": ONE}]}]}
    steps = [asked(1, chat("call_0"), output=given), asked(2, chat(ONE)), asked(3, chat(OTHER))]
    assert judged(steps, 1, chat(str(uuid.uuid4()))) is None
    assert judged(steps, 2, chat(str(uuid.uuid4()))) is not None
    assert judged([asked(1, chat(ONE)), asked(2, chat(OTHER))], 0, chat(OTHER)) is None, "they have changed places"


@pytest.mark.parametrize("provider", registry(), ids=lambda p: p.NAME)
def test_every_provider_names_its_places_as_patterns(provider: Any) -> None:
    assert all(Place.read(text) for text in (*provider.LOCAL_IDS, *provider.LOCAL_TIMES))


def model(body: dict[str, Any]) -> None:
    scope = boundary.here()
    assert scope is not None
    boundary.call(scope, Call(kind="model_call", name="m", input=codec.encode(body)), lambda: None)


def loops(made: Callable[[], str]) -> None:
    said: list[Any] = []
    for number in range(3):
        said = [*said, {"parts": [{"type": "tool_call", "id": made(), "name": f"t{number}"}]}]
        model({"messages": said})


def test_a_framework_that_makes_its_own_call_ids_replays_and_it_is_said() -> None:
    tape = recorded(loops, lambda: f"call_{uuid.uuid4().hex}")
    result = replayed(tape, loops, lambda: f"call_{uuid.uuid4().hex}")
    assert result.equal, told(result)
    assert (result.verdict.matched, result.verdict.matched_by_renaming) == (3, 3)
    assert "3 matched by renaming" in str(result)


# ---- what the user lets differ --------------------------------------------------------------------------------------


@tool(effect="read")
async def look(x: Any, note: str = "") -> Any:
    return x


async def looks(*calls: tuple[Any, str]) -> list[Any]:
    return [await look(x, note) for x, note in calls]


def test_what_is_ignored_is_reported_and_nothing_else_is_ignored() -> None:
    tape = recorded(looks, (1, "a"), (2, "b"))
    result = replayed(tape, looks, (1, "c"), (2, "b"), ignore=["arguments.note"])
    assert result.equal, told(result)
    assert (result.verdict.matched, result.verdict.matched_by_tolerance) == (2, 1)
    (ignored,) = result.verdict.ignored
    assert (ignored["step"], ignored["field"], ignored["recorded"], ignored["actual"]) == (1, "arguments.note", '"a"', '"c"')
    other = replayed(tape, looks, (1, "c"), (3, "d"), ignore=["arguments.note"])
    assert told(other) == [("input", 2, "tool_call look", "arguments.x")]
    assert other.differences[0].also == ()
    assert told(replayed(tape, looks, (1, "c"))) == [("input", 1, "tool_call look", "arguments.note")]


def test_texts_are_compared_without_what_a_regular_expression_matches() -> None:
    tape = recorded(looks, ("took 5 ms", ""))
    assert replayed(tape, looks, ("took 77 ms", ""), ignore=["/[0-9]+ ms/"]).equal
    assert not replayed(tape, looks, ("gave 77 ms", ""), ignore=["/[0-9]+ ms/"]).equal


async def together(*calls: tuple[Any, str]) -> list[Any]:
    return list(await asyncio.gather(*(look(x, note) for x, note in calls)))


def test_a_step_that_fits_better_is_taken_whatever_is_ignored() -> None:
    tape = recorded(together, (1, "a"), (2, "b"))
    result = replayed(tape, together, (2, "b"), (1, "a"), ignore=["arguments.x", "arguments.note"])
    assert result.value == [2, 1]
    assert result.verdict.matched_by_tolerance == 0
    near = replayed(recorded(together, (1, "a"), (1, "b"), (2, "c")), together, (2, "x"), (1, "a"), (1, "b"), ignore=["arguments.note"])
    assert (near.value, near.verdict.matched_by_tolerance) == ([2, 1, 1], 1)


def test_a_call_that_is_missing_is_found_though_its_neighbour_is_let_differ() -> None:
    tape = recorded(looks, (1, "a"), (2, "b"), (3, "c"))
    result = replayed(tape, looks, (1, "z"), (3, "c"), ignore=["arguments.note"])
    assert told(result)[0][:2] == ("order", 2)


def test_an_output_may_differ_where_it_is_let() -> None:
    def agent(output: Any) -> None:
        with agent_run("a") as made:
            made.output = output

    tape = recorded(agent, {"text": "yes", "at": 1})
    assert replayed(tape, agent, {"text": "yes", "at": 2}, ignore=["output.at"]).equal
    assert told(replayed(tape, agent, {"text": "no", "at": 2}, ignore=["output.at"])) == [("output", None, "agent a", "output.text")]


# ---- all differences ------------------------------------------------------------------------------------------------


def converses(*prompts: str) -> str:
    said: list[Any] = []
    for prompt in prompts:
        said = [*said, prompt]
        model({"messages": said, "temperature": 0 if len(said) < 3 else 1})
    return "done"


def test_all_differences_are_listed_and_every_call_is_answered_all_the_same() -> None:
    tape = recorded(converses, "a", "b", "c")
    result = replayed(tape, converses, "x", "b", "y", all_differences=True)
    assert [(d.step, d.field, d.same_as) for d in result.differences] == [
        (1, "messages[0]", None),
        (2, "messages[0]", 1),
        (3, "messages[0]", 1),
        (3, "messages[2]", None),
    ]
    assert (result.value, result.verdict.matched, result.verdict.matched_by_place) == ("done", 3, 3)
    assert result.verdict.exit_code == 1
    text = str(result)
    assert "the same again: messages[0] as at step 1, at steps 2, 3" in text
    assert "2 differences" in text


def test_a_call_that_was_never_recorded_still_stops_its_task() -> None:
    async def agent(*xs: int, more: bool) -> list[Any]:
        async def one(x: int) -> Any:
            got = [await look(x), await look(x + 10)]
            if x == xs[0] and more:
                await look(99)
                await look(98)
            return got

        return list(await asyncio.gather(*(one(x) for x in xs), return_exceptions=True))

    def begun(*xs: int, more: bool) -> list[Any]:
        return asyncio.run(agent(*xs, more=more))

    tape = recorded(lambda: begun(1, 2, more=False))
    found = replayed(tape, begun, 1, 3, more=True, all_differences=True)
    assert [(d.kind, d.step, d.field) for d in found.differences] == [
        ("input", 3, "arguments.x"),
        ("input", 4, "arguments.x"),
        ("never_recorded", None, None),
    ]
    assert found.verdict.matched == 4


def test_calls_that_are_missing_or_swapped_are_listed_and_the_others_found() -> None:
    tape = recorded(looks, (1, ""), (2, ""), (3, ""), (4, ""))
    swapped = replayed(tape, looks, (2, ""), (1, ""), (3, ""), (5, ""), all_differences=True)
    assert [(d.kind, d.step, d.field) for d in swapped.differences] == [("order", 1, None), ("input", 4, "arguments.x")]
    assert swapped.value == [2, 1, 3, 4]
    fewer = replayed(tape, looks, (1, ""), (3, ""), (4, ""), all_differences=True)
    assert [(d.kind, d.step) for d in fewer.differences] == [("unreached", 2)]
    later, missing = swapped.differences[0], fewer.differences[0]
    assert (later.recorded, later.instead, later.actual) == ('{"note": "", "x": 1}', "step 2, tool_call look", '{"note": "", "x": 2}')
    assert later.detail == "made later than recorded: the agent has made the call of step 2, tool_call look, before it"
    assert (missing.recorded, missing.instead, missing.actual) == ('{"note": "", "x": 2}', "step 3, tool_call look", '{"note": "", "x": 3}')
    assert missing.detail == "not made: the agent has gone on with step 3, tool_call look"


def test_a_call_that_is_missing_at_its_turn_is_shown_beside_what_came_in_its_place() -> None:
    tape = recorded(looks, (1, ""), (2, ""), (3, ""))
    (difference,) = replayed(tape, looks, (1, ""), (3, "")).differences
    assert (difference.name, difference.recorded) == ("tool_call look", '{"note": "", "x": 2}')
    assert (difference.instead, difference.actual) == ("step 3, tool_call look", '{"note": "", "x": 3}')
    assert difference.detail.startswith("not made so far: the call of step 3, tool_call look, has come in its place; --all-differences")
    (last,) = replayed(tape, looks, (1, ""), (2, "")).differences
    assert (last.kind, last.step, last.recorded, last.instead) == ("unreached", 3, '{"note": "", "x": 3}', None)


def test_what_is_listed_by_itself_is_named_beside_nothing_else() -> None:
    def gives(one: int, other: int) -> None:
        with agent_run("gives", input={"one": one, "other": other}) as run:
            run.output = [one, other]

    found = replayed(recorded(gives, 1, 2), gives, 3, 4, all_differences=True).differences
    assert [(d.field, d.also) for d in found] == [(place, ()) for place in ("input.one", "input.other", "output[0]", "output[1]")]


def test_one_call_more_shifts_none_of_the_others() -> None:
    tape = recorded(looks, (1, ""), (2, ""), (3, ""), (4, ""))
    more = replayed(tape, looks, (1, ""), (2, ""), (9, ""), (3, ""), (5, ""), all_differences=True)
    assert [(d.kind, d.step, d.field, d.actual) for d in more.differences] == [
        ("input", 4, "arguments.x", "5"),
        ("never_recorded", None, None, None),
    ]
    assert more.differences[1].detail == ("one call more than was recorded: that of step 3 came after it (arguments.x of this one is 9)")
    assert (more.value, more.verdict.matched, more.verdict.matched_by_place) == ([1, 2, 3, 3, 4], 4, 1)


def test_a_loop_that_goes_round_once_more_is_one_call_more_at_its_place() -> None:
    tape = recorded(looks, (1, ""), (1, ""), (2, ""), (3, ""))
    (difference,) = replayed(tape, looks, (1, ""), (1, ""), (1, ""), (2, ""), (3, "")).differences
    told_ = "one call more than was recorded: the same was asked and answered before; step 3, tool_call look, was to come next"
    assert (difference.kind, difference.step, difference.detail) == ("already_used", None, told_)
    more = replayed(tape, looks, (1, ""), (1, ""), (1, ""), (2, ""), (3, ""), all_differences=True)
    assert ([d.detail for d in more.differences], more.value) == ([told_], [1, 1, 1, 2, 3])
    (changed,) = replayed(recorded(looks, (1, ""), (2, "")), looks, (1, ""), (1, "")).differences
    assert (changed.kind, changed.step) == ("input", 2)
    assert changed.detail == "or it is one call more than was recorded: step 1, the one before, asked just this"


async def asks_until(answer: int) -> None:
    while await look(1, "") != answer:
        pass


def test_an_agent_that_asks_until_the_answer_is_another_one_ends() -> None:
    result = replayed(recorded(asks_until, 1), asks_until, 2, all_differences=True)
    assert [d.kind for d in result.differences] == ["already_used", "already_used"]


def test_the_choices_travel_as_json() -> None:
    comparing = Comparing(mode="tolerant", ignore=("a.b",), all_differences=True)
    assert Comparing.from_json(json.loads(json.dumps(comparing.to_json()))) == comparing

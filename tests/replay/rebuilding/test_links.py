"""Which request a call answers, which have no answer, and which attempts belong together."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, said, sid, span, tool
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Record, Resource, SpanRecord


def one(*records: Record, end: int = 10_000) -> Run:
    (run,) = build_runs([agent(1, end=end), *records])
    return run


def asks(number: int, *calls: tuple[str | None, str, Any], parent: int = 1, start: int | None = None, **more: Any) -> SpanRecord:
    at = number * 100 if start is None else start
    return chat(number, parent, start=at, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(*calls), **more.pop("attributes", {})}, **more)


def tells(number: int, *results: tuple[str | None, Any], parent: int = 1, start: int | None = None) -> SpanRecord:
    parts = [{"type": "tool_call_response", "id": call_id, "response": value} for call_id, value in results]
    messages = json.dumps([{"role": "tool", "parts": parts}])
    return chat(number, parent, start=number * 100 if start is None else start, attributes={a.GEN_AI_INPUT_MESSAGES: messages})


def steps(run: Run) -> dict[int, Step]:
    return {int(step.span_id, 16): step for step in run.steps}


def asked_by(run: Run, number: int) -> int | None:
    by = steps(run)[number].requested_by
    return None if by is None else int(run.steps[by - 1].span_id, 16)


def reasons(run: Run, code: str) -> list[str]:
    return [reason.detail for reason in run.grade_reasons if reason.code == code]


# ---- which request -----------------------------------------------------------------------------------------------------


def test_a_call_without_an_id_has_that_of_its_request_and_says_so() -> None:
    run = one(
        asks(2, ("c1", "f", {"n": 1}), ("c2", "f", {"n": 2})),
        tool(3, 1, name="f", args='{"n":2}', start=300),
        tool(4, 1, name="f", args='{"n":1}', start=310),
    )
    assert [(steps(run)[n].call_id, asked_by(run, n)) for n in (3, 4)] == [("c2", 2), ("c1", 2)]
    assert len(reasons(run, "call-id-inferred")) == 2
    assert run.grade == "semantic"


def test_of_equal_requests_each_call_has_one_and_no_id_is_guessed() -> None:
    run = one(asks(2, ("c1", "f", {}), ("c2", "f", {})), tool(3, 1, name="f", start=300), tool(4, 1, name="f", start=310))
    assert [(steps(run)[n].call_id, asked_by(run, n)) for n in (3, 4)] == [(None, 2), (None, 2)]
    assert not reasons(run, "call-not-run")


@pytest.mark.parametrize(
    ("given", "told", "ids"),
    [
        (["a", "b"], [("c1", "b"), ("c2", "a")], ["c2", "c1"]),
        (["a", "a"], [("c1", "a"), ("c2", "a")], ["c1", "c2"]),
        (["a", "b"], [("c2", "a")], ["c2", "c1"]),
        (["a", None], [("c1", "Error: b"), ("c2", "a")], ["c2", "c1"]),
        ([{"n": 1}, 7], [("c1", "7"), ("c2", '{"n": 1}')], ["c2", "c1"]),
        (["a", "b"], [("c1", "a"), ("c2", "c")], [None, None]),
        (["a", "b"], [("c1", "a"), ("c2", "a")], [None, None]),
        (["a", "b"], [("c3", "a"), ("c4", "b")], [None, None]),
        (["a"], [("c1", "b"), ("c2", "a")], ["c2"]),
        (["a"], [("c1", "a"), ("c2", "a")], [None]),
    ],
)
def test_of_equal_requests_each_call_has_the_one_whose_result_is_its_own(given: list[Any], told: list[Any], ids: list[str | None]) -> None:
    run = one(
        asks(2, ("c1", "f", {"n": 1}), ("c2", "f", {"n": 1})),
        *(
            tool(n, 1, name="f", args='{"n":1}', result=None if result is None else json.dumps(result), start=300 + n)
            for n, result in enumerate(given, 5)
        ),
        tells(4, *told),
    )
    calls = [steps(run)[n] for n, _ in enumerate(given, 5)]
    assert [call.call_id for call in calls] == ids
    assert [call.requested_by for call in calls] == [1] * len(given)
    assert len(reasons(run, "call-id-inferred")) == sum(call_id is not None for call_id in ids)
    assert len(reasons(run, "call-without-span")) == (1 if len(given) == 1 else 0)


def test_where_the_arguments_are_unknown_the_name_tells() -> None:
    alone = one(asks(2, ("c1", "f", {"n": 1})), tool(3, 1, name="f", args=None, start=300))
    assert (steps(alone)[3].call_id, asked_by(alone, 3)) == ("c1", 2)
    two = one(
        asks(2, ("c1", "f", {"n": 1}), ("c2", "f", {"n": 2})),
        *(tool(n, 1, name="f", args=None, start=n * 100) for n in (3, 4)),
    )
    assert [asked_by(two, n) for n in (3, 4)] == [2, 2]
    assert [steps(two)[n].call_id for n in (3, 4)] == [None, None], "which is which is not certain"
    doubted = one(asks(2, ("c1", "f", {"n": 1})), *(tool(n, 1, name="f", args=None, start=n * 100) for n in (3, 4)))
    assert [steps(doubted)[n].call_id for n in (3, 4)] == [None, None], "one request, two calls"


def test_a_call_with_plainly_other_arguments_was_not_asked_for() -> None:
    run = one(asks(2, ("c1", "f", {"n": 1})), tool(3, 1, name="f", args='{"n":9}', start=300))
    assert asked_by(run, 3) is None
    assert len(reasons(run, "call-not-run")) == 1


def test_a_name_with_its_server_before_it_is_the_same_tool() -> None:
    run = one(asks(2, ("c1", "mcp__web__search", {"n": 1})), tool(3, 1, name="search", args='{"n":1}', start=300))
    assert (steps(run)[3].call_id, asked_by(run, 3)) == ("c1", 2)


def test_an_id_used_by_two_agents_at_once_is_each_agents_own() -> None:
    records = [
        agent(10, 1, name="x", start=10, end=900),
        agent(20, 1, name="y", start=11, end=901),
        asks(11, ("call_1", "f", {"n": 1}), parent=10, start=20),
        asks(21, ("call_1", "f", {"n": 2}), parent=20, start=21),
        tool(12, 10, name="f", call="call_1", start=100),
        tool(22, 20, name="f", call="call_1", start=101),
    ]
    run = one(*records)
    assert (asked_by(run, 12), asked_by(run, 22)) == (11, 21)
    unnamed = one(*records[:4], *(tool(n, parent, name="f", args=None, start=100 + n) for n, parent in ((12, 10), (22, 20))))
    assert (asked_by(unnamed, 12), asked_by(unnamed, 22)) == (11, 21)


def test_of_a_reused_id_the_request_for_the_same_tool_is_meant() -> None:
    run = one(
        asks(2, ("c", "f", {})),
        asks(3, ("c", "g", {})),
        tool(4, 1, name="f", call="c", start=400),
        tool(5, 1, name="g", call="c", start=500),
    )
    assert (asked_by(run, 4), asked_by(run, 5)) == (2, 3)


def test_a_tool_inside_the_model_span_that_asked_is_that_ones() -> None:
    run = one(
        asks(2, ("c1", "f", {}), start=200, end=900),
        asks(3, ("c1", "f", {}), start=210, end=250),
        tool(4, 2, name="f", call="c1", start=300),
    )
    assert asked_by(run, 4) == 2


def test_a_later_answer_does_not_ask_for_an_earlier_call() -> None:
    run = one(tool(2, 1, name="f", start=10), asks(3, ("c1", "f", {})))
    assert asked_by(run, 2) is None
    assert len(reasons(run, "call-not-run")) == 1


@pytest.mark.parametrize("ahead", [0.5, 40, 350])
def test_a_call_that_the_clock_puts_before_its_request_is_joined_by_its_id(ahead: float) -> None:
    def at(ms: float) -> int:
        return int((1_000 + ms) * 1_000_000)

    asked = asks(2, ("c1", "f", {"n": 1}), start=at(500), end=at(600), attributes={a.GEN_AI_INPUT_MESSAGES: said("hi")})
    call = tool(3, 1, name="f", call="c1", args='{"n":1}', start=at(500 - ahead), end=at(590 - ahead))
    last = tells(4, ("c1", 1), start=at(700))
    (run,) = build_runs([span(1, start=at(0), end=at(900), attributes=agent(1).attributes), asked, call, last])
    assert [int(step.span_id, 16) for step in run.steps] == [2, 3, 4]
    assert asked_by(run, 3) == 2
    assert not reasons(run, "call-without-span")
    (detail,) = reasons(run, "clock-skew")
    assert "before step 1" in detail
    assert run.input == run.steps[0].input
    assert not any(step.overlaps for step in run.steps), "nothing runs beside the answer that asks for it"


@pytest.mark.parametrize("call_id", ["c1", None])
@pytest.mark.parametrize("result", ['"found"', None])
@pytest.mark.parametrize("behind", [150, 450, -450])
def test_a_call_that_the_clock_puts_elsewhere_is_between_what_asked_for_it_and_what_was_told(
    behind: int, result: str | None, call_id: str | None
) -> None:
    error = None if result is not None else {"status": STATUS_ERROR, "status_message": "no such city here"}
    asked = asks(2, ("c1", "f", {"n": 1}), start=500, end=600)
    call = tool(3, 1, name="f", call=call_id, args='{"n":1}', result=result, start=610 + behind, end=620 + behind, **(error or {}))
    told = "found" if result is not None else "failed: no such city here"
    last = chat(4, 1, start=700, end=800, attributes={a.GEN_AI_INPUT_MESSAGES: _answered("c1", told)})
    after = chat(5, 1, start=900, end=950, attributes={a.GEN_AI_INPUT_MESSAGES: _answered("c1", told)})
    (run,) = build_runs([span(1, start=0, end=9000, attributes=agent(1).attributes), asked, call, last, after])
    assert [int(step.span_id, 16) for step in run.steps] == [2, 3, 4, 5]
    assert (asked_by(run, 3), run.steps[1].call_id) == (2, "c1")
    assert len(reasons(run, "clock-skew")) == 1
    assert not any(3 in (int(run.steps[o - 1].span_id, 16) for o in step.overlaps) for step in run.steps if step.seq in (1, 3))


def _answered(call_id: str, result: str) -> str:
    part = {"type": "tool_call_response", "id": call_id, "response": result}
    return json.dumps([{"role": "tool", "parts": [part]}])


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(
            [asks(2, ("c1", "f", {})), tells(3, ("c1", 1)), tool(4, 1, name="f", call="c1", start=410), asks(5, ("c1", "f", {}))],
            id="asked for again",
        ),
        pytest.param(
            [
                asks(2, ("c1", "f", {})),
                tool(3, 1, name="f", call="c1", start=300),
                tells(4, ("c1", 1)),
                tool(5, 1, name="f", call="c1", start=510),
            ],
            id="ran again",
        ),
        pytest.param(
            [asks(2, ("c1", "f", {})), tells(3, ("c1", "another")), tool(4, 1, name="f", start=410)],
            id="another result",
        ),
    ],
)
def test_what_may_have_run_after_the_request_that_tells_of_it_did(records: Sequence[Record]) -> None:
    assert not reasons(one(*records), "clock-skew")


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([tool(2, 1, name="f", call="c1", start=100), asks(3, ("c1", "g", {}))], id="another tool"),
        pytest.param([tool(2, 1, name="f", call="c1", args='{"n":1}', start=100), asks(3, ("c1", "f", {"n": 2}))], id="other arguments"),
        pytest.param([asks(2, ("c1", "f", {})), tool(3, 1, name="f", call="c1", start=210), asks(4, ("c1", "f", {}))], id="asked before"),
        pytest.param(
            [
                tool(2, 1, name="f", call="c1", start=100),
                chat(3, 1, start=300, attributes={**tells(9, ("c1", 1)).attributes, a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "f", {}))}),
            ],
            id="told before it asks",
        ),
    ],
)
def test_of_a_reused_id_the_clock_is_believed(records: Sequence[Record]) -> None:
    run = one(*records)
    assert [int(step.span_id, 16) for step in run.steps] == sorted(int(step.span_id, 16) for step in run.steps)
    assert not reasons(run, "clock-skew")


# ---- requests without a call -------------------------------------------------------------------------------------------


def test_a_run_cut_after_the_request_names_the_call_and_invents_none() -> None:  # B59
    (run,) = build_runs([asks(2, ("c1", "f", {"n": 1}), ("c2", "g", {"n": 2})), tool(3, name="f", call="c1", start=300)])
    assert [step.kind for step in run.steps] == ["model_call", "tool_call"]
    (detail,) = reasons(run, "call-not-run")
    assert "g(n=2)" in detail
    assert "c2" in detail
    assert [reason.step for reason in run.grade_reasons if reason.code == "call-not-run"] == [1]


def test_a_call_that_was_answered_without_a_span_is_no_dangling_call() -> None:
    run = one(asks(2, ("c1", "f", {}), ("c2", "f", {})), tells(3, ("c1", 1), ("c2", 2)))
    assert not reasons(run, "call-not-run")
    assert len(reasons(run, "call-without-span")) == 1
    assert reasons(run, "call-without-span")[0].startswith("2 calls")
    reused = one(tells(2, ("c1", 1)), asks(3, ("c1", "f", {})))
    assert len(reasons(reused, "call-not-run")) == 1, "the answer is older than the request"


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        pytest.param(["other"], "call-not-offered", id="another"),
        pytest.param(["other", "f"], "call-without-span", id="this one too"),
        pytest.param(["functions.F"], "call-without-span", id="by a longer name"),
        pytest.param(["other", None], "call-without-span", id="one without a name"),
        pytest.param([], "call-without-span", id="none known"),
    ],
)
def test_an_answered_call_of_a_tool_that_was_not_offered_is_no_missing_span(tools: list[str | None], code: str) -> None:
    offered = json.dumps([{"type": "function", **({"name": name} if name else {})} for name in tools])
    run = one(asks(2, ("c1", "f", {}), attributes={a.GEN_AI_TOOL_DEFINITIONS: offered}), tells(3, ("c1", "there is no f")))
    assert [reason.code for reason in run.grade_reasons if reason.code.startswith("call-")] == [code]


def test_a_call_that_the_record_joins_to_its_request_without_an_id_is_no_missing_span() -> None:  # Gemini gives calls no ids
    by = {a.STEP_KIND: "tool_call", a.STEP_REQUESTED_BY: sid(2)}
    calls = [tool(n, 1, name="f", args=args, start=n * 100, attributes=by) for n, args in ((3, '{"n":1}'), (4, '{"n":2}'))]
    asked = asks(2, (None, "f", {"n": 2}), (None, "f", {"n": 1}), (None, "g", {}), attributes={a.STEP_KIND: "model_call"})
    told = tells(5, (None, 1), (None, 2), (None, 3))
    run = one(asked, *calls, told)
    assert [asked_by(run, n) for n in (3, 4)] == [2, 2]
    (detail,) = reasons(run, "call-without-span")
    assert detail.startswith("1 call with an answer in the messages (g)")


def test_a_call_whose_request_lost_its_id_is_answered_by_one_of_its_name_and_arguments() -> None:  # Langfuse, of streams
    history = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"n": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "r"}]},
    ]
    run = one(
        asks(2, (None, "f", {"n": 1}), (None, "g", {})), chat(3, 1, start=300, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(history)})
    )
    assert reasons(run, "call-without-span")[0].startswith("1 call with an answer in the messages (f)")
    assert len(reasons(run, "call-not-run")) == 1


@pytest.mark.parametrize("name", ["final_result", "final_result_Answer"])
def test_the_tool_by_which_a_model_gives_its_output_is_never_missed(name: str) -> None:
    assert not reasons(one(asks(2, ("c1", name, {"x": 1}))), "call-not-run")


def test_a_request_whose_arguments_are_the_output_was_the_output() -> None:
    output = {a.GEN_AI_OUTPUT_MESSAGES: said('{"city": "Oslo"}', "assistant")}
    (run,) = build_runs([agent(1, end=900, attributes=output), asks(2, ("c1", "WeatherReport", {"city": "Oslo"}))])
    assert not reasons(run, "call-not-run")


def test_a_request_whose_arguments_are_in_the_state_that_the_agent_left_was_the_output() -> None:  # LangChain's ToolStrategy
    state = json.dumps({"messages": [], "structured_response": {"city": "Oslo"}})
    (run,) = build_runs(
        [agent(1, end=900, attributes={a.RUN_ROOT: True, a.RUN_OUTPUT: state}), asks(2, ("c1", "Answer", {"city": "Oslo"}))]
    )
    assert not reasons(run, "call-not-run")


def test_an_output_that_was_sent_back_is_not_missed_either() -> None:
    state = json.dumps({"messages": [], "structured_response": {"city": "Oslo"}})
    run, *_ = build_runs(
        [
            agent(1, end=900, attributes={a.RUN_ROOT: True, a.RUN_OUTPUT: state}),
            asks(2, ("c1", "Answer", {"town": "Oslo"})),
            asks(
                3,
                ("c2", "Answer", {"city": "Oslo"}),
                attributes={a.GEN_AI_INPUT_MESSAGES: tells(3, ("c1", "no")).attributes[a.GEN_AI_INPUT_MESSAGES]},
            ),
        ]
    )
    assert not reasons(run, "call-without-span")


@pytest.mark.parametrize(("forced", "missed"), [("Answer", 0), ("other", 1)])
def test_a_tool_that_the_model_had_to_call_is_the_form_of_its_answer(forced: str, missed: int) -> None:
    body = {"body": {"tool_choice": {"type": "function", "function": {"name": forced}}}}
    had_to = {a.GEN_AI_OUTPUT_MESSAGES: asks(2, ("c1", "Answer", {"x": 1})).attributes[a.GEN_AI_OUTPUT_MESSAGES]}
    run = one(chat(2, 1, start=5, attributes={**had_to, a.STEP_KIND: "model_call", a.STEP_INPUT: json.dumps(body)}))
    assert len(reasons(run, "call-not-run")) == missed


def test_what_the_provider_ran_itself_is_no_call_of_the_agent() -> None:
    parts = [
        {"type": "tool_call", "id": "s1", "name": "search", "arguments": {}},
        {"type": "tool_call_response", "id": "s1", "response": "x"},
    ]
    run = one(chat(2, 1, start=5, attributes={a.GEN_AI_OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": parts}])}))
    assert not reasons(run, "call-not-run")
    assert not reasons(run, "call-without-span")


def test_a_failed_answer_asks_for_nothing() -> None:
    assert not reasons(one(asks(2, ("c1", "f", {}), status=STATUS_ERROR)), "call-not-run")


# ---- attempts --------------------------------------------------------------------------------------------------------


def attempt(number: int, *, ok: bool = False, parent: int = 1, text: str = "q", **more: Any) -> SpanRecord:
    given: dict[str, Any] = {a.GEN_AI_INPUT_MESSAGES: said(text)}
    if not ok:
        given |= {a.ERROR_TYPE: "RateLimitError", a.GEN_AI_OUTPUT_MESSAGES: None}
    more.setdefault("start", number * 100)
    return chat(number, parent, status=0 if ok else STATUS_ERROR, attributes=given, **more)


def numbered(records: Sequence[SpanRecord]) -> list[tuple[int, int | None]]:
    return [(step.attempt, step.retry_of) for step in one(*records).steps]


def test_the_same_request_after_a_failure_is_a_further_attempt() -> None:
    assert numbered([attempt(2), attempt(3), attempt(4, ok=True), attempt(5, ok=True)]) == [(1, None), (2, 1), (3, 2), (1, None)]


@pytest.mark.parametrize(
    "second",
    [
        attempt(3, ok=True, text="another"),
        attempt(3, ok=True, model="another"),
        attempt(3, ok=True, start=205),
        chat(3, 1, start=300, content=False),
    ],
    ids=["other request", "other model", "at the same time", "not captured"],
)
def test_another_call_is_no_attempt(second: SpanRecord) -> None:
    assert numbered([attempt(2), second]) == [(1, None), (1, None)]


def test_attempts_are_of_one_place() -> None:
    records = [agent(10, 1, name="x", start=50, end=990), attempt(2, parent=10), attempt(3, ok=True)]
    assert all(step.attempt == 1 for step in one(*records).steps)


def test_attempts_inside_one_call_need_no_request_to_be_known() -> None:
    inner = [
        chat(n, 2, content=False, start=n * 100, status=0 if n == 5 else STATUS_ERROR, attributes={} if n == 5 else {a.ERROR_TYPE: "x"})
        for n in (3, 4, 5)
    ]
    run = one(chat(2, 1, start=150, end=900), *inner)
    assert [(step.span_id, step.attempt, step.retry_of) for step in run.steps] == [(sid(3), 1, None), (sid(4), 2, 1), (sid(5), 3, 2)]
    assert run.steps[2].output is not None, "what only the span around knows of the answer"


def test_two_failed_requests_are_each_tried_again() -> None:
    records = [attempt(2, text="a"), attempt(3, text="b"), attempt(4, text="b", ok=True), attempt(5, text="a", ok=True)]
    assert numbered(records) == [(1, None), (1, None), (2, 2), (2, 1)]


# ---- ties ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("low", [2, 5])
def test_of_equal_starts_a_cause_comes_before_what_it_caused(low: int) -> None:
    """Times in milliseconds: everything starts at one time, and the spans' ids say nothing."""
    first, call, second = (low, 3, 7 - low)
    records = [
        asks(first, ("c1", "f", {}), start=500, end=500),
        tool(call, 1, name="f", call="c1", start=500, end=500),
        chat(second, 1, start=500, end=500, attributes={a.GEN_AI_INPUT_MESSAGES: asking()}),
    ]
    told = tells(second, ("c1", 1), start=500)
    run = one(records[0], records[1], span(8, 1, start=1), told)
    assert [int(step.span_id, 16) for step in run.steps] == [first, call, second]


def test_other_arguments_than_were_asked_for_are_told() -> None:
    run = one(asks(2, ("c1", "f", {"n": 1})), tool(3, 1, name="f", call="c1", args='{"n":2}', start=300))
    assert asked_by(run, 3) == 2, "an approver may have changed them"
    assert len(reasons(run, "arguments-differ")) == 1
    again = one(
        asks(2, ("c1", "f", {"n": 1})),
        tool(3, 1, name="f", call="c1", args='{"n":1}', start=300),
        tool(4, 1, name="f", call="c1", args='{"n":2}', start=400),
    )
    assert asked_by(again, 4) is None, "that request is answered, and asked for something else"


@pytest.mark.parametrize("ahead", [-60_000, -150, 150, 60_000])
def test_models_on_a_machine_with_another_clock_are_where_their_calls_put_them(ahead: int) -> None:
    def elsewhere(record: SpanRecord) -> SpanRecord:
        resource = Resource(attributes={a.SERVICE_NAME: "models", a.HOST_NAME: "other"})
        return replace(record, resource=resource, start_ns=record.start_ns + ahead, end_ns=(record.end_ns or 0) + ahead)

    at = 1_000_000
    asked = asks(2, ("c1", "f", {"n": 1}), start=at + 100, end=at + 200)
    call = tool(3, 1, name="f", call="c1", args='{"n":1}', start=at + 210, end=at + 220)
    told = chat(4, 1, start=at + 300, end=at + 400, attributes={a.GEN_AI_INPUT_MESSAGES: _answered("c1", "found")})
    run = one(elsewhere(asked), call, elsewhere(told), end=2 * at)
    assert [int(step.span_id, 16) for step in run.steps] == [2, 3, 4]
    assert asked_by(run, 3) == 2
    assert not reasons(run, "call-without-span")


def test_an_agent_that_has_a_name_by_its_span_alone_answers_the_request_of_just_that_name() -> None:
    def ran(number: int, name: str, start: int) -> SpanRecord:
        told = {"openinference.span.kind": "AGENT", "input.value": '{"task": "Weather"}', "output.value": "rain"}
        return span(number, 1, name=f"{name}.run", attributes=told, start=start)

    run = one(asks(2, ("a", "sub", {"task": "Weather"}), ("b", "subject", {})), ran(3, "sub", 300), ran(4, "ToolCallingAgent", 400))
    assert (asked_by(run, 3), asked_by(run, 4)) == (2, None)
    (left,) = reasons(run, "call-not-run")
    assert "subject" in left

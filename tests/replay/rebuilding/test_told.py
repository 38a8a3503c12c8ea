import json
from dataclasses import replace
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, said, tool
from spanreplay.replay.model import Step
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Scope, SpanRecord


def telling(number: int, *results: tuple[str, Any], start: int = 100, **part: Any) -> SpanRecord:
    """A request whose history has the results of tools, by the ids of the calls."""
    history = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": call, "response": value, **part}]} for call, value in results
    ]
    return chat(number, 1, start=start, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(history)})


def steps(*records: SpanRecord) -> dict[str, Step]:
    (run,) = build_runs([agent(1, end=1000), *records])
    return {step.span_id: step for step in run.steps}


def test_a_result_is_what_the_next_request_tells_of_it() -> None:
    found = steps(
        chat(2, 1, start=1, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "search", {"q": 1}))}),
        tool(3, 1, start=20, call="c", args='{"q":1}', result=None),
        telling(4, ("c", '{"n": 2}')),
    )
    step = found[f"{3:016x}"]
    assert (step.output, step.typed_result, step.outcome, step.grade) == ({"result": {"n": 2}}, '{"n":2}', "ok", "semantic")
    assert [reason.code for reason in step.reasons] == ["as-told"]


def test_a_result_that_was_recorded_is_never_replaced() -> None:
    assert steps(tool(3, 1, start=20, call="c", result="mine"), telling(4, ("c", "theirs")))[f"{3:016x}"].output == {"result": "mine"}


def test_of_a_reused_id_each_call_has_its_own_result() -> None:
    found = steps(
        tool(3, 1, start=20, call="c", result=None),
        telling(4, ("c", "first"), start=40),
        tool(5, 1, start=60, call="c", result=None),
        telling(6, ("c", "first"), ("c", "second"), start=80),
    )
    assert [found[f"{number:016x}"].output for number in (3, 5)] == [{"result": "first"}, {"result": "second"}]


def test_the_model_was_told_that_it_failed() -> None:
    found = steps(tool(3, 1, start=20, call="c", result=None), telling(4, ("c", "no such city"), is_error=True))
    assert (found[f"{3:016x}"].outcome, found[f"{3:016x}"].output) == ("tool_error", {"result": "no such city"})
    raised = steps(tool(3, 1, start=20, call="c", result=None, status=STATUS_ERROR), telling(4, ("c", "it failed")))
    assert (raised[f"{3:016x}"].outcome, raised[f"{3:016x}"].output) == ("error", None), "how it failed is its answer"


@pytest.mark.parametrize(
    "request_",
    [
        said("nothing of tools"),
        json.dumps([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "other", "response": 1}]}]),
        "[1]",
        '[{"parts": 7}]',
    ],
)
def test_without_the_id_nothing_is_taken(request_: str) -> None:
    record = chat(4, 1, start=100, attributes={a.GEN_AI_INPUT_MESSAGES: request_})
    step = steps(tool(3, 1, start=20, call="c", result=None), record)[f"{3:016x}"]
    assert (step.output, step.grade) == (None, "structure")


def test_what_was_told_before_the_call_is_not_its_result() -> None:
    step = steps(telling(4, ("c", "old"), start=5), tool(3, 1, start=20, call="c", result=None))[f"{3:016x}"]
    assert step.output is None


def test_the_arguments_of_a_call_are_told_too() -> None:
    history = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "search", "arguments": '{"q": 1}'}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "x"}]},
    ]
    later = chat(4, 1, start=100, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(history)})
    step = steps(tool(3, 1, start=20, call="c", args=None, result=None), later)[f"{3:016x}"]
    assert (step.input, step.output, step.grade) == ({"arguments": {"q": 1}}, {"result": "x"}, "semantic")
    assert (step.typed_input, len(step.reasons)) == ('{"q":1}', 2)
    alone = steps(tool(3, 1, start=20, call="c", args=None, result=None), telling(4, ("c", "x")))[f"{3:016x}"]
    assert (alone.input, alone.output, alone.grade) == (None, {"result": "x"}, "structure")


def turns(*said: str) -> str:
    roles = ("user", "assistant")
    return json.dumps([{"role": roles[n % 2], "parts": [{"type": "text", "content": text}]} for n, text in enumerate(said)])


def asked(number: int, messages: str, **more: Any) -> SpanRecord:
    return chat(number, 1, start=number * 100, content=False, attributes={a.GEN_AI_INPUT_MESSAGES: messages}, **more)


def test_an_answer_is_told_by_the_request_that_goes_on_from_it() -> None:
    found = steps(
        asked(2, turns("q")), asked(3, turns("other", "b", "p")), asked(4, turns("q", "a", "q2")), asked(5, turns("q", "a", "q2", "a2"))
    )
    answers = [found[f"{number:016x}"].output for number in (2, 3, 4, 5)]
    assert answers[0] == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}], "finish": None}
    assert answers[2]["messages"][0]["parts"][0]["content"] == "a2"
    assert answers[1] is None, "nothing goes on from it"
    assert answers[3] is None, "it is the last"
    assert [found[f"{number:016x}"].grade for number in (2, 3)] == ["semantic", "structure"]


def test_a_request_that_failed_had_no_answer() -> None:
    found = steps(asked(2, turns("q"), status=STATUS_ERROR), asked(3, turns("q", "a", "q2")))
    assert found[f"{2:016x}"].output is None


@pytest.mark.parametrize(("written", "told"), [("0", 0), ("false", False), ("null", None), ("-1.5", -1.5)])
def test_a_text_that_is_told_as_a_number_is_one(written: str, told: Any) -> None:
    step = steps(tool(3, 1, start=20, call="c", result=written), telling(4, ("c", told)))[f"{3:016x}"]
    assert (step.output, step.typed_result) == ({"result": told}, json.dumps(told))


@pytest.mark.parametrize(("written", "told"), [("0", "0"), ("0", 1), ("0 degrees", 0), ("[1, 2]", "[1, 2]"), ('{"n":1}', '{"n": 1}')])
def test_a_result_is_not_changed_by_what_was_made_of_it(written: str, told: Any) -> None:
    alone = steps(tool(3, 1, start=20, call="c", result=written))[f"{3:016x}"]
    assert steps(tool(3, 1, start=20, call="c", result=written), telling(4, ("c", told)))[f"{3:016x}"].output == alone.output


def test_a_text_that_looks_like_json_is_told_from_a_list_where_requests_tell_results_in_their_type() -> None:
    scope = Scope(name="pydantic-ai")
    tools = [tool(number, 1, start=20, call=call, result="[1, 2]", scope=scope) for number, call in ((3, "c"), (5, "d"))]
    request = telling(4, ("c", "[1, 2]"), ("d", [1, 2]))
    found = steps(*tools, replace(request, scope=scope))
    assert [found[f"{number:016x}"].output for number in (3, 5)] == [{"result": "[1, 2]"}, {"result": [1, 2]}]
    assert steps(*tools, request)[f"{3:016x}"].output == {"result": [1, 2]}, "the request of another instrumentation has texts only"

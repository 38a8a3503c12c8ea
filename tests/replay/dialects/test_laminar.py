"""Laminar: types, inputs and outputs of its own around the GenAI conventions."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import said, span
from spanreplay.replay.dialects.laminar import DIALECT, INPUT, OUTPUT, TYPE
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord, Value


def observed(kind: str, attributes: dict[str, Value], number: int = 1, parent: int | None = None, **more: Any) -> SpanRecord:
    return span(number, parent, attributes={TYPE: kind, **attributes}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_the_choices_of_a_response_are_its_messages() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    choice = {
        "index": 0,
        "finish_reason": "tool_calls",
        "logprobs": None,
        "message": {"role": "assistant", "content": None, "tool_calls": [call]},
    }
    draft = read(
        observed(
            "LLM",
            {a.GEN_AI_REQUEST_MODEL: "m", a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: json.dumps([choice])},
        )
    )
    answered: Any = draft.output
    assert (draft.kind, draft.name, answered["finish"]) == ("model_call", "m", "tool_call")
    assert answered["messages"][0]["parts"] == [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}]


def test_a_model_by_hand_has_its_messages_in_what_went_in_and_came_out() -> None:
    draft = read(observed("LLM", {INPUT: '[{"role": "user", "content": "q"}]', OUTPUT: '"yes"'}))
    views: list[Any] = [draft.input, draft.output]
    assert [view["messages"][-1]["parts"][0]["content"] for view in views] == ["q", "yes"]


@pytest.mark.parametrize(
    ("written", "result"), [('{"sum": 2}', {"sum": 2}), ("0", 0), ('""', ""), ("null", None), ("[]", []), ("false", False)]
)
def test_results_of_tools_keep_their_type(written: str, result: Any) -> None:
    draft = read(observed("TOOL", {INPUT: '{"a": 1}', OUTPUT: written}, name="add"))
    assert (draft.kind, draft.name, draft.input, draft.output) == ("tool_call", "add", {"arguments": {"a": 1}}, {"result": result})


def test_what_was_observed_without_a_type_is_the_run_around_all() -> None:
    root = observed(
        "DEFAULT", {INPUT: '{"question": "q"}', OUTPUT: '"done"', "lmnr.association.properties.session_id": "s"}, name="ask", end=90
    )
    model = observed("LLM", {a.GEN_AI_INPUT_MESSAGES: said("q"), a.GEN_AI_OUTPUT_MESSAGES: said("x", "assistant")}, 2, 1, start=5)
    (run,) = build_runs([root, model])
    views: list[Any] = [run.input, run.output]
    assert [view["messages"][-1]["parts"][0]["content"] for view in views] == ["q", "done"]
    assert (run.agent_name, run.session_id, [step.kind for step in run.steps]) == ("ask", "s", ["model_call"])


def test_a_span_without_a_type_of_laminar_is_not_its_own() -> None:
    assert not DIALECT.claims(span(1, attributes={INPUT: "{}"}))

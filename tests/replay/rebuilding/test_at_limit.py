"""Contents that a limit cut where no JSON shows it lower the grade of their step."""

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import SpanRecord

LIMIT = 100


def asked(number: int, said: str, **more: str) -> SpanRecord:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Tell.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }
    return span(number, name="chat", start=number * 10, end=number * 10 + 5, attributes={**attributes, **more})


def run_of(*spans: SpanRecord) -> Run:
    (run,) = build_runs(spans)
    return run


CUT_JSON = ('{"messages": "' + "x" * LIMIT)[:LIMIT]


@pytest.mark.parametrize(("size", "grade"), [(LIMIT - 1, "semantic"), (LIMIT, "incomplete")])
def test_a_plain_text_of_the_size_at_which_others_were_cut_is_cut(size: int, grade: str) -> None:
    run = run_of(asked(1, "y" * size, **{"input.value": CUT_JSON}), asked(2, "Short.", **{"input.value": CUT_JSON}))
    assert [step.grade for step in run.steps] == [grade, "semantic"]
    fields = [reason.field for reason in run.steps[0].reasons if reason.code == "cut"]
    assert fields == (["llm.output_messages.0.message.content"] if grade == "incomplete" else [])


def test_what_is_no_content_of_the_step_costs_no_grade() -> None:
    run = run_of(asked(1, "Short.", **{"input.value": CUT_JSON, "url": "u" * LIMIT}), asked(2, "Short.", **{"input.value": CUT_JSON}))
    assert run.grade == "semantic"


def test_it_is_one_gap_and_not_two() -> None:
    records = [asked(1, "y" * LIMIT, **{"input.value": CUT_JSON}), asked(2, "Short.", **{"input.value": CUT_JSON})]
    run = run_of(*records)
    found = [gap.field for gap in gaps([run], records)[run.run_id]]
    assert found.count("llm.output_messages.0.message.content") == 1


def test_a_limit_of_characters_cuts_plain_texts_too() -> None:
    cut = ('{"messages": "' + "ü" * LIMIT)[:LIMIT]
    run = run_of(asked(1, "ä" * 60 + "y" * 40, **{"input.value": cut}), asked(2, "Short.", **{"input.value": cut}))
    assert [step.grade for step in run.steps] == ["incomplete", "semantic"]
    (reason,) = (reason for reason in run.steps[0].reasons if reason.code == "cut" and reason.field != "input.value")
    assert f"{LIMIT} characters are left" in reason.detail

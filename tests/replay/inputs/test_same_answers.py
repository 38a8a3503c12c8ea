"""One answer in two traces at one time is two records of one call."""

import pytest

from fixtures.runs.spans import TRACE, chat
from spanreplay.replay.inputs.same_answers import SameAnswers
from spanreplay.replay.inputs.survey import Finding
from spanreplay.semconv.attributes import GEN_AI_RESPONSE_ID
from spanreplay.spans.record import LogRecord, Record


def seen(*records: Record) -> list[Finding]:
    answers = SameAnswers()
    for record in records:
        answers.see(record)
    return answers.findings()


def answered(trace: str, start: int, end: int | None, answer: str = "chatcmpl-1") -> Record:
    return chat(2, start=start, end=end, trace=trace, attributes={GEN_AI_RESPONSE_ID: answer})


def test_two_traces_at_one_time() -> None:
    (found,) = seen(answered(TRACE, 10, 90), answered("b" * 32, 20, 80))
    assert (found.code, found.spans) == ("same-answer", 1)
    assert "turn one of them off" in found.advice


@pytest.mark.parametrize(
    "other",
    [
        answered(TRACE, 20, 80),
        answered("b" * 32, 90, 95),
        answered("b" * 32, 20, None),
        answered("b" * 32, 20, 80, "chatcmpl-2"),
        LogRecord(time_ns=20, trace_id="b" * 32, attributes={GEN_AI_RESPONSE_ID: "chatcmpl-1"}),
    ],
    ids=["one trace", "from a cache, later", "never ended", "another answer", "a log record"],
)
def test_what_is_no_second_record_of_a_call(other: Record) -> None:
    assert seen(answered(TRACE, 10, 90), other) == []

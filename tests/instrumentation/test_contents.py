"""What of a step's content its OpenTelemetry span carries."""

import pytest

from spanreplay.boundary.call import Kind
from spanreplay.boundary.contents import for_span
from spanreplay.boundary.session import Session, SpanContent
from spanreplay.semconv import attributes as names

LONG, SHORT = "x" * 11, "x" * 10
STEP = {
    names.STEP_NAME: LONG,
    names.STEP_INPUT: SHORT,
    names.WIRE_REQUEST_BODY: LONG,
    names.GEN_AI_INPUT_MESSAGES: LONG,
    names.GEN_AI_OUTPUT_MESSAGES: SHORT,
}


@pytest.mark.parametrize(
    ("content", "carried"),
    [
        ("full", set(STEP)),
        ("view", {names.STEP_NAME, names.GEN_AI_OUTPUT_MESSAGES}),
        ("none", {names.STEP_NAME}),
    ],
)
def test_full_is_everything_however_long(content: SpanContent, carried: set[str]) -> None:
    digested: dict[str, str] = {}
    kept = for_span(STEP, Session(mode="record", content=content, span_limit=10), digested, "model_call")
    assert kept == {name: STEP[name] for name in carried}
    assert set(digested) == set(STEP) - {names.STEP_NAME}, "what is left off is proved by its digest"


@pytest.mark.parametrize(("kind", "typed"), [("tool_call", False), ("agent", False), ("decision", True), ("io", True), ("mcp", True)])
def test_what_has_no_standard_attribute_is_viewed_as_it_is(kind: Kind, typed: bool) -> None:
    kept = for_span({names.STEP_INPUT: SHORT, names.STEP_RESULT: SHORT}, Session(mode="record"), {}, kind)
    assert (kept == {names.STEP_INPUT: SHORT, names.STEP_RESULT: SHORT}) is typed
    assert (kept == {}) is not typed

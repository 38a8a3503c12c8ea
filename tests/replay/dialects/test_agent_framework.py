import pytest

from fixtures.runs.spans import agent, chat, event, span
from spanreplay.replay.dialects.agent_framework import DIALECT
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.spans.record import STATUS_ERROR, Scope

SCOPE = Scope(name="agent_framework")


def test_a_workflow_is_the_run_and_its_plumbing_no_step() -> None:
    spans = [
        span(1, name="workflow.run", scope=SCOPE, end=100, attributes={"workflow.id": "w1", "workflow.name": "bulletin"}),
        span(2, 1, name="executor.process editor", scope=SCOPE, start=10, end=90, attributes={"executor.id": "editor"}),
        agent(3, 2, start=20, end=80),
        chat(4, 3, start=30, end=40),
        span(5, 2, name="message.send", scope=SCOPE, start=85, end=86),
        span(6, 1, name="edge_group.process SingleEdgeGroup", scope=SCOPE, start=91, end=92),
    ]
    (run,) = build_runs(spans)
    assert (run.agent_name, run.outcome, run.unclassified_spans) == ("bulletin", "ok", 3)
    assert [(step.kind, step.parent_seq) for step in run.steps] == [("agent", None), ("model_call", 1)]


def test_a_workflow_that_failed_says_how_and_one_without_a_name_has_its_id() -> None:
    raised = event("exception", {"exception.type": "ValueError", "exception.message": "no"})
    record = span(1, name="workflow.run", scope=SCOPE, status=STATUS_ERROR, events=(raised,), attributes={"workflow.id": "w1"})
    draft = DIALECT.read(record, ())
    assert draft is not None
    assert (draft.name, draft.outcome, draft.error) == ("w1", "error", {"type": "ValueError", "message": "no"})


def test_the_definition_of_a_workflow_is_that_of_its_run() -> None:
    draft = DIALECT.read(span(1, name="workflow.run", scope=SCOPE, attributes={"workflow.definition": '{"name":"bulletin"}'}), ())
    assert draft is not None
    assert draft.run is not None
    assert draft.run.definition == {"name": "bulletin"}


@pytest.mark.parametrize("name", ["invoke_agent weather", "chat gpt-4o", "execute_tool get_weather", "tools/call get"])
def test_spans_of_the_conventions_are_left_to_them(name: str) -> None:
    assert not DIALECT.claims(span(1, name=name, scope=SCOPE))
    assert not DIALECT.claims(span(1, name="workflow.run", scope=Scope(name="somebody.else")))

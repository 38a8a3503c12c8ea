"""Workflows of the Microsoft Agent Framework; its agents, models, tools and MCP requests keep to the GenAI conventions.

A workflow's run is a span ``workflow.run``; around and between the agents in it stand spans of the plumbing (``executor.process``,
``edge_group.process``, ``message.send``), which are no steps. Seen in what ``agent-framework-core`` 1.23.0 exports.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.spans.record import LogRecord, SpanRecord

SCOPE: Final = "agent_framework"
WORKFLOW_NAME: Final = "workflow.name"
WORKFLOW_ID: Final = "workflow.id"
WORKFLOW_DEFINITION: Final = "workflow.definition"

_RUN: Final = "workflow.run"
_SPANS: Final = frozenset({_RUN, "workflow.build", "executor.process", "edge_group.process", "message.send"})


class AgentFrameworkDialect:
    """Reads the spans of workflows."""

    NAME = "agent_framework"
    PRIORITY = 90

    def claims(self, span: SpanRecord) -> bool:
        """The spans that no convention knows, by the first word of their name."""
        return span.scope.name == SCOPE and span.name.partition(" ")[0] in _SPANS

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The run of a workflow; ``None`` for everything between its agents."""
        del logs
        if span.name.partition(" ")[0] != _RUN:
            return None
        fields = Fields(span.attributes)
        found = Found(kind="agent", name=fields.text(WORKFLOW_NAME, WORKFLOW_ID) or span.name, runs=True)
        draft = drafted(span, fields, found)
        definition = fields.json(WORKFLOW_DEFINITION)
        return draft if draft.run is None or definition is None else replace(draft, run=replace(draft.run, definition=definition))


DIALECT: Final = AgentFrameworkDialect()

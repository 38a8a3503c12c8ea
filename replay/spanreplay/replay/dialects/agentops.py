"""AgentOps: the spans of its decorators (``@session``, ``@agent``, ``@task``, ``@tool``), whose kind is ``agentops.span.kind``.

What went in and came out is JSON in ``agentops.KIND.input`` and ``.output`` (``entity`` for some kinds), positional and keyword arguments
apart; a text that came out is written as it is. Models are instrumented in OpenLLMetry's numbered form. A span ``tool_call.NAME`` inside
one, with the kind spelled ``AgentOpsSpanKindValues.TOOL``, tells what the answer asks for and that nothing ran: it is no step.
Source: <https://github.com/AgentOps-AI/agentops>, the ``agentops`` package (0.4.21).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import called_with, question
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import input_view, is_talk, output_view
from spanreplay.spans.record import LogRecord, SpanRecord

KIND: Final = "agentops.span.kind"
NAME: Final = "operation.name"
PREFIX: Final = "agentops."
_ASKED_FOR: Final = "tool_call."
_ENTITY: Final = "entity"


class AgentOpsDialect:
    """Reads the spans that have a kind of AgentOps, save those of models."""

    NAME = "agentops"
    PRIORITY = 145

    def claims(self, span: SpanRecord) -> bool:
        """By the kind; a model's span is left to who reads its messages."""
        kind = span.attributes.get(KIND)
        return isinstance(kind, str) and kind not in ("llm", "AgentOpsSpanKindValues.LLM")

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for what a model merely asks for. A task or an operation may be a tool where a model asked for its call."""
        del logs
        fields = Fields(span.attributes)
        kind = fields.text(KIND) or ""
        if span.name.startswith(_ASKED_FOR):
            return None
        if kind == "tool":
            return drafted(span, fields, _tool(span, fields, kind))
        around = drafted(span, fields, _around(span, fields, kind))
        return replace(around, if_asked=drafted(span, fields, _tool(span, fields, kind))) if kind in ("task", "operation") else around


def _name(span: SpanRecord, fields: Fields, kind: str) -> str:
    return fields.text(NAME) or span.name.removesuffix(f".{kind}")


def _value(fields: Fields, kind: str, side: str) -> tuple[Json, bool]:
    """What is written of one side, and whether anything is."""
    name = next((name for name in (f"{PREFIX}{kind}.{side}", f"{PREFIX}{_ENTITY}.{side}") if name in fields), None)
    return (None, False) if name is None else (fields.json(name), True)


def _tool(span: SpanRecord, fields: Fields, kind: str) -> Found:
    (given, has_input), (made, has_output) = _value(fields, kind, "input"), _value(fields, kind, "output")
    return Found(
        kind="tool_call",
        name=_name(span, fields, kind),
        asked={"arguments": called_with(given)} if has_input else None,
        answered={"result": made} if has_output else None,
    )


def _around(span: SpanRecord, fields: Fields, kind: str) -> Found:
    (given, has_input), (made, has_output) = _value(fields, kind, "input"), _value(fields, kind, "output")
    asked = question(given) if has_input else None
    name = _name(span, fields, kind)
    return Found(
        kind="agent",
        name=name,
        asked=None if asked is None else input_view(asked) if isinstance(asked, str) or is_talk(asked) else {"arguments": asked},
        answered=None if not has_output else output_view(made) if isinstance(made, str) or is_talk(made) else {"result": made},
        agent=name if kind == "agent" else None,
        runs=True,
        frame=kind != "agent",
    )


DIALECT: Final = AgentOpsDialect()

"""OpenLIT, as far as it differs from the GenAI conventions that it follows.

It shows arguments and results of LangChain's tools as Python does, names on a model's span the tools that the model asks for, has the
instructions twice and leaves messages without text out, and takes the nodes of a LangGraph graph for agents.
Source: <https://github.com/openlit/openlit>, the ``openlit`` package (1.45.0).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.calls import literal, returned
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import model_input, model_output
from spanreplay.replay.reasons import MESSAGE_ABSENT
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

SDK: Final = "telemetry.sdk.name"
ARGUMENTS: Final = (a.GEN_AI_TOOL_CALL_ARGUMENTS, "gen_ai.tool.args", "gen_ai.tool.input")
RESULT: Final = (a.GEN_AI_TOOL_CALL_RESULT, "gen_ai.tool.output")

_OWN: Final = "openlit"
_GRAPHS: Final = "openlit.instrumentation.langgraph"
_KINDS: Final[Mapping[str, Kind]] = {"chat": "model_call", "execute_tool": "tool_call", "invoke_agent": "agent", "create_agent": "agent"}


class OpenLitDialect:
    """Reads the spans of OpenLIT that need more than the conventions."""

    NAME = "openlit"
    PRIORITY = 250

    def claims(self, span: SpanRecord) -> bool:
        """By the scope, or what OpenLIT says of itself on its spans."""
        own = span.scope.name.startswith(_OWN) or span.attributes.get(SDK) == _OWN
        return own and Fields(span.attributes).text(a.GEN_AI_OPERATION_NAME) in _KINDS

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` for the building of a graph, which asks nobody."""
        del logs
        fields = Fields(span.attributes)
        operation = fields.text(a.GEN_AI_OPERATION_NAME) or ""
        if operation == "create_agent" and span.scope.name == _GRAPHS:
            return None
        kind = _KINDS[operation]
        reader = {"model_call": _model, "tool_call": _tool}.get(kind, _agent)
        return drafted(span, fields, reader(span, fields))


def _model(span: SpanRecord, fields: Fields) -> Found:
    asked = model_input(fields)
    lost = _without_requests(asked)
    told = Reason(code=MESSAGE_ABSENT, detail=f"the input has the result of {lost}, and no message that asks for it")
    if asked is not None and asked["messages"]:
        system = [part for message in asked["messages"] if message["role"] == "system" for part in message["parts"]]
        if asked["system"] == system:
            asked["system"] = []
    return Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or span.name,
        asked=asked,
        answered=model_output(fields),
        reasons=(told,) if lost is not None else (),
        grade="incomplete" if lost is not None else "exact",
    )


def _without_requests(asked: Json) -> str | None:
    """A call whose result is in the input, while no message asks for it."""
    said = asked["messages"] if asked is not None else None
    parts = [part for message in said or () for part in message["parts"]]
    requested = {part.get("id") for part in parts if part.get("type") == "tool_call"}
    given = [part.get("id") for part in parts if part.get("type") == "tool_call_response"]
    if not requested and any(message["role"] == "tool" for message in said or ()):
        return "a call"
    return next((f"the call {call_id}" for call_id in given if isinstance(call_id, str) and call_id not in requested), None)


def _tool(span: SpanRecord, fields: Fields) -> Found:
    given = next((fields.json(name) for name in ARGUMENTS if name in fields), None)
    answered = any(name in fields for name in RESULT)
    made = returned(next((fields.json(name) for name in RESULT if name in fields), None))
    return Found(
        kind="tool_call",
        name=fields.text(a.GEN_AI_TOOL_NAME) or span.name,
        asked={"arguments": literal(given) if isinstance(given, str) else given} if any(name in fields for name in ARGUMENTS) else None,
        answered={"result": made.value} if answered else None,
        call_id=made.call_id,
        outcome="tool_error" if made.failed else None,
    )


def _agent(span: SpanRecord, fields: Fields) -> Found:
    name = fields.text(a.GEN_AI_AGENT_NAME, a.GEN_AI_AGENT_ID)
    node = span.scope.name == _GRAPHS
    return Found(
        kind="agent",
        name=name or span.name,
        asked=model_input(fields),
        answered=model_output(fields),
        agent=None if node else name,
        runs=fields.text(a.GEN_AI_OPERATION_NAME) == "invoke_agent",
        frame=node,
    )


DIALECT: Final = OpenLitDialect()

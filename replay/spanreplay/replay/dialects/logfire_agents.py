"""Runs of the OpenAI Agents SDK that Logfire records (``logfire.instrument_openai_agents()``): its tracing processor, as Logfire's spans.

Each kind of span is known by its message template. Source: ``logfire/_internal/integrations/openai_agents.py`` of 4.3 and 5.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import called_with, returned
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import OLD_SYSTEM, definitions, input_view, output_view
from spanreplay.replay.reading.pending import SPAN_TYPE
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

TEMPLATE: Final = "logfire.msg_template"
NAME: Final = "name"
INPUT: Final = "input"
OUTPUT: Final = "output"
ERROR: Final = "error"
RAW_INPUT: Final = "raw_input"
RESPONSE: Final = "response"
SETTINGS: Final = "model_settings"
CONFIG: Final = "model_config"
SESSION: Final = "group_id"
FROM: Final = "from_agent"
TO: Final = "to_agent"

_TRACE: Final = "OpenAI Agents trace: {name}"
_NOT_SETTINGS: Final = frozenset({"base_url", "model_impl"})
"""What the parameters of a chat completion name beside the settings of the request."""


class LogfireAgentsDialect:
    """Reads the spans that Logfire makes of those of the OpenAI Agents SDK."""

    NAME = "logfire_agents"
    PRIORITY = 36

    def claims(self, span: SpanRecord) -> bool:
        """By the template; all but the trace name the provider too."""
        template = span.attributes.get(TEMPLATE)
        if not isinstance(template, str) or template not in _READERS or span.attributes.get(SPAN_TYPE) == "log":
            return False
        return template == _TRACE or OLD_SYSTEM in span.attributes

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step."""
        del logs
        fields = Fields(span.attributes)
        found = _READERS[str(span.attributes[TEMPLATE])](span, fields)
        return drafted(span, fields, replace(found, error=found.error or _error(span, fields)))


DIALECT: Final = LogfireAgentsDialect()


def _error(span: SpanRecord, fields: Fields) -> Json:
    """What the SDK says went wrong, with the type of the exception where that was recorded; the status of the span is not set."""
    told = fields.json(ERROR)
    if not isinstance(told, dict):
        return None
    raised = next((Fields(event.attributes) for event in reversed(span.events) if event.name == a.EXCEPTION_EVENT), None)
    data = told.get("data")
    detail = data.get("error") if isinstance(data, dict) else None
    message = detail if isinstance(detail, str) else told.get("message")
    return {"type": raised.text(a.EXCEPTION_TYPE) if raised is not None else None, "message": message if isinstance(message, str) else None}


def _around(span: SpanRecord, fields: Fields) -> Found:
    return Found(kind="agent", name=fields.text(NAME) or span.name, session_id=fields.identifier(SESSION), runs=True, frame=True)


def _agent(span: SpanRecord, fields: Fields) -> Found:
    name = fields.text(NAME)
    return Found(kind="agent", name=name or span.name, agent=name, runs=True)


def _tool(span: SpanRecord, fields: Fields) -> Found:
    made = returned(fields.json(OUTPUT))
    return Found(
        kind="tool_call",
        name=fields.text(NAME) or span.name,
        asked={"arguments": called_with(fields.json(INPUT))} if INPUT in fields else None,
        answered={"result": made.value} if OUTPUT in fields else None,
    )


def _handoff(span: SpanRecord, fields: Fields) -> Found:
    to = fields.text(TO)
    told = {"from": fields.text(FROM), "to": to}
    return Found(
        kind="handoff",
        name=to or span.name,
        asked={"arguments": {name: value for name, value in told.items() if value is not None}},
        answered=None if to is None else {"result": to},
    )


def _response(span: SpanRecord, fields: Fields) -> Found:
    """A call of the Responses API: the items that went in, and the whole response, which repeats instructions and tools."""
    given = fields.json(RAW_INPUT)
    body = fields.json(RESPONSE)
    told = body if isinstance(body, dict) else {}
    asked = None if given is None else input_view({"model": "", "input": given, "instructions": told.get("instructions")})
    return _model(span, fields, asked, None if body is None else output_view(body), told.get("tools"), SETTINGS)


def _generation(span: SpanRecord, fields: Fields) -> Found:
    """A chat completion, whose answer is a message, or of a stream the response that the SDK made of it."""
    return _model(span, fields, input_view(fields.json(INPUT)), output_view(fields.json(OUTPUT)), None, CONFIG)


def _model(span: SpanRecord, fields: Fields, asked: Json, answered: Json, tools: Json, settings: str) -> Found:
    set_to = fields.json(settings)
    if asked is not None:
        asked["tools"] = definitions(tools)
        params = set_to if isinstance(set_to, dict) else {}
        asked["params"] = {name: value for name, value in params.items() if value is not None and name not in _NOT_SETTINGS}
    return Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or span.name,
        asked=asked,
        answered=answered,
        versions={"tools": named} if asked is not None and (named := offered(asked["tools"])) else {},
        response_id=fields.identifier(a.GEN_AI_RESPONSE_ID, "response_id"),
    )


_READERS: Final[Mapping[str, Callable[[SpanRecord, Fields], Found]]] = {
    _TRACE: _around,
    "Agent run: {name!r}": _agent,
    "Function: {name}": _tool,
    "Handoff: {from_agent} → {to_agent}": _handoff,
    "Responses API": _response,
    "Responses API with {gen_ai.request.model!r}": _response,
    "Chat completion with {gen_ai.request.model!r}": _generation,
}

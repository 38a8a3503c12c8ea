"""Laminar: ``lmnr.span.*`` around the GenAI conventions.

Its ``@observe`` gives a span a type, ``DEFAULT`` unless told otherwise, and what went in and came out as JSON; arguments by name. Its own
instrumentations of models write the conventions, with the messages of the API that was asked (of OpenAI's chat, the choices).
Source: <https://github.com/lmnr-ai/lmnr-python>, the ``lmnr`` package (0.8.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.replay.model import Json
from spanreplay.replay.reading.calls import called_with, question
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields, decoded_json
from spanreplay.replay.reading.messages import input_view, is_talk, model_input, model_output, output_view
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

TYPE: Final = "lmnr.span.type"
INPUT: Final = "lmnr.span.input"
OUTPUT: Final = "lmnr.span.output"
SESSION: Final = "lmnr.association.properties.session_id"

_KINDS: Final[Mapping[str, Kind]] = {"LLM": "model_call", "TOOL": "tool_call"}


class LaminarDialect:
    """Reads the spans that have a type of Laminar."""

    NAME = "laminar"
    PRIORITY = 150

    def claims(self, span: SpanRecord) -> bool:
        """By the type, which every span of its SDK has."""
        return TYPE in span.attributes

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; a span of no kind is at most the frame of a run, or a tool where a model asked for its call."""
        del logs
        fields = Fields(span.attributes)
        kind = _KINDS.get((fields.text(TYPE) or "").upper())
        if kind == "model_call":
            return drafted(span, fields, _model(span, fields))
        if kind == "tool_call":
            return drafted(span, fields, _tool(span, fields))
        return replace(drafted(span, fields, _around(span, fields)), if_asked=drafted(span, fields, _tool(span, fields)))


def _model(span: SpanRecord, fields: Fields) -> Found:
    asked, answered = model_input(fields), model_output(fields)
    if asked is None and INPUT in fields:
        asked = input_view(_written(fields, INPUT))
    if answered is None and OUTPUT in fields:
        answered = output_view(_written(fields, OUTPUT))
    return Found(
        kind="model_call",
        name=fields.text(a.GEN_AI_REQUEST_MODEL, a.GEN_AI_RESPONSE_MODEL) or span.name,
        asked=asked,
        answered=answered,
        session_id=fields.identifier(SESSION),
    )


def _tool(span: SpanRecord, fields: Fields) -> Found:
    return Found(
        kind="tool_call",
        name=fields.text(a.GEN_AI_TOOL_NAME) or span.name,
        asked={"arguments": called_with(_written(fields, INPUT))} if INPUT in fields else None,
        answered={"result": _written(fields, OUTPUT)} if OUTPUT in fields else None,
        call_id=fields.identifier(a.GEN_AI_TOOL_CALL_ID),
        session_id=fields.identifier(SESSION),
    )


def _around(span: SpanRecord, fields: Fields) -> Found:
    given, made = question(_written(fields, INPUT)), _written(fields, OUTPUT)
    asked: Json = None
    if given is not None:
        asked = input_view(given) if isinstance(given, str) or is_talk(given) else {"arguments": given}
    answered: Json = None
    if OUTPUT in fields:
        answered = output_view(made) if isinstance(made, str) or is_talk(made) else {"result": made}
    return Found(
        kind="agent",
        name=span.name,
        asked=asked,
        answered=answered,
        agent=span.name,
        session_id=fields.identifier(SESSION),
        runs=True,
        frame=True,
    )


def _written(fields: Fields, name: str) -> Json:
    """A value, which is written as JSON once: a text, a number or a ``null`` in it is one."""
    text = fields.attributes.get(name)
    if isinstance(text, str) and text.strip()[:1] not in ("{", "["):
        held, _ = decoded_json(f"[{text}]")
        if isinstance(held, list) and len(held) == 1:
            return held[0]
    return fields.json(name)


DIALECT: Final = LaminarDialect()

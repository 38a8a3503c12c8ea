"""Model calls that Logfire records of the OpenAI and Anthropic clients (``logfire.instrument_openai()`` and ``…_anthropic()``).

In older versions, and with ``version=1`` in later ones, the body of the request is in ``request_data`` and the message of the answer in
``response_data``; of the Responses API both are events, in ``events``. After that the attributes are those of the GenAI conventions.
Source: ``logfire/_internal/integrations/llm_providers/`` of 3.25 and 5.4.
"""

from collections.abc import Sequence
from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.messages import finish_reason, input_view, model_input, model_output, output_view, params
from spanreplay.replay.reading.pending import SPAN_TYPE
from spanreplay.replay.reading.spoken import EVENT_NAME, spoken
from spanreplay.replay.reading.streamed import REMARK, REQUEST, RESPONSE
from spanreplay.replay.reading.versions import offered
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord

EVENTS: Final = "events"
_NAMES: Final = ("Chat Completion with ", "Completion with ", "Responses API with ", "Message with ")
"""How the spans of model calls begin; embeddings, images and other requests have other names."""
_CHUNKS: Final = "combined_chunk_content"


class LogfireDialect:
    """Reads the model calls that Logfire itself records."""

    NAME = "logfire"
    PRIORITY = 35

    def claims(self, span: SpanRecord) -> bool:
        """By the request and the name; a remark on a stream is part of its call."""
        return REQUEST in span.attributes and span.attributes.get(SPAN_TYPE) != REMARK and span.name.startswith(_NAMES)

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The model call."""
        del logs
        fields = Fields(span.attributes)
        body = fields.json(REQUEST, strict=True)
        asked, answered = model_input(fields), model_output(fields)
        said = _said(fields)
        if asked is None:
            asked = _asked(body) or ({"messages": said[0], "system": [], "tools": [], "params": {}} if said[0] else None)
            if asked is not None:
                asked["params"] = {**asked["params"], **params(fields)}
        if answered is None:
            answered = _answered(fields) or ({"messages": said[1], "finish": finish_reason(fields)} if said[1] else None)
        name = fields.text(a.GEN_AI_REQUEST_MODEL) or (body.get("model") if isinstance(body, dict) else None)
        found = Found(
            kind="model_call",
            name=name if isinstance(name, str) else span.name,
            asked=asked,
            answered=answered,
            versions={"tools": tools} if asked is not None and (tools := offered(asked["tools"])) else {},
        )
        return drafted(span, fields, found)


DIALECT: Final = LogfireDialect()


def _asked(body: Json) -> Json:
    """What the body of a request asks; without messages it is the model's name only."""
    return input_view(body) if isinstance(body, dict) and any(name in body for name in ("messages", "prompt", "input")) else None


def _answered(fields: Fields) -> Json:
    told = fields.json(RESPONSE, strict=True)
    if not isinstance(told, dict):
        return None
    message, text = told.get("message"), told.get(_CHUNKS, told.get("text"))
    if isinstance(message, dict):
        return output_view([{key: value for key, value in message.items() if value is not None}])
    return output_view(text) if isinstance(text, str) else None


def _said(fields: Fields) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Both sides of a call of the Responses API: a list of events, the last of which, if they are the model's, are the answer."""
    listed = fields.json(EVENTS, strict=True)
    if not isinstance(listed, list):
        return [], []
    told = spoken(event for event in listed if isinstance(event, dict) and EVENT_NAME in event)
    messages = told.asked or []
    end = len(messages)
    while end and messages[end - 1]["role"] == "assistant":
        end -= 1
    return messages[:end], [*messages[end:], *(told.answered or [])]

"""Requests of the Model Context Protocol, as client and as server: the conventions' ``mcp.*`` and Logfire's spans of version 1 of the SDK.

``tools/call`` is a tool call, and only carries it where a tool span is around it; every other request is a step of its own kind. The
official Python SDK (2.x, scope ``mcp-python-sdk``) has spans of its own on both sides, without arguments and results: a client's
``MCP send tools/call get_weather`` with the server's ``tools/call get_weather`` inside, which are one call. Logfire's have the whole
request and response. Seen in what ``mcp`` 2.3.0 and ``logfire`` 5.4.0 with ``mcp`` 1.30.0 export; conventions:
<https://github.com/open-telemetry/semantic-conventions-genai>.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.drafting import Found, drafted
from spanreplay.replay.reading.fields import Fields
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_SERVER, LogRecord, SpanRecord

METHOD: Final = "mcp.method.name"
VERSION: Final = "mcp.protocol.version"
RESOURCE: Final = "mcp.resource.uri"
PROMPT_VARIABLE: Final = "gen_ai.prompt.variable."
LOGFIRE_SCOPE: Final = "logfire.mcp"
REQUEST: Final = "request"
RESPONSE: Final = "response"

_TOOLS_CALL: Final = "tools/call"
_NOTIFICATION: Final = "notifications/"
_LEAD: Final = re.compile(r"^MCP (?:send |request: |(?P<serves>server handle request: )|client handle request: )")
"""What the Python SDK and Logfire put before the method in the name of a span."""
_NOT_ARGUMENTS: Final = frozenset({"name", "arguments", "meta", "_meta", "task"})


class McpDialect:
    """Reads requests of clients and of servers."""

    NAME = "mcp"
    PRIORITY = 95

    def claims(self, span: SpanRecord) -> bool:
        """An MCP method, which may be left in the span's name alone where a limit dropped it; or a request of Logfire's."""
        if METHOD in span.attributes or (VERSION in span.attributes and _of_name(span) is not None):
            return True
        return span.scope.name == LOGFIRE_SCOPE and REQUEST in span.attributes

    def read(self, span: SpanRecord, logs: Sequence[LogRecord]) -> StepDraft | None:
        """The step; ``None`` where no method is told, and for a notification, which nobody answers."""
        del logs
        fields = Fields(span.attributes)
        request = _object(fields, REQUEST) if span.scope.name == LOGFIRE_SCOPE else {}
        method = fields.text(METHOD) or request.get("method") or _of_name(span)
        if not isinstance(method, str) or not method or method.startswith(_NOTIFICATION):
            return None
        params = request.get("params")
        params = params if isinstance(params, dict) else {}
        lead = _LEAD.match(span.name)
        called = method == _TOOLS_CALL
        found = Found(
            kind="tool_call" if called else "mcp",
            name=(fields.text(a.GEN_AI_TOOL_NAME) or _named(span, method, params)) if called else method,
            asked=_asked(fields, params, called=called),
            answered=_answered(fields, request),
            transport=called,
            serves=span.kind == KIND_SERVER or (lead is not None and lead["serves"] is not None),
        )
        return drafted(span, fields, found)


DIALECT: Final = McpDialect()


def _of_name(span: SpanRecord) -> str | None:
    """The method with which the name of a span begins."""
    first = span.name.partition(" ")[0]
    return first if "/" in first else None


def _object(fields: Fields, name: str) -> dict[str, Any]:
    value = fields.json(name)
    return value if isinstance(value, dict) else {}


def _named(span: SpanRecord, method: str, params: Mapping[str, Json]) -> str:
    """The name of the tool that is called; the client's span of the Python SDK has it in its own name only."""
    name = params.get("name")
    return name if isinstance(name, str) and name else _LEAD.sub("", span.name).removeprefix(f"{method} ") or method


def _asked(fields: Fields, params: Mapping[str, Json], *, called: bool) -> Json:
    if a.GEN_AI_TOOL_CALL_ARGUMENTS in fields:
        return {"arguments": fields.json(a.GEN_AI_TOOL_CALL_ARGUMENTS)}
    if called:
        return {"arguments": params["arguments"]} if "arguments" in params else None
    told: dict[str, Json] = {key: value for key, value in params.items() if key not in _NOT_ARGUMENTS and value is not None}
    if RESOURCE in fields:
        told["uri"] = fields.json(RESOURCE)
    prompt = fields.text(a.GEN_AI_PROMPT_NAME) or params.get("name")
    if prompt is not None:
        told["prompt"] = prompt
    given = {name.removeprefix(PROMPT_VARIABLE): fields.json(name) for name in fields.attributes if name.startswith(PROMPT_VARIABLE)}
    if given or isinstance(params.get("arguments"), dict):
        told["arguments"] = given or params["arguments"]
    return {"arguments": told} if told or params else None


def _answered(fields: Fields, request: Mapping[str, Json]) -> Json:
    if a.GEN_AI_TOOL_CALL_RESULT in fields:
        return {"result": fields.json(a.GEN_AI_TOOL_CALL_RESULT)}
    return {"result": fields.json(RESPONSE)} if request and RESPONSE in fields else None

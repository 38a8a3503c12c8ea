import json

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.dialects.mcp import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_CLIENT, KIND_SERVER, STATUS_ERROR, Scope, SpanRecord, Value
from support.handmade import given

SDK = Scope(name="mcp-python-sdk")
LOGFIRE = Scope(name="logfire.mcp")


def client(
    number: int = 1, parent: int | None = None, *, method: str = "tools/call", tool: str = " get", start: int = 0, end: int = 50
) -> SpanRecord:
    """As the Python SDK writes it: the tool is in the name of the span only."""
    told: dict[str, Value] = {"mcp.method.name": method, "jsonrpc.request.id": "1"}
    return span(number, parent, name=f"MCP send {method}{tool}", scope=SDK, kind=KIND_CLIENT, start=start, end=end, attributes=told)


def server(number: int = 2, parent: int | None = 1, *, method: str = "tools/call", **told: Value) -> SpanRecord:
    own: dict[str, Value] = {"mcp.method.name": method, **told}
    return span(number, parent, name=method, scope=SDK, kind=KIND_SERVER, start=10, end=40, attributes=own)


def read(record: SpanRecord) -> StepDraft:
    assert claimants(record)[0] is DIALECT
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def test_a_call_of_a_tool_is_named_by_the_tool_on_both_sides() -> None:
    ours, theirs = read(client()), read(server(**given({a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "get"})))
    for draft in (ours, theirs):
        assert (draft.kind, draft.name, draft.transport, draft.grade) == ("tool_call", "get", True, "structure")
    assert (ours.serves, theirs.serves) == (False, True)


def test_what_the_conventions_can_hold_is_read() -> None:
    told: dict[str, Value] = {
        "mcp.method.name": "tools/call",
        a.GEN_AI_TOOL_NAME: "get",
        a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"n":1}',
        a.GEN_AI_TOOL_CALL_RESULT: '{"content":[],"isError":true}',
    }
    draft = read(span(1, name="tools/call get", attributes=told))
    assert (draft.input, draft.output) == ({"arguments": {"n": 1}}, {"result": {"content": [], "isError": True}})
    assert (draft.outcome, draft.grade) == ("tool_error", "semantic")


@pytest.mark.parametrize(
    ("method", "told", "asked"),
    [
        ("resources/read", {"mcp.resource.uri": "file:///a"}, {"uri": "file:///a"}),
        ("prompts/get", {a.GEN_AI_PROMPT_NAME: "p", "gen_ai.prompt.variable.city": "Oslo"}, {"prompt": "p", "arguments": {"city": "Oslo"}}),
        ("tools/list", {}, None),
    ],
)
def test_other_requests_are_no_tool_calls(method: str, told: dict[str, Value], asked: dict[str, Value] | None) -> None:
    draft = read(span(1, name=method, attributes={"mcp.method.name": method, **told}))
    assert (draft.kind, draft.name, draft.transport) == ("mcp", method, False)
    assert draft.input == (None if asked is None else {"arguments": asked})


@pytest.mark.parametrize(
    ("error", "outcome"), [("tool_error", "tool_error"), ("-32602", "error"), ("RuntimeError", "error"), ("TimeoutError", "timeout")]
)
def test_failures_of_the_tool_and_of_the_protocol(error: str, outcome: str) -> None:
    told: dict[str, Value] = {"mcp.method.name": "tools/call", a.GEN_AI_TOOL_NAME: "get", a.ERROR_TYPE: error}
    draft = read(span(1, attributes=told, status=STATUS_ERROR, status_message="no"))
    assert (draft.outcome, draft.error) == (outcome, {"type": error, "message": "no"})


def test_client_and_server_are_one_call_which_failed_if_the_server_says_so() -> None:
    failed = server(**given({a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "get", a.ERROR_TYPE: "tool_error"}))
    (run,) = build_runs([client(), failed])
    (step,) = run.steps
    assert (step.kind, step.name, step.outcome, run.unclassified_spans) == ("tool_call", "get", "tool_error", 1)
    (listing,) = build_runs([client(method="tools/list", tool=""), server(method="tools/list")])
    assert [step.name for step in listing.steps] == ["tools/list"]


def logfire(name: str, request: object, response: object, number: int = 1, parent: int | None = None) -> SpanRecord:
    told: dict[str, Value] = {"request": json.dumps(request), "response": json.dumps(response), "logfire.span_type": "span"}
    return span(number, parent, name=name, scope=LOGFIRE, start=number, end=100 - number, attributes=told)


def test_logfire_has_the_content() -> None:
    request = {"method": "tools/call", "params": {"task": None, "meta": None, "name": "get", "arguments": {"city": "Oslo"}}}
    response = {"content": [{"type": "text", "text": "no"}], "isError": True}
    inner = {**request, "jsonrpc": "2.0", "id": 2}
    spans = [
        logfire("MCP request: tools/call get", request, response),
        logfire("MCP server handle request: tools/call", inner, response, 2, 1),
    ]
    (run,) = build_runs(spans)
    (step,) = run.steps
    assert (step.name, step.input, step.output) == ("get", {"arguments": {"city": "Oslo"}}, {"result": response})
    assert (step.outcome, step.grade) == ("tool_error", "semantic")
    reading = read(
        logfire("MCP request: resources/read", {"method": "resources/read", "params": {"meta": None, "uri": "a:b"}}, {"contents": []})
    )
    assert (reading.kind, reading.input, reading.output) == ("mcp", {"arguments": {"uri": "a:b"}}, {"result": {"contents": []}})
    listing = read(logfire("MCP request: tools/list", {"method": "tools/list", "params": {"meta": None}}, {"tools": []}))
    assert (listing.input, listing.grade) == ({"arguments": {}}, "semantic")


@pytest.mark.parametrize(
    "request_text", ["", "{}", '{"method": 7}', '{"method": "tools/call", "params": []}', "[1]", '{"method": "tools/call"}']
)
def test_requests_of_no_shape_cost_nothing(request_text: str) -> None:
    record = span(1, name="MCP request", scope=LOGFIRE, attributes={"request": request_text})
    draft = DIALECT.read(record, ())
    assert draft is None or (draft.name, draft.input) == ("MCP request", None)
    assert DIALECT.read(span(1, attributes={"mcp.method.name": False}), ()) is None


@pytest.mark.parametrize(("name", "kind", "called"), [("tools/call add", "tool_call", "add"), ("resources/read", "mcp", "resources/read")])
def test_where_a_limit_dropped_the_method_the_name_tells_it(name: str, kind: str, called: str) -> None:
    record = span(1, name=name, attributes={"mcp.protocol.version": "2026-07-28"}, dropped_attributes=1)
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    assert (draft.kind, draft.name) == (kind, called)
    assert not DIALECT.claims(span(1, name="initialise", attributes={"mcp.protocol.version": "2026-07-28"}))

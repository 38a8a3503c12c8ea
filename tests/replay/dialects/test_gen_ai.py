import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, asking, chat, event, log, said, span, tool
from spanreplay.replay.dialects.gen_ai import DIALECT
from spanreplay.replay.reading.dialect import StepDraft, registry
from spanreplay.replay.reading.events import with_content
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, SpanRecord, Value

INTEROP = Path(__file__).parents[4] / "shared" / "material" / "interop" / "openinference-js"
MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


@pytest.mark.parametrize("value", [MESSAGES, json.dumps(MESSAGES), json.dumps(json.dumps(MESSAGES))], ids=["structured", "text", "twice"])
def test_messages_are_read_in_every_encoding(value: Value) -> None:
    draft = read(
        chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: value, a.GEN_AI_SYSTEM_INSTRUCTIONS: '[{"type":"text","content":"be kind"}]'})
    )
    assert draft.input["messages"] == MESSAGES
    assert draft.input["system"] == [{"type": "text", "content": "be kind"}]
    assert draft.input["params"] == {"model": "gpt-4o"}
    assert draft.grade == "semantic"


def test_older_spellings_of_parts_and_chat_messages_are_read() -> None:
    given: list[Any] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "data": "x"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"n":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "one"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "result": 1}]},
        {"role": "model", "parts": [{"type": "thinking", "content": "hm"}, "bare"]},
    ]
    draft = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(given)}))
    assert [(m["role"], m["parts"]) for m in draft.input["messages"]] == [
        ("system", [{"type": "text", "content": "s"}]),
        ("user", [{"type": "text", "content": "look"}, {"type": "image", "data": "x"}]),
        ("assistant", [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 1}}]),
        ("tool", [{"type": "tool_call_response", "id": "c", "response": "one"}]),
        ("tool", [{"type": "tool_call_response", "id": "c", "response": 1}]),
        ("assistant", [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "bare"}]),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1,2,3]", [1, 2, 3]),
        ("null", "null"),
        ('"x"', "x"),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("plain words", "plain words"),
        ("[note] no JSON", "[note] no JSON"),
        ("", ""),
        ("7", "7"),
    ],
)
def test_any_arguments_are_kept_as_given(text: str, value: Any) -> None:  # B25
    draft = read(tool(1, args=text, result=text))
    assert (draft.input, draft.output) == ({"arguments": value}, {"result": value})
    assert json.loads(draft.typed_input or "") == value
    assert draft.grade == "semantic"


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a": "tex', '{"a": tru', '{"a":', "[", '{"a": "b\\u00'])
def test_json_that_stops_in_the_middle_is_cut(text: str) -> None:
    draft = read(tool(1, args=text))
    assert draft.grade == "incomplete"
    (reason,) = draft.reasons
    assert reason.code == "cut"
    assert a.GEN_AI_TOOL_CALL_ARGUMENTS in reason.detail
    assert draft.input == {"arguments": text}, "what is there is kept"


def test_cut_messages_are_kept_raw() -> None:
    text = json.dumps(MESSAGES)[:-9]
    draft = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: text}))
    assert draft.grade == "incomplete"
    assert (draft.input["messages"], draft.input["raw"]) == (None, text)


@pytest.mark.parametrize("call_id", ["", "unknown", "<not specified>"])
def test_words_for_no_call_id_are_none(call_id: str) -> None:
    assert read(tool(1, call=call_id)).call_id is None
    assert read(tool(1, call="call_1")).call_id == "call_1"


def test_usage_by_present_and_old_names() -> None:
    new = chat(1, attributes={a.GEN_AI_USAGE_INPUT_TOKENS: 5, a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 2, "gen_ai.usage.prompt_tokens": 99})
    old = chat(
        1,
        attributes={"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": "7", "gen_ai.usage.cache_creation.input_tokens": 1},
    )
    assert read(new).usage == {"input_tokens": 5, "cache_read_input_tokens": 2}
    assert read(old).usage == {"input_tokens": 5, "output_tokens": 7, "cache_write_input_tokens": 1}


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat", "model_call"),
        ("generate_content", "model_call"),
        ("text_completion", "model_call"),
        ("execute_tool", "tool_call"),
        ("invoke_agent", "agent"),
        ("create_agent", "agent"),
        ("invoke_workflow", "agent"),
        ("plan", "agent"),
        ("retrieval", "retrieval"),
        ("embeddings", "retrieval"),
        ("search_memory", "memory"),
        ("upsert_memory", "memory"),
    ],
)
def test_operations_have_kinds(operation: str, kind: str) -> None:
    assert read(span(1, attributes={a.GEN_AI_OPERATION_NAME: operation})).kind == kind


@pytest.mark.parametrize("operation", ["fetch_response", "agent_step", "something new"])
def test_other_operations_are_no_steps(operation: str) -> None:
    assert DIALECT.read(span(1, attributes={a.GEN_AI_OPERATION_NAME: operation}), ()) is None


def test_the_operation_is_read_from_the_name_where_a_limit_dropped_it() -> None:
    record = span(1, name="execute_tool search", attributes={a.GEN_AI_TOOL_CALL_ARGUMENTS: "{}"}, dropped_attributes=3)
    draft = read(record)
    assert (draft.kind, draft.name, draft.grade) == ("tool_call", "search", "incomplete")
    assert not DIALECT.claims(span(1, name="chat room", attributes={"room": 1}))


def test_retrieval_and_memory() -> None:
    found = read(
        span(
            1,
            attributes={
                a.GEN_AI_OPERATION_NAME: "retrieval",
                "gen_ai.retrieval.query.text": "q",
                "gen_ai.retrieval.documents": '[{"id":"d"}]',
            },
        )
    )
    assert (found.input, found.output) == ({"arguments": {"query": "q"}}, {"result": [{"id": "d"}]})
    kept = read(span(1, attributes={a.GEN_AI_OPERATION_NAME: "create_memory", "gen_ai.memory.records": '[{"content":"m"}]'}))
    assert kept.input == {"arguments": {"records": [{"content": "m"}]}}


def test_a_hand_off_is_no_tool_call() -> None:
    draft = read(span(1, attributes={a.GEN_AI_OPERATION_NAME: "execute_tool", "gen_ai.handoff.to_agent": "billing"}))
    assert (draft.kind, draft.name) == ("handoff", "billing")


@pytest.mark.parametrize(
    ("attributes", "claimed"),
    [
        ({a.GEN_AI_REQUEST_MODEL: "m", "gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 1}, True),
        ({a.GEN_AI_REQUEST_MODEL: "m", a.GEN_AI_PROVIDER_NAME: "openai", a.GEN_AI_RESPONSE_MODEL: "m"}, True),
        ({a.GEN_AI_REQUEST_MODEL: "m", "gen_ai.system": "openai"}, False),
        ({a.GEN_AI_REQUEST_MODEL: "m", "gen_ai.usage.prompt_tokens": 1}, False),
        ({"gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 1}, False),
    ],
)
def test_a_model_is_known_without_an_operation(attributes: dict[str, Value], claimed: bool) -> None:
    record = span(1, attributes=attributes)
    assert DIALECT.claims(record) is claimed
    if claimed:
        assert read(record).kind == "model_call"


@pytest.mark.parametrize("names", [("gen_ai.prompt", "gen_ai.completion"), ("input.value", "output.value"), ("input", "output")])
def test_messages_under_older_names(names: tuple[str, str]) -> None:
    asked = json.dumps([{"role": "user", "content": "q"}])
    answered = json.dumps({"text": "a", "finish_reason": "stop"})
    draft = read(chat(1, content=False, attributes={names[0]: asked, names[1]: answered}))
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert draft.input["params"] == {"model": "gpt-4o"}
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "a"}]
    assert (draft.output["finish"], draft.grade) == ("stop", "semantic")
    kept = read(chat(1, attributes={names[0]: asked, names[1]: answered}))
    assert kept.input["messages"][0]["parts"][0]["content"] == "hello", "the present names win"


@pytest.mark.parametrize("names", [("gen_ai.tool.input", "gen_ai.tool.output"), ("input.value", "output.value"), ("input", "output")])
def test_arguments_and_results_under_other_names(names: tuple[str, str]) -> None:
    record = span(1, attributes={a.GEN_AI_TOOL_NAME: "t", names[0]: '{"a": 1}', names[1]: "x"})
    assert (read(record).input, read(record).output) == ({"arguments": {"a": 1}}, {"result": "x"})


def test_an_agent_without_a_name_has_none() -> None:
    (run,) = build_runs([span(1, name="invoke_agent", attributes={a.GEN_AI_OPERATION_NAME: "invoke_agent"})])
    assert run.agent_name is None


def test_ids_of_the_calls_that_a_model_asks_for_are_not_its_own() -> None:
    assert read(chat(1, attributes={a.GEN_AI_TOOL_CALL_ID: "c1"})).call_id is None


def test_one_tool_has_one_digest_however_it_is_written() -> None:
    forms: list[Value] = [
        [{"type": "function", "name": "f", "description": None, "parameters": {}}],
        [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        [{"name": "f", "input_schema": {}}],
        [{"name": "f", "parameters": {}}],
    ]
    found = [read(chat(1, attributes={a.GEN_AI_TOOL_DEFINITIONS: form})) for form in forms]
    assert len({draft.versions["tools"][0]["schema_digest"] for draft in found}) == 1
    assert all(draft.input["tools"] == [{"type": "function", "name": "f", "parameters": {}}] for draft in found)


@pytest.mark.parametrize(
    "name",
    [
        "langsmith.metadata.thread_id",
        "traceloop.association.properties.session_id",
        "gcp.vertex.agent.session_id",
        "ai.telemetry.metadata.sessionId",
        "session.id",
    ],
)
def test_a_session_is_known_by_every_name(name: str) -> None:
    assert read(chat(1, attributes={name: "s1"})).session_id == "s1"
    assert read(chat(1, attributes={name: "s1", a.GEN_AI_CONVERSATION_ID: "c1"})).session_id == "c1"


# ---- outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "attributes", "outcome"),
    [
        (STATUS_OK, {}, "ok"),
        (STATUS_ERROR, {}, "error"),
        (0, {a.ERROR_TYPE: "ValueError"}, "error"),
        (STATUS_ERROR, {a.ERROR_TYPE: "asyncio.exceptions.CancelledError"}, "cancelled"),
        (STATUS_ERROR, {a.ERROR_TYPE: "httpx.ReadTimeout"}, "timeout"),
        (STATUS_ERROR, {a.ERROR_TYPE: "tool_error"}, "tool_error"),
        (0, {a.GEN_AI_TOOL_CALL_RESULT: '{"isError":true,"content":[]}'}, "tool_error"),
    ],
)
def test_outcomes(status: int, attributes: dict[str, Value], outcome: str) -> None:  # B35
    assert read(tool(1, status=status, attributes=attributes)).outcome == outcome


def test_an_exception_event_alone_is_no_failure() -> None:
    raised = event("exception", {a.EXCEPTION_TYPE: "KeyError", a.EXCEPTION_MESSAGE: "x"})
    assert read(tool(1, events=(raised,))).error is None
    assert read(tool(1, status=STATUS_ERROR, events=(raised,))).error == {"type": "KeyError", "message": "x"}
    told = tool(1, status=STATUS_ERROR, status_message="KeyError: x", attributes={a.ERROR_TYPE: "tool_error"}, events=(raised,))
    assert read(told).error == {"type": "tool_error", "message": "x"}, "the status text of OpenTelemetry's SDK names the exception again"


def test_a_model_that_ended_abnormally() -> None:
    assert read(chat(1, attributes={a.GEN_AI_RESPONSE_FINISH_REASONS: ["error"]})).outcome == "error"
    assert read(chat(1, attributes={a.GEN_AI_RESPONSE_STATUS: "failed"})).outcome == "error"
    assert read(chat(1, attributes={a.GEN_AI_RESPONSE_FINISH_REASONS: '["stop"]'})).output["finish"] == "stop"


# ---- grades ----------------------------------------------------------------------------------------------------------


def test_grades() -> None:
    assert read(chat(1, content=False)).grade == "structure"
    assert read(tool(1, result=None)).grade == "structure"
    assert read(tool(1, result=None, status=STATUS_ERROR)).grade == "semantic", "how it failed is its answer"
    assert read(agent(1)).grade == "semantic", "an agent is passed through"
    assert read(chat(1, end=None)).grade == "incomplete"
    assert read(chat(1, dropped_attributes=1)).grade == "incomplete"
    assert read(chat(1, dropped_events=1)).grade == "incomplete"


@pytest.mark.parametrize("placeholder", ["<REDACTED>", "__REDACTED__", "<elided>"])
def test_placeholders_are_not_content(placeholder: str) -> None:
    draft = read(chat(1, attributes={a.GEN_AI_INPUT_MESSAGES: placeholder}))
    assert (draft.input, draft.grade) == (None, "structure")


def test_uploaded_content_is_pointed_to() -> None:
    draft = read(chat(1, content=False, attributes={"gen_ai.input.messages_ref": "s3://b/1_inputs.json"}))
    assert any(reason.code == "content-elsewhere" and "s3://b/1_inputs.json" in reason.detail for reason in draft.reasons)


# ---- content in events -----------------------------------------------------------------------------------------------


def test_content_from_events_is_added_where_the_span_lacks_it() -> None:
    told = {a.GEN_AI_INPUT_MESSAGES: said("from event"), a.GEN_AI_OUTPUT_MESSAGES: asking(("c", "f", {})), a.GEN_AI_REQUEST_MODEL: "wrong"}
    by_log = with_content(chat(1, content=False), [log(1, a.GEN_AI_INFERENCE_DETAILS_EVENT, told)]).span
    by_old_log = with_content(chat(1, content=False), [log(1, "", {"event.name": a.GEN_AI_INFERENCE_DETAILS_EVENT}, body=told)]).span
    by_event = with_content(chat(1, content=False, events=(event(a.GEN_AI_INFERENCE_DETAILS_EVENT, told),)), []).span
    for record in (by_log, by_old_log, by_event):
        draft = read(record)
        assert draft.input["messages"][0]["parts"][0]["content"] == "from event"
        assert (draft.name, draft.grade) == ("gpt-4o", "semantic")
    kept = with_content(chat(1), [log(1, a.GEN_AI_INFERENCE_DETAILS_EVENT, told)]).span
    assert read(kept).input["messages"][0]["parts"][0]["content"] == "hello"


@pytest.mark.skipif(not INTEROP.is_dir(), reason="the shared material is not here")
@pytest.mark.parametrize("name", ["otel_genai_client_span_tool_calls", "otel_genai_deprecated_client_span_tool_calls"])
def test_captured_model_spans(name: str) -> None:
    draft = read(span(1, attributes=json.loads((INTEROP / f"{name}.json").read_text(encoding="utf-8"))))
    parts = [(m["role"], part["type"]) for m in draft.input["messages"] for part in m["parts"]]
    assert parts == [("user", "text"), ("assistant", "text"), ("assistant", "tool_call"), ("tool", "tool_call_response")]
    assert draft.output["messages"][0]["parts"][0]["content"].startswith("The weather in Paris")
    assert (draft.output["finish"], draft.grade, draft.usage["output_tokens"]) == ("stop", "semantic", 52)


@pytest.mark.skipif(not INTEROP.is_dir(), reason="the shared material is not here")
def test_a_captured_tool_span() -> None:
    draft = read(span(1, attributes=json.loads((INTEROP / "otel_genai_tool_execution_span.json").read_text(encoding="utf-8"))))
    assert (draft.kind, draft.name, draft.call_id) == ("tool_call", "get_weather", "1234")
    assert draft.input == {"arguments": {"city": "New York"}}
    assert draft.output["result"]["status"] == "success"


# ---- whole kinds -----------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.sampled_from(["[", '{"a', "[[1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(sorted(value for name, value in vars(a).items() if name.isupper() and isinstance(value, str)))


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=8), st.sampled_from(["chat", "execute_tool", "invoke_agent", "plan", "retrieval", "x"]))
def test_no_attribute_of_any_type_costs_a_span(attributes: dict[str, Any], operation: str) -> None:
    record = span(1, name=f"{operation} y", attributes={a.GEN_AI_OPERATION_NAME: operation, **attributes})
    for dialect in registry():
        if dialect.claims(record):
            dialect.read(record, ())
    (run,) = build_runs([record])
    assert "unreadable" not in {reason.code for reason in run.grade_reasons}
    json.dumps(run.to_json())


def test_nested_beyond_reason_is_text() -> None:
    deep = "[" * 5000 + "]" * 5000
    draft = read(tool(1, args=deep))
    assert draft.input == {"arguments": deep}


def test_a_remark_of_logfire_on_a_call_is_no_call() -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    for kind, is_call in (("log", False), ("span", True)):
        made = SpanRecord(trace_id="1" * 32, span_id="2" * 16, name="chat m", attributes={**told, "logfire.span_type": kind})
        assert DIALECT.claims(made) is is_call


def test_a_tool_named_by_the_conventions_without_an_operation_is_a_tool_call() -> None:
    told: dict[str, Value] = {
        a.GEN_AI_TOOL_NAME: "greet",
        a.GEN_AI_TOOL_CALL_ID: "c1",
        "input.value": '{"name":"Bob"}',
        "output.value": "Hello Bob!",
    }
    draft = read(span(1, name="tool.greet", attributes=told))
    assert (draft.kind, draft.name, draft.call_id, draft.grade) == ("tool_call", "greet", "c1", "semantic")
    assert draft.input == {"arguments": {"name": "Bob"}}
    assert draft.output == {"result": "Hello Bob!"}
    assert not DIALECT.claims(span(1, attributes={"input.value": "x"}))


def test_digests_beside_anybodys_content_prove_that_it_was_cut() -> None:
    """What the gateway of ``collector-config/`` writes beside the texts that it shortens for the view."""
    digests = json.dumps(
        {a.GEN_AI_INPUT_MESSAGES: ["0" * 64, 99_000], a.GEN_AI_OUTPUT_MESSAGES: [sha256(said("hi", "assistant").encode()).hexdigest(), 9]}
    )
    (run,) = build_runs([chat(1, attributes={a.STEP_DIGESTS: digests})])
    assert run.grade == "incomplete"
    assert [(reason.code, reason.field) for reason in run.steps[0].reasons if reason.code == "cut"] == [("cut", a.GEN_AI_INPUT_MESSAGES)]


@pytest.mark.parametrize("said", ["plain answer", "[{'role': 'assistant', 'parts': ['it\\'s']}]", "[see the note] it is so", "9 lives"])
def test_a_text_that_is_no_json_is_what_was_said_and_is_not_cut(said: str) -> None:
    (run,) = build_runs([chat(1, attributes={a.GEN_AI_OUTPUT_MESSAGES: said})])
    (step,) = run.steps
    told = [reason.code for reason in step.reasons if reason.field == a.GEN_AI_OUTPUT_MESSAGES]
    if said.startswith("[see"):
        assert told == ["cut"], "it begins like a list and does not end like one"
    else:
        assert told == []
        assert isinstance(step.output, dict)
        assert step.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]


@pytest.mark.parametrize(("flag", "grade"), [(True, "incomplete"), (False, "semantic"), ("true", "semantic")])
def test_a_result_that_ag2_says_it_cut_is_cut(flag: Value, grade: str) -> None:
    more: dict[str, Value] = {a.GEN_AI_TOOL_CALL_RESULT: "rain...[truncated]", "ag2.tool.result.truncated": flag}
    record = tool(1)
    assert read(replace(record, attributes={**record.attributes, **more})).grade == grade


def test_making_an_agent_is_no_run_of_it() -> None:
    made = {a.GEN_AI_OPERATION_NAME: "create_agent", a.GEN_AI_AGENT_NAME: "helper"}
    (run,) = build_runs([span(1, attributes=made)])
    assert (run.grade, run.steps[0].kind) == ("semantic", "agent"), "nothing of it is lost"
    assert any(reason.code == "no-calls" and "nothing asked of it" in reason.detail for reason in run.grade_reasons)
    (used,) = build_runs([span(1, attributes=made), chat(2, start=20)])
    assert "no-calls" not in {reason.code for reason in used.grade_reasons}


@pytest.mark.parametrize(("written", "arguments"), [("None", {}), ('{"a": "None"}', {"a": "None"}), ("None of it", "None of it")])
def test_a_call_without_arguments_may_say_so_in_the_words_of_python(written: str, arguments: object) -> None:
    told = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "look", a.GEN_AI_TOOL_CALL_ARGUMENTS: written}
    assert read(span(1, attributes=told)).input == {"arguments": arguments}

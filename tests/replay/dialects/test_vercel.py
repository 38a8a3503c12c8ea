import json
from typing import Any

import pytest

from fixtures.runs.spans import event, span
from spanreplay.replay.dialects.vercel import DIALECT
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import KIND_CLIENT, KIND_INTERNAL, STATUS_ERROR, Scope, SpanRecord, Value

SAID = [{"role": "user", "content": [{"type": "text", "text": "q"}]}]
SEVEN = Scope(name="gen_ai")


def operation(name: str, attributes: dict[str, Value], number: int = 1, **more: Any) -> SpanRecord:
    return span(number, name=name, attributes={"ai.operationId": name, **attributes}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def model(attributes: dict[str, Value], **more: Any) -> StepDraft:
    return read(operation("ai.streamText.doStream", {"ai.model.id": "m", "ai.prompt.messages": json.dumps(SAID), **attributes}, **more))


@pytest.mark.parametrize("key", ["args", "input"])
@pytest.mark.parametrize("encode", [json.dumps, lambda value: value], ids=["text", "object"])
def test_an_answer_is_put_together_from_its_attributes(key: str, encode: Any) -> None:
    calls = [{"toolCallType": "function", "toolCallId": "c", "toolName": "f", key: encode({"n": 1})}]
    draft = model(
        {
            "ai.response.reasoning": "hm",
            "ai.response.text": "I call.",
            "ai.response.toolCalls": json.dumps(calls),
            "ai.response.files": json.dumps([{"mediaType": "image/png", "base64": "aGk="}]),
            "ai.response.finishReason": "tool-calls",
        }
    )
    assert draft.output == {
        "messages": [
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "hm"},
                    {"type": "text", "content": "I call."},
                    {"type": "tool_call", "id": "c", "name": "f", "arguments": {"n": 1}},
                    {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGk="},
                ],
            }
        ],
        "finish": "tool-calls",
    }
    assert (draft.name, draft.grade) == ("m", "semantic")


def test_an_object_is_what_the_model_wrote() -> None:
    draft = read(operation("ai.generateObject.doGenerate", {"ai.prompt.messages": json.dumps(SAID), "ai.response.object": '{"a": 1}'}))
    assert draft.output["messages"] == [{"role": "assistant", "parts": [{"type": "text", "content": '{"a": 1}'}]}]


def test_tools_of_every_version_and_the_choice_of_one_are_part_of_what_was_asked() -> None:
    schema = {"type": "object"}
    tools = (
        json.dumps({"type": "function", "name": "f", "inputSchema": schema}),
        json.dumps({"type": "function", "name": "g", "parameters": schema}),
    )
    draft = model({"ai.prompt.tools": tools, "ai.prompt.toolChoice": '{"type":"required"}', "gen_ai.request.temperature": 0})
    assert draft.input["tools"] == [{"type": "function", "name": name, "parameters": schema} for name in ("f", "g")]
    assert draft.input["params"] == {"temperature": 0, "tool_choice": {"type": "required"}}
    assert [tool["name"] for tool in draft.versions["tools"]] == ["f", "g"]


def test_tokens_by_the_names_of_every_version() -> None:
    old = model({"ai.usage.promptTokens": 3, "ai.usage.completionTokens": 2})
    new = model({"ai.usage.inputTokens": 3, "ai.usage.outputTokens": 2, "ai.usage.cachedInputTokens": 1, "ai.usage.reasoningTokens": 0})
    assert old.usage == {"input_tokens": 3, "output_tokens": 2}
    assert new.usage == {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1}


def test_the_whole_call_is_the_agent() -> None:
    prompt = {"system": "be kind", "messages": SAID}
    root = operation(
        "ai.generateText",
        {
            "ai.prompt": json.dumps(prompt),
            "ai.telemetry.functionId": "helper",
            "ai.telemetry.metadata.chatId": "chat-1",
            "ai.response.text": "a",
            "ai.model.id": "m",
        },
    )
    inner = operation("ai.generateText.doGenerate", {"ai.prompt.messages": json.dumps(SAID)}, 2, parent=1, start=1, end=5)
    (run,) = build_runs([root, inner])
    assert (run.agent_name, run.session_id, run.outcome) == ("helper", "chat-1", "ok")
    assert run.input["system"] == [{"type": "text", "content": "be kind"}]
    assert run.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert run.output["messages"][0]["parts"] == [{"type": "text", "content": "a"}]
    assert [step.kind for step in run.steps] == ["model_call"]


def test_a_tool_that_fails_says_how() -> None:
    raised = event("exception", {a.EXCEPTION_TYPE: "Error", a.EXCEPTION_MESSAGE: "no"})
    failed = read(
        operation(
            "ai.toolCall", {"ai.toolCall.name": "f", "ai.toolCall.id": "c", "ai.toolCall.args": "{}"}, status=STATUS_ERROR, events=(raised,)
        )
    )
    assert (failed.name, failed.call_id, failed.input, failed.output) == ("f", "c", {"arguments": {}}, None)
    assert (failed.outcome, failed.error, failed.grade) == ("error", {"type": "Error", "message": "no"}, "semantic")


def test_without_inputs_and_outputs_only_the_structure_is_left() -> None:
    draft = read(operation("ai.generateText.doGenerate", {"ai.model.id": "m", "ai.response.finishReason": "stop"}))
    assert (draft.input, draft.output, draft.grade) == (None, None, "structure")
    assert [reason.code for reason in draft.reasons] == ["input-absent", "output-absent"]


@pytest.mark.parametrize("name", ["ai.embed", "ai.embedMany", "ai.rerank", "ai.somethingNew"])
def test_what_only_stands_around_steps_is_none(name: str) -> None:
    assert DIALECT.claims(operation(name, {}))
    assert DIALECT.read(operation(name, {}), ()) is None


def test_embeddings_and_rankings() -> None:
    found = read(operation("ai.embedMany.doEmbed", {"ai.values": ('"a"', '"b"'), "ai.embeddings": ("[1]", "[2]"), "ai.usage.tokens": 2}))
    assert (found.kind, found.input, found.output) == ("retrieval", {"arguments": {"values": ["a", "b"]}}, {"result": [[1], [2]]})
    assert found.usage == {"input_tokens": 2}
    ranked = read(operation("ai.rerank.doRerank", {"ai.documents": ('"a"',), "ai.ranking": ('{"index":0,"relevanceScore":1}',)}))
    assert (ranked.output, ranked.grade) == ({"result": [{"index": 0, "relevanceScore": 1}]}, "structure")
    assert [reason.detail for reason in ranked.reasons] == ["the query of a ranking is not recorded"]


# ---- version 7 -------------------------------------------------------------------------------------------------------


def seven(name: str, attributes: dict[str, Value] | None = None, *, scope: Scope = SEVEN, kind: int = KIND_INTERNAL) -> SpanRecord:
    return span(1, name=name, scope=scope, kind=kind, attributes={a.GEN_AI_OPERATION_NAME: name, **(attributes or {})})


def test_a_round_of_version_7_is_no_step_whatever_the_tracer() -> None:
    for scope in (SEVEN, Scope(name="my app")):
        record = seven("agent_step", scope=scope)
        first = claimants(record)[0]
        assert (first.NAME, first.read(record, ())) == ("vercel", None)
    assert not DIALECT.claims(seven("chat", scope=Scope(name="my app"))), "the conventions say it all"


def test_version_7_counts_each_request_once() -> None:
    assert DIALECT.read(seven("embeddings"), ()) is None
    inner = seven("embeddings", {"ai.values": ('"a"',), "ai.embeddings": ("[1]",), "gen_ai.request.model": "e"}, kind=KIND_CLIENT)
    assert (read(inner).name, read(inner).output) == ("e", {"result": [[1]]})
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "read this"}]}])
    assert read(seven("ai.generateSpeech", {a.GEN_AI_INPUT_MESSAGES: said})).input["messages"][0]["parts"][0]["content"] == "read this"


def test_the_session_of_version_7_is_in_the_runtime_context() -> None:
    assert read(seven("invoke_agent", {"ai.settings.context.sessionId": "s"})).session_id == "s"
    tool = read(
        seven("execute_tool", {a.GEN_AI_TOOL_NAME: "f", a.GEN_AI_TOOL_CALL_ARGUMENTS: '{"n":1}', a.GEN_AI_TOOL_CALL_RESULT: '"one"'})
    )
    assert (tool.name, tool.input, tool.output) == ("f", {"arguments": {"n": 1}}, {"result": "one"})


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({}, "ok"),
        ({"events": (event("exception", {"exception.type": "Error", "exception.message": "down"}),)}, "error"),
        ({"status_message": ""}, "error"),
    ],
)
def test_the_failure_of_another_span_is_not_this_ones(more: dict[str, Any], outcome: str) -> None:
    told: dict[str, Any] = {"status": STATUS_ERROR, "status_message": "down", **more}
    attributes: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_RESPONSE_ID: "r", "openinference.span.kind": "LLM"}
    assert read(span(1, scope=SEVEN, attributes=attributes, **told)).outcome == outcome
    plain = {name: value for name, value in attributes.items() if name.startswith("gen_ai.")}
    assert read(span(1, scope=SEVEN, attributes=plain, **told)).outcome == "error"


@pytest.mark.parametrize("name", ["ai.toolCall.result", a.GEN_AI_TOOL_CALL_RESULT])
@pytest.mark.parametrize(("written", "result"), [('"[1, 2]"', "[1, 2]"), ("[1, 2]", [1, 2]), ('"sunny"', "sunny"), ("0", 0)])
def test_a_tool_that_gives_text_gives_text_whatever_it_looks_like(name: str, written: str, result: Any) -> None:
    if name == a.GEN_AI_TOOL_CALL_RESULT:
        record = seven("execute_tool x", {a.GEN_AI_OPERATION_NAME: "execute_tool", name: written})
    else:
        record = operation("ai.toolCall", {name: written})
    assert read(record).output == {"result": result}


def test_the_span_around_a_request_for_embeddings_is_no_other_look_up() -> None:
    told: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "embeddings", a.GEN_AI_REQUEST_MODEL: "m"}
    outer = span(1, name="embeddings m", scope=SEVEN, kind=KIND_CLIENT, attributes=told, end=50)
    inner = span(2, 1, name="embeddings m", scope=SEVEN, kind=KIND_CLIENT, attributes={**told, a.GEN_AI_USAGE_INPUT_TOKENS: 4})
    [run] = build_runs([outer, inner])
    assert [(step.name, step.usage) for step in run.steps] == [("m", {"input_tokens": 4})]


def test_how_a_stream_ended_that_was_aborted_is_not_known_and_why_there_is_nothing_to_replay_is_said() -> None:
    prompt = json.dumps({"prompt": "q"})
    (run,) = build_runs([operation("ai.streamText", {"ai.prompt": prompt, "ai.model.id": "m"})])
    assert (run.outcome, run.grade, [reason.code for reason in run.grade_reasons]) == ("unknown", "structure", ["no-calls"])
    (whole,) = build_runs([operation("ai.streamText", {"ai.prompt": prompt, "ai.response.finishReason": "stop"})])
    assert whole.outcome == "ok"
    asked: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_INPUT_MESSAGES: json.dumps(SAID)}
    assert read(span(1, scope=SEVEN, attributes=asked)).outcome == "unknown"
    assert read(span(1, scope=SEVEN, attributes={**asked, "gen_ai.usage.output_tokens": 3})).outcome == "ok"

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import event, span
from spanreplay.replay.dialects.openinference import DIALECT
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.grouping import read_spans
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.tree import build
from spanreplay.spans.record import STATUS_ERROR, STATUS_OK, Scope, SpanRecord, Value

INTEROP = Path(__file__).parents[4] / "shared" / "material" / "interop" / "openinference-js"


def told(kind: str, attributes: Mapping[str, Value] | None = None, **more: Any) -> SpanRecord:
    return span(1, attributes={"openinference.span.kind": kind, **(attributes or {})}, **more)


def read(record: SpanRecord) -> StepDraft:
    assert DIALECT.claims(record)
    draft = DIALECT.read(record, ())
    assert draft is not None
    return draft


def flat(side: str, *messages: Mapping[str, Value] | None) -> dict[str, Value]:
    """Messages, flattened; ``None`` leaves a place empty."""
    return {
        f"llm.{side}_messages.{place}.message.{name}": value
        for place, message in enumerate(messages)
        for name, value in (message or {}).items()
    }


def call(place: int, call_id: str, name: str, arguments: str | None) -> dict[str, Value]:
    made = {f"tool_calls.{place}.tool_call.id": call_id, f"tool_calls.{place}.tool_call.function.name": name}
    return {**made, **({} if arguments is None else {f"tool_calls.{place}.tool_call.function.arguments": arguments})}


# ---- models ----------------------------------------------------------------------------------------------------------


def test_flattened_messages_tools_and_parameters() -> None:
    draft = read(
        told(
            "LLM",
            {
                **flat(
                    "input",
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "1+1?"},
                    {"role": "assistant", **call(0, "c1", "add", '{"a": 1}'), **call(1, "c2", "now", None)},
                    {"role": "tool", "content": "2", "tool_call_id": "c1", "name": "add"},
                ),
                **flat("output", {"role": "assistant", "content": "2"}),
                "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "add", "parameters": {}}}',
                "llm.tools.1.tool.name": "now",
                "llm.invocation_parameters": '{"model": "gpt-4o", "temperature": 0, "stop": null}',
                "llm.model_name": "gpt-4o-2024-08-06",
                "llm.provider": "openai",
                "llm.finish_reason": "stop",
                "llm.token_count.prompt": 5,
                "llm.token_count.completion": 7,
                "llm.token_count.prompt_details.cache_read": 2,
                "session.id": "s1",
            },
        )
    )
    assert [(m["role"], m["parts"]) for m in draft.input["messages"]] == [
        ("system", [{"type": "text", "content": "be brief"}]),
        ("user", [{"type": "text", "content": "1+1?"}]),
        (
            "assistant",
            [
                {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}},
                {"type": "tool_call", "id": "c2", "name": "now", "arguments": {}},
            ],
        ),
        ("tool", [{"type": "tool_call_response", "id": "c1", "response": "2"}]),
    ]
    assert draft.input["tools"] == [{"type": "function", "name": "add", "parameters": {}}, {"type": "function", "name": "now"}]
    assert draft.input["params"] == {"temperature": 0}
    assert draft.output == {"messages": [{"role": "assistant", "parts": [{"type": "text", "content": "2"}]}], "finish": "stop"}
    assert (draft.name, draft.session_id, draft.grade) == ("gpt-4o", "s1", "semantic")
    assert draft.usage == {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 2}
    assert draft.versions["model"] == {"provider": "openai", "request": "gpt-4o", "response": "gpt-4o-2024-08-06"}
    assert [tool["name"] for tool in draft.versions["tools"]] == ["add", "now"]


WEATHER = ('{"celsius": 21}', '{"celsius": 4, "sky": "a\\n\\nb"}')


def texts(*given: str) -> dict[str, Value]:
    numbered = enumerate(given)
    return {f"contents.{n}.message_content.{name}": value for n, text in numbered for name, value in (("type", "text"), ("text", text))}


@pytest.mark.parametrize(
    ("results", "ids"),
    [
        ({"content": "\n\n".join(WEATHER)}, (None, None)),
        (texts(*WEATHER), (None, None)),
        ({**texts(*WEATHER), "tool_call_id": "c2"}, ("c1", "c2")),
        ({"content": WEATHER[0]}, None),
        ({"content": "\n\n".join(WEATHER) + "\n\nand now?"}, None),
        ({"content": "no\n\nJSON"}, None),
        ({"content": "[1]\n\n[2]"}, None),
        (texts(*WEATHER, "and now?"), None),
    ],
)
def test_results_that_google_genai_gives_as_a_user_are_those_of_the_calls_before(results: dict[str, Value], ids: Any) -> None:
    made = [call(n, "", "get_weather", json.dumps({"city": city})) for n, city in enumerate(("Paris", "Oslo"))]
    called = {name: value for one in made for name, value in one.items() if not name.endswith(".id")}
    if ids is not None and ids[0] is not None:
        called |= {f"tool_calls.{n}.tool_call.id": call_id for n, call_id in enumerate(ids)}
    question = {"role": "user", "content": "Paris? Oslo?"}
    asked = told("LLM", {**flat("input", question), **flat("output", {"role": "model", **called})})
    after = told("LLM", flat("input", question, {"role": "model", **called}, {"role": "user", **results}))
    parts = read(after).input["messages"][2]["parts"]
    assert [part["id"] for part in parts if part["type"] == "tool_call_response"] == list(ids or ())
    if ids is not None:
        assert [part["response"]["celsius"] for part in parts] == [21, 4]
    (run,) = build_runs([asked, replace(after, span_id="2" * 16, start_ns=9_000, end_ns=9_500)])
    codes = {reason.code for reason in run.grade_reasons}
    assert ("call-not-run" in codes, "call-without-span" in codes) == (ids is None, ids is not None)


@pytest.mark.parametrize(
    ("attributes", "all_of_them"),
    [
        ({"llm.invocation_parameters": '{"model": "m"}'}, True),
        ({"llm.invocation_parameters": "{}"}, True),
        ({}, False),
        ({"llm.invocation_parameters": "__REDACTED__"}, False),
        ({"llm.invocation_parameters": "{}", "gen_ai.request.model": "m"}, False),
        ({"llm.invocation_parameters": '{"_type": "openai-chat"}'}, True),
        ({"llm.invocation_parameters": '{"_type": "chat-google-generative-ai"}'}, False),
    ],
)
def test_whether_the_parameters_are_all_that_the_call_had(attributes: dict[str, Value], all_of_them: bool) -> None:
    assert read(told("LLM", {**flat("input", {"role": "user", "content": "Hi"}), **attributes})).every_setting is all_of_them


def test_contents_are_parts() -> None:
    contents: dict[str, Value] = {
        "0.message_content.type": "text",
        "0.message_content.text": "look",
        "1.message_content.type": "image",
        "1.message_content.image.image.url": "data:image/png;base64,aGk=",
        "2.message_content.type": "audio",
        "2.message_content.audio.audio.url": "https://a.example/x.mp3",
        "2.message_content.audio.audio.mime_type": "audio/mpeg",
        "3.message_content.type": "reasoning",
        "3.message_content.text": "hm",
        "3.message_content.signature": "sig",
        "4.message_content.type": "tool_use",
        "4.tool_call.id": "c1",
        "4.tool_call.function.name": "add",
        "4.tool_call.function.arguments": '{"a": 1}',
        "5.message_content.type": "redacted_thinking",
        "5.message_content.data": "xyz",
    }
    message = {"role": "assistant", **{f"contents.{name}": value for name, value in contents.items()}, **call(0, "c1", "add", '{"a": 1}')}
    assert read(told("LLM", flat("output", message))).output["messages"][0]["parts"] == [
        {"type": "text", "content": "look"},
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGk="},
        {"type": "uri", "mime_type": "audio/mpeg", "modality": "audio", "uri": "https://a.example/x.mp3"},
        {"type": "reasoning", "content": "hm", "signature": "sig"},
        {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}},
        {"type": "redacted_thinking", "data": "xyz"},
    ]


def test_a_text_that_is_there_twice_is_there_once() -> None:
    message: dict[str, Value] = {"content": "hi", "contents.0.message_content.type": "text", "contents.0.message_content.text": "hi"}
    assert read(told("LLM", flat("output", message))).output["messages"][0]["parts"] == [{"type": "text", "content": "hi"}]
    listed: dict[str, Value] = {"role": "assistant", "content.0": "a", "content.1": "b"}
    assert [part["content"] for part in read(told("LLM", flat("output", listed))).output["messages"][0]["parts"]] == ["a", "b"]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_message_that_is_missing_moves_no_other(lost: int) -> None:  # a whole kind: instrumentations leave out what they cannot read
    said: list[dict[str, Value] | None] = [{"role": "user", "content": str(n)} for n in range(4)]
    said[lost] = None
    draft = read(told("LLM", {**flat("input", *said), **flat("output", {"content": "x"})}))
    assert [m["parts"][0]["content"] for m in draft.input["messages"]] == [str(n) for n in range(4) if n != lost]
    if lost:
        assert draft.grade == "incomplete"
        assert any(reason.code == "message-absent" and str(lost) in reason.detail for reason in draft.reasons)
    else:
        assert draft.grade == "semantic", "some begin to count at one, where there are no instructions"


def test_a_request_that_is_there_whole_is_the_better_record() -> None:
    request = {
        "model": "claude",
        "max_tokens": 9,
        "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "2"}]}],
    }
    response = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "2"}],
        "stop_reason": "end_turn",
    }
    flattened = flat("input", {"role": "system", "content": "be brief"}, {"role": "tool", "content": "2", "tool_call_id": "c1"})
    draft = read(told("LLM", {**flattened, "input.value": json.dumps(request), "output.value": json.dumps(response)}))
    assert draft.input["system"] == [{"type": "text", "content": "be brief"}]
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2"}]}]
    assert (draft.name, draft.response_id, draft.output["finish"]) == ("claude", "msg_1", "end_turn")


def test_items_of_the_responses_api_with_instructions_beside_them() -> None:
    items = [
        {"role": "user", "content": "1+1?"},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
        {"type": "mcp_call", "id": "m1", "name": "x", "arguments": "{}", "output": "y"},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
    ]
    said: list[dict[str, Value] | None] = [
        {"role": "system", "content": "add"},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", **call(0, "c1", "add", None)},
        None,
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]
    draft = read(told("LLM", {**flat("input", *said), "input.value": json.dumps(items), **flat("output", {"content": "2"})}))
    assert draft.input["system"] == [{"type": "text", "content": "add"}]
    assert [m["role"] for m in draft.input["messages"]] == ["user", "assistant", "tool"]
    assert draft.grade == "semantic", "the items hold the message that the attributes lack"


def test_a_question_in_plain_text_beside_instructions() -> None:
    draft = read(told("LLM", {**flat("input", {"role": "system", "content": "add"}), "input.value": "1+1?"}))
    assert [(m["role"], m["parts"][0]["content"]) for m in draft.input["messages"]] == [("system", "add"), ("user", "1+1?")]


@pytest.mark.parametrize(
    ("attributes", "texts"),
    [
        ({"llm.prompts.0.prompt.text": "a", "llm.prompts.1.prompt.text": "b"}, ["a", "b"]),
        ({"llm.prompts": ["a", "b"]}, ["a", "b"]),
        ({"input.value": "a"}, ["a"]),
        ({"input.value": '{"messages": ["ChatMessage(role=user)"]}'}, ["ChatMessage(role=user)"]),
        ({"input.value": '{"question": "a"}'}, ['{"question": "a"}']),
    ],
)
def test_prompts_and_plain_values(attributes: dict[str, Value], texts: list[str]) -> None:
    draft = read(told("LLM", {**attributes, "llm.choices.0.completion.text": "c"}))
    assert [m["parts"][0]["content"] for m in draft.input["messages"]] == texts
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "c"}]


def test_a_structured_answer_in_plain_text_is_its_text() -> None:
    draft = read(told("LLM", {"input.value": "q", "output.value": '{"answer": 42}'}))
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": '{"answer": 42}'}]


def test_what_was_hidden_is_not_there() -> None:
    hidden = flat("input", {"role": "user", "content": "__REDACTED__"})
    draft = read(told("LLM", {**hidden, "input.value": "__REDACTED__", "output.value": "__REDACTED__"}))
    assert (draft.output, draft.grade) == (None, "structure")
    assert read(told("LLM", {"input.value": "__REDACTED__", "output.value": "__REDACTED__"})).input is None


def test_cut_values_matter_where_nothing_else_tells() -> None:
    cut = {"input.value": '{"model": "m", "messages": [{"role": "us', "output.value": "x"}
    assert read(told("LLM", cut)).grade == "incomplete"
    assert read(told("LLM", {**cut, **flat("input", {"role": "user", "content": "a"})})).grade == "semantic"


def test_each_run_knows_its_own_prompt() -> None:  # B61
    found = []
    for template in ("Say {x}", "Tell {x}"):
        prompt: dict[str, Value] = {"llm.prompt_template.template": template, "llm.prompt_template.version": "v1", "prompt.id": "greeting"}
        (run,) = build_runs([told("LLM", {"input.value": "q", "output.value": "a", **prompt})])
        found.append(run.versions.prompt[0])
    assert [p["template"] for p in found] == ["Say {x}", "Tell {x}"]
    assert (found[0]["name"], found[0]["version"]) == ("greeting", "v1")
    assert found[0]["digest"] != found[1]["digest"], "a changed prompt is seen although its version is the same"


# ---- tools and hand-offs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "arguments"),
    [
        ({"input.value": '{"city": "Paris"}', "input.mime_type": "application/json"}, {"city": "Paris"}),
        ({"input.value": "Paris"}, "Paris"),
        ({"tool.parameters": '{"city": "Paris"}'}, {"city": "Paris"}),
        ({"input.value": '{"args": [], "sanitize_inputs_outputs": false, "kwargs": {"city": "Paris"}}'}, {"city": "Paris"}),
        (
            {"input.value": '{"args": ["Paris"], "kwargs": {}}', "tool.parameters": '{"city": {"type": "string"}}'},
            {"city": "Paris"},
        ),
        ({"input.value": "{}"}, {}),
    ],
)
def test_arguments_of_a_tool(attributes: dict[str, Value], arguments: Any) -> None:
    draft = read(told("TOOL", {"tool.name": "weather", "output.value": "sunny", **attributes}))
    assert (draft.name, draft.input, draft.output) == ("weather", {"arguments": arguments}, {"result": "sunny"})


@pytest.mark.parametrize("text", ["[1,2,3]", "null", '"x"', "{broken", "0", "", "False"])
def test_any_arguments_and_results_are_kept(text: str) -> None:  # B25
    draft = read(told("TOOL", {"input.value": text, "output.value": text}))
    value = [1, 2, 3] if text.startswith("[") else "x" if text == '"x"' else text
    assert (draft.input, draft.output) == ({"arguments": value}, {"result": value})


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("application/json", "null", None),
        ("application/json", "21", 21),
        ("application/json", "true", True),
        ("application/json", '"Paris"', "Paris"),
        ("application/json", '"{\\"celsius\\": 21}"', '{"celsius": 21}'),
        ("application/json; charset=utf-8", '{"celsius": 21}', {"celsius": 21}),
        ("application/json", "sunny", "sunny"),
        ("text/plain", '{"celsius": 21}', '{"celsius": 21}'),
        ("text/plain", "[1]", "[1]"),
        ("text/plain", "null", "null"),
        (None, '{"celsius": 21}', {"celsius": 21}),
        (None, "null", "null"),
    ],
)
def test_a_result_is_of_the_type_that_its_media_type_says(form: str | None, text: str, value: Any) -> None:
    told_form = {} if form is None else {"output.mime_type": form}
    assert read(told("TOOL", {"tool.name": "t", "output.value": text, **told_form})).output == {"result": value}


def test_the_schema_of_a_tool_is_no_arguments() -> None:
    draft = read(told("TOOL", {"tool.parameters": '{"type": "object", "properties": {"city": {}}}', "output.value": "x"}))
    assert (draft.input, draft.grade) == (None, "structure")


def test_a_tool_message_is_a_result_with_its_call_id() -> None:
    message = {"type": "tool", "data": {"content": "sunny", "tool_call_id": "c1", "status": "success"}}
    draft = read(told("TOOL", {"tool.name": "weather", "output.value": json.dumps(message)}))
    assert (draft.output, draft.call_id, draft.outcome) == ({"result": "sunny"}, "c1", "ok")
    message["data"]["status"] = "error"  # type: ignore[index]
    assert read(told("TOOL", {"output.value": json.dumps(message)})).outcome == "tool_error"
    assert read(told("TOOL", {"tool.id": "c2", "output.value": "x"})).call_id == "c2"


def test_a_result_that_says_that_it_failed() -> None:  # B35
    failed = {"output.value": '{"isError": true, "content": []}'}
    assert read(told("TOOL", failed)).outcome == "tool_error"
    assert read(told("TOOL", failed, status=STATUS_ERROR)).outcome == "error"


def test_one_failing_call_leaves_the_others_alone() -> None:  # B33
    def made(number: int, *, fails: bool) -> SpanRecord:
        attributes: dict[str, Value] = {"openinference.span.kind": "TOOL", "tool.name": "f", "input.value": f'{{"n": {number}}}'}
        raised = event("exception", {"exception.type": "ValueError", "exception.message": "no"})
        more: dict[str, Any] = {"status": STATUS_ERROR, "status_message": "ValueError: no\nTraceback …", "events": (raised,)}
        return span(number, attributes={**attributes, **({} if fails else {"output.value": str(number)})}, **(more if fails else {}))

    (run,) = build_runs([made(1, fails=False), made(2, fails=True), made(3, fails=False)])
    assert [(s.input["arguments"]["n"], s.outcome, s.output) for s in run.steps] == [
        (1, "ok", {"result": "1"}),
        (2, "error", None),
        (3, "ok", {"result": "3"}),
    ]
    assert run.steps[1].error == {"type": "ValueError", "message": "no"}


def test_two_calls_of_one_tool_in_one_turn_keep_their_results() -> None:  # B31
    asked = {**call(0, "c1", "read_file", '{"path": "a"}'), **call(1, "c2", "read_file", '{"path": "b"}')}
    turn = told("LLM", {"input.value": "q", **flat("output", {"role": "assistant", **asked})})
    calls = [
        span(
            number,
            start=20,
            attributes={
                "openinference.span.kind": "TOOL",
                "tool.name": "read_file",
                "input.value": f'{{"path": "{path}"}}',
                "output.value": f"text of {path}",
            },
        )
        for number, path in ((2, "b"), (3, "a"))
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"text of {path}"} for n, path in ((1, "a"), (2, "b"))]
    after = span(4, start=40, attributes={"openinference.span.kind": "LLM", **flat("input", *results), **flat("output", {"content": "x"})})
    (run,) = build_runs([turn, *calls, after])
    made = {step.input["arguments"]["path"]: step for step in run.steps if step.kind == "tool_call"}
    assert {path: step.output["result"] for path, step in made.items()} == {"a": "text of a", "b": "text of b"}
    assert [step.requested_by for step in made.values()] == [1, 1]
    given = [part for message in run.steps[-1].input["messages"] for part in message["parts"]]
    assert [(part["id"], part["response"]) for part in given] == [("c1", "text of a"), ("c2", "text of b")]


@pytest.mark.parametrize("status", [STATUS_OK, STATUS_ERROR])
def test_a_hand_off_is_no_tool(status: int) -> None:
    draft = read(told("TOOL", {"input.value": "desk", "output.value": "math"}, name="handoff to math", status=status))
    assert (draft.kind, draft.name, draft.input) == ("handoff", "math", {"arguments": {"from": "desk", "to": "math"}})
    assert draft.outcome == ("ok" if status == STATUS_OK else "error")
    assert read(told("TOOL", name="handoff to math")).name == "math"
    assert read(told("TOOL", {"tool.name": "handoff to math"}, name="handoff to math")).kind == "tool_call"


# ---- agents, chains, the rest ----------------------------------------------------------------------------------------


def test_what_only_has_agent_in_its_name_is_what_it_is() -> None:
    assert read(told("AGENT", {"tool.name": "ask_agent", "input.value": "{}"})).kind == "tool_call"
    assert read(told("AGENT", {"llm.invocation_parameters": "{}", "input.value": "q"})).kind == "model_call"
    node = read(told("AGENT", {"input.value": "{}", "metadata": '{"langgraph_node": "agent"}'}, name="agent"))
    assert node.frame, "a visit of a node is no agent"
    assert not read(told("AGENT", {"agent.name": "agent", "metadata": '{"langgraph_node": "tools"}'}, name="agent")).frame


@pytest.mark.parametrize("name", ["ChannelWrite<...,agent>", "Branch<agent,should_continue>", "agent"])
def test_what_a_graph_does_around_a_node_is_no_agent(name: str) -> None:
    inside: dict[str, Value] = {"metadata": '{"langgraph_node": "agent"}', "input.value": "{}"}
    assert read(told("AGENT", inside, name=name)).frame
    assert not read(told("AGENT", inside, name="agent_of_another_graph")).frame


def test_arguments_that_stand_as_python_shows_them() -> None:
    assert read(told("TOOL", {"input.value": "{'city': 'Zürich', 'days': None}"})).input == {"arguments": {"city": "Zürich", "days": None}}
    assert read(told("TOOL", {"input.value": "{city}"})).input == {"arguments": "{city}"}


def test_what_the_class_of_a_model_does_for_itself_is_no_call() -> None:  # LlamaIndex
    inside: dict[str, Value] = {"llm.model_name": "m", "input.value": '{"tools": []}', "output.value": '{"messages": []}'}
    assert read(told("LLM", inside, name="OpenAI._prepare_chat_with_tools")).frame
    assert read(told("LLM", inside, name="OpenAI.achat")).kind == "model_call"


def test_messages_that_were_not_flattened_stand_where_python_shows_them() -> None:  # Agno
    shown = [
        "role='user' content='go' name=None",
        "role='assistant' content='' tool_calls=[{'id': 'c1', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}]",
        "role='tool' content='done' tool_call_id='c1'",
    ]
    attributes: dict[str, Value] = {
        **flat("input", {"role": "user", "content": "go"}, None, {"role": "tool", "content": "done"}),
        "input.value": json.dumps({"messages": shown, "stream": False}),
        "output.value": "ModelResponse(role='assistant', content='ok', tool_calls=[], usage=Usage(n=1))",
    }
    draft = read(told("LLM", attributes))
    assert isinstance(draft.input, dict)
    assert isinstance(draft.output, dict)
    assert (draft.grade, [message["role"] for message in draft.input["messages"]]) == ("semantic", ["user", "assistant", "tool"])
    assert draft.input["messages"][2]["parts"] == [{"type": "tool_call_response", "id": "c1", "response": "done"}]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "ok"}]
    other = {**attributes, "input.value": json.dumps({"messages": [shown[2], *shown[1:]]})}
    assert "message-absent" in {reason.code for reason in read(told("LLM", other)).reasons}


def test_calls_without_ids_have_those_of_the_whole_body() -> None:
    """As the first versions of the instrumentation of LangChain write them, which leave out an empty result too."""
    asked: dict[str, Value] = {"tool_calls.0.tool_call.function.name": "f", "tool_calls.1.tool_call.function.name": "f"}
    calls = [{"id": f"c{place}", "name": "f", "args": {}} for place in (1, 2)]
    said = {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "", "type": "ai", "tool_calls": calls}}
    empty = {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": {"content": "", "type": "tool", "tool_call_id": "c1"}}
    attributes = {
        **flat("input", {"role": "user", "content": "go"}, {"role": "assistant", **asked}, {"role": "tool", "name": "f"}),
        **flat("output", {"role": "assistant", **asked}),
        "input.value": json.dumps({"messages": [[{**said, "kwargs": {"content": "go", "type": "human"}}, said, empty]]}),
        "output.value": json.dumps({"generations": [[{"text": "", "type": "ChatGeneration", "message": said}]]}),
    }
    draft = read(told("LLM", attributes))
    assert isinstance(draft.input, dict)
    assert isinstance(draft.output, dict)
    assert [part["id"] for part in draft.output["messages"][0]["parts"]] == ["c1", "c2"]
    assert [part["id"] for part in draft.input["messages"][1]["parts"]] == ["c1", "c2"]
    assert draft.input["messages"][2]["parts"] == [{"type": "tool_call_response", "id": "c1", "response": ""}]
    other = {**attributes, "output.value": json.dumps({"generations": []})}
    assert [part["id"] for part in read(told("LLM", other)).output["messages"][0]["parts"]] == [None, None]


def test_an_agent_has_a_name_an_input_and_an_output() -> None:
    draft = read(
        told(
            "AGENT",
            {"graph.node.id": "desk", "input.value": "hi", "output.value": '{"messages": [{"role": "assistant", "content": "ho"}]}'},
        )
    )
    assert (draft.kind, draft.name, draft.agent) == ("agent", "desk", "desk")
    assert draft.input["messages"][0]["parts"] == [{"type": "text", "content": "hi"}]
    assert draft.output["messages"][0]["parts"] == [{"type": "text", "content": "ho"}]
    other = read(told("AGENT", {"input.value": '{"task": "x"}', "output.value": "[1]"}, name="CodeAgent.run"))
    assert (other.name, other.input, other.output) == ("CodeAgent", {"arguments": {"task": "x"}}, {"result": [1]})


def chain(number: int, parent: int | None, start: int, end: int, **attributes: Value) -> SpanRecord:
    told_ = {"openinference.span.kind": "CHAIN", **attributes}
    return span(number, parent, start=start, end=end, attributes=told_, name=f"chain {number}")


def model(number: int, parent: int | None, start: int) -> SpanRecord:
    told_ = {"openinference.span.kind": "LLM", "input.value": "q", "output.value": "a", "llm.model_name": "m"}
    return span(number, parent, start=start, end=start + 5, attributes=told_)


def test_the_chain_around_everything_is_the_run() -> None:
    spans = [chain(1, None, 0, 100, **{"input.value": "q", "output.value": "a"}), chain(2, 1, 1, 50), model(3, 2, 10)]
    (run,) = build_runs(spans)
    assert [step.kind for step in run.steps] == ["model_call"]
    assert (run.input["messages"][0]["parts"][0]["content"], run.unclassified_spans) == ("q", 1)
    assert "no-root" not in {reason.code for reason in run.grade_reasons}


def test_the_run_is_built_from_the_top_most_span_that_is_there() -> None:  # B01
    orphan = chain(1, 99, 0, 100, **{"input.value": "q", "output.value": "a"})
    (run,) = build_runs([orphan, model(3, 1, 10)])
    assert run.input["messages"][0]["parts"][0]["content"] == "q"
    assert run.output["messages"][0]["parts"][0]["content"] == "a"
    assert (run.orphan_spans, run.outcome) == (1, "ok")
    server = span(7, start=0, end=200, name="POST /ask")
    (inside,) = build_runs([server, chain(1, 7, 0, 100, **{"input.value": "q"}), model(3, 1, 10)])
    assert inside.input["messages"][0]["parts"][0]["content"] == "q", "whatever is around it"


def test_a_chain_beside_a_call_is_not_the_run() -> None:
    (run,) = build_runs([chain(1, None, 0, 20, **{"input.value": "prompt"}), model(3, None, 30)])
    assert run.input is None or run.input["messages"][0]["parts"][0]["content"] != "prompt"
    assert [step.kind for step in run.steps] == ["model_call"]


def test_agents_at_the_same_time_keep_their_calls_apart() -> None:  # B29
    def agent(number: int, name: str) -> SpanRecord:
        return span(number, 1, start=1, end=90, attributes={"openinference.span.kind": "AGENT", "agent.name": name})

    spans = [chain(1, None, 0, 100), agent(2, "left"), agent(3, "right"), model(4, 2, 10), model(5, 3, 11), model(6, 2, 20)]
    (run,) = build_runs(spans)
    assert [step.agent for step in run.steps if step.kind == "model_call"] == ["left", "right", "left"]


@pytest.mark.parametrize("kind", ["GUARDRAIL", "EVALUATOR", "PROMPT", "DECISION", "UNKNOWN", "something new"])
def test_what_asks_nobody_is_no_step(kind: str) -> None:
    assert DIALECT.read(told(kind, {"input.value": "x", "output.value": "y"}), ()) is None


def test_retrievals() -> None:
    documents: dict[str, Value] = {
        "retrieval.documents.0.document.content": "a",
        "retrieval.documents.0.document.metadata": '{"page": 1}',
        "retrieval.documents.1.document.id": "d1",
        "retrieval.documents.1.document.score": 0.5,
    }
    found = read(told("RETRIEVER", {"input.value": "q", **documents}))
    assert (found.kind, found.input) == ("retrieval", {"arguments": {"query": "q"}})
    named = read(told("RETRIEVER", {"input.value": '{"query": "q", "top_k": null}', "input.mime_type": "application/json"}))
    assert named.input == {"arguments": {"query": "q", "top_k": None}}, "Haystack's have all their arguments"
    assert found.output == {"result": [{"content": "a", "metadata": {"page": 1}}, {"id": "d1", "score": 0.5}]}
    ranked = read(
        told(
            "RERANKER",
            {
                "reranker.query": "q",
                "reranker.top_k": 1,
                "reranker.model_name": "rank",
                "reranker.input_documents.0.document.content": "a",
                "reranker.output_documents.0.document.content": "b",
            },
        )
    )
    assert (ranked.name, ranked.input) == ("rank", {"arguments": {"query": "q", "top_k": 1, "documents": [{"content": "a"}]}})
    assert ranked.output == {"result": [{"content": "b"}]}
    embedded = read(
        told(
            "EMBEDDING",
            {
                "embedding.model_name": "embed",
                "embedding.embeddings.0.embedding.text": "a",
                "embedding.embeddings.0.embedding.vector": [0.5, 1.0],
            },
        )
    )
    assert (embedded.name, embedded.input, embedded.output) == ("embed", {"arguments": {"input": ["a"]}}, {"result": [[0.5, 1.0]]})


def test_a_span_whose_kind_was_dropped_is_known_by_its_scope() -> None:
    scope = Scope(name="openinference.instrumentation.openai")
    cut = span(1, attributes={"llm.model_name": "m", "input.value": "q", "output.value": "a"}, dropped_attributes=9, scope=scope)
    assert (read(cut).kind, read(cut).grade) == ("model_call", "incomplete")
    assert not DIALECT.claims(span(1, attributes={"llm.model_name": "m"}, scope=scope))


def test_sessions_by_metadata() -> None:
    assert read(told("LLM", {"metadata": '{"thread_id": "t1"}'})).session_id == "t1"
    assert read(told("LLM", {"metadata": '{"thread_id": "t1"}', "session.id": "s1"})).session_id == "s1"
    assert read(told("LLM", {"metadata": "[broken"})).session_id is None


# ---- whole kinds -----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *("input.value", "output.value", "tool.name", "tool.parameters", "metadata", "llm.invocation_parameters", "agent.name"),
        *("llm.input_messages.0.message.role", "llm.input_messages.0.message.content", "llm.input_messages", "llm.prompts"),
        "llm.output_messages.1.message.tool_calls.0.tool_call.function.arguments",
        "llm.output_messages.1.message.contents.0.message_content.image.image.url",
        *("llm.tools.0.tool.json_schema", "retrieval.documents.0.document.metadata", "embedding.embeddings.0", "llm.token_count.prompt"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(['{"model": "m", "messages": [{"role": "a", "content": [1]}]}', '{"output": [{"type": "message"}]}', '["x"]', "{"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["role", "message", "type"]), inner, max_size=2),
    max_leaves=4,
)
KINDS = ["LLM", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "RERANKER", "EMBEDDING", "UNKNOWN"]


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(NAMES, VALUES, max_size=8))
def test_no_attribute_of_any_type_costs_a_span(kind: str, attributes: dict[str, Any]) -> None:
    record = told(kind, attributes)
    (reading,) = read_spans(build([record])).values()
    assert reading.fault is None
    (run,) = build_runs([record])
    json.dumps(run.to_json())


@pytest.mark.skipif(not INTEROP.is_dir(), reason="the shared material is not here")
@pytest.mark.parametrize("name", ["openinference_client_span_tool_calls", "openinference_client_span_input_output_only"])
def test_captured_spans(name: str) -> None:
    attributes = json.loads((INTEROP / f"{name}.json").read_text(encoding="utf-8"))
    draft = read(span(1, attributes=attributes))
    said = [(part["type"], m["role"]) for m in draft.input["messages"] for part in m["parts"]]
    assert said == [("text", "user"), ("text", "assistant"), ("tool_call", "assistant"), ("tool_call_response", "tool")]
    assert draft.input["messages"][1]["parts"][1]["arguments"] == {"location": "Paris"}
    assert draft.output["messages"][0]["parts"][0]["content"].startswith("The weather in Paris")
    assert (draft.name, draft.usage["output_tokens"], draft.grade) == ("gpt-4", 52, "semantic")
    assert draft.input["params"] == {"temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 200}


def test_a_body_that_has_nothing_of_its_messages_does_not_hide_them() -> None:
    said = {
        **flat("input", {"role": "user", "content": "q"}),
        **flat("output", {"role": "assistant", **call(0, "c1", "f", "{}")}),
        "input.value": '{"model": "m", "messages": [{"message.role": "user", "message.content": "q"}]}',
        "output.value": '{"choices": [{"finish_reason": "tool_use", "message": {"content": "", "role": "assistant"}}]}',
    }
    draft = read(told("LLM", said))
    assert draft.input["messages"] == [{"role": "user", "parts": [{"type": "text", "content": "q"}]}]
    assert [part["name"] for message in draft.output["messages"] for part in message["parts"]] == ["f"]


@pytest.mark.parametrize(
    "value", [{"id": "c", "name": "f", "response": {"n": 1}}, {"name": "g", "response": 1}, {"name": "f", "response": 1, "x": 2}]
)
def test_a_part_of_geminis_contents_is_the_result_in_it(value: dict[str, Any]) -> None:
    draft = read(told("TOOL", {"tool.name": "f", "output.value": json.dumps(value), "output.mime_type": "application/json"}))
    assert draft.output == {"result": {"n": 1} if "id" in value else value}


def test_the_method_of_a_tool_is_the_tool() -> None:
    assert read(told("TOOL", {"input.value": '{"kwargs": {"n": 1}}'}, name="add.__call__")).name == "add"


def test_an_agent_of_haystack_is_one_and_the_model_calls_that_no_span_is_of_are_missed() -> None:
    user = "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='q')], _name=None, _meta={})"
    said = "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='The answer.')], _name=None, _meta={})"
    made = {"messages": [user, said], "token_usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    attributes: dict[str, Value] = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"messages": [user], "tools": None}),
        "output.value": json.dumps(made),
    }
    around: dict[str, Value] = {"openinference.span.kind": "CHAIN", "input.value": "{}"}
    scope = Scope(name="openinference.instrumentation.haystack")
    agent = span(2, 1, name="Agent.run", attributes=attributes, scope=scope)
    records = [span(1, name="Pipeline.run", attributes=around, scope=scope, end=50), agent]
    (run,) = build_runs(records)
    (step,) = run.steps
    assert (step.kind, step.name, step.usage) == ("agent", "Agent", {"input_tokens": 5, "output_tokens": 2})
    assert [message["role"] for message in step.output["messages"]] == ["user", "assistant"]
    (gap,) = gaps([run], records)[run.run_id]
    assert (gap.code, gap.step) == ("answer-without-span", 1)


@pytest.mark.parametrize(
    ("written", "told", "result"),
    [
        ('{"city": "Oslo"}', '{"city": "Oslo"}', '{"city": "Oslo"}'),
        ('{"city": "Oslo"}', "{'city': 'Oslo'}", {"city": "Oslo"}),
        ("[1, 2]", "[1, 2]", [1, 2]),  # the text and the list are told alike
        ("[true]", "[true]", "[true]"),
    ],
)
def test_a_text_that_looks_like_json_is_a_text_where_the_model_was_told_it_as_it_is(written: str, told: str, result: Any) -> None:
    scope = Scope(name="openinference.instrumentation.openai_agents")
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    asks: dict[str, Value] = {
        "openinference.span.kind": "LLM",
        f"{call}.id": "c1",
        f"{call}.function.name": "look",
        f"{call}.function.arguments": "{}",
    }
    gave: dict[str, Value] = {"output.value": written, "output.mime_type": "application/json", "input.value": "{}"}
    message = "llm.input_messages.0.message"
    reads: dict[str, Value] = {
        "openinference.span.kind": "LLM",
        f"{message}.role": "tool",
        f"{message}.tool_call_id": "c1",
        f"{message}.content": told,
    }
    tool: dict[str, Value] = {"openinference.span.kind": "TOOL", "tool.name": "look", **gave}
    records = [span(n, attributes=one, scope=scope, start=n * 20) for n, one in enumerate((asks, tool, reads), 1)]
    (run,) = build_runs(records)
    assert run.steps[1].output == {"result": result}
    assert run.steps[1].call_id == "c1"
    elsewhere = [replace(record, scope=Scope(name="openinference.instrumentation.langchain")) for record in records]
    assert isinstance(build_runs(elsewhere)[0].steps[1].output["result"], dict | list), "others tell the model of an object as JSON"

"""What is the same call in two instrumentations' words, and what is not."""

import inspect
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content import codec
from spanreplay.replay.reading.asking import Request, live_request, recorded_request
from spanreplay.replay.reading.likeness import (
    CALLS,
    MEDIA,
    SETTING,
    SYSTEM,
    TOOLS,
    TYPES,
    UNSAID,
    WITHHELD,
    Likeness,
    alike,
    alike_arguments,
    shows,
)
from support.handmade import step

QUESTION = "What is the weather in Paris?"
CHAT: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "temperature": 0.5,
    "messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris", "days": 2}'}},
                {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"celsius": 21}'},
        {"role": "tool", "tool_call_id": "c2", "content": "rain"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "The weather of a city.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Its name."}}, "title": "W"},
            },
        }
    ],
}


def live(body: dict[str, Any], path: str = "/v1/chat/completions") -> Request:
    found = live_request(json.dumps({"method": "POST", "url": path, "body": body}), str(body.get("model", "gpt-4o-mini")))
    assert found is not None
    return found


def text(content: Any) -> dict[str, Any]:
    return {"type": "text", "content": content}


def call(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def result(response: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": call_id, "response": response}


def recorded(view: dict[str, Any], name: str = "gpt-4o-mini") -> Request:
    found = recorded_request(step(1, None, "", kind="model_call", name=name, input=view), str)
    assert found is not None
    return found


def view(**changes: Any) -> dict[str, Any]:
    """What an instrumentation writes of :data:`CHAT`."""
    made: dict[str, Any] = {
        "messages": [
            {"role": "system", "parts": [text("Be brief.")]},
            {"role": "user", "parts": [text(QUESTION)]},
            {"role": "assistant", "parts": [call("weather", {"city": "Paris", "days": 2}, "c1"), call("weather", {"city": "Oslo"}, "c2")]},
            {"role": "tool", "parts": [result('{"celsius": 21}', "c1")]},
            {"role": "tool", "parts": [result("rain", "c2")]},
        ],
        "system": [],
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "The weather of a city.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Its name."}}},
            }
        ],
        "params": {"temperature": 0.5},
    }
    return {**made, **changes}


def compared(recorded_view: dict[str, Any], body: dict[str, Any] = CHAT, path: str = "/v1/chat/completions") -> Likeness:
    one = recorded(recorded_view)
    return alike(one, live(body, path), shows([one]))


def changed(tree: Any, old: Any, new: Any) -> Any:
    return json.loads(json.dumps(tree).replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))


SAME: dict[str, dict[str, Any]] = {
    "as it is": view(),
    "the system prompt beside the messages": view(system=[text("Be brief.")], messages=view()["messages"][1:]),
    "no ids": view(messages=[{**m, "parts": [{**p, "id": None} if "id" in p else p for p in m["parts"]]} for m in view()["messages"]]),
    "arguments as text, results as values": view(
        messages=[
            *view()["messages"][:2],
            {"role": "assistant", "parts": [call("weather", '{"days":2,"city":"Paris"}', "c1"), call("weather", "{'city': 'Oslo'}", "c2")]},
            {"role": "tool", "parts": [result({"celsius": 21.0}, "c1"), result({"error": [text("rain")]}, "c2")]},
        ]
    ),
    "results in the user's message, in the order in which they came": view(
        messages=[*view()["messages"][:3], {"role": "user", "parts": [result("rain", "c2"), result({"result": {"celsius": 21}}, "c1")]}]
    ),
    "one message a call": view(
        messages=[
            *view()["messages"][:2],
            {"role": "assistant", "parts": [text(""), call("weather", {"city": "Paris", "days": 2})]},
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, call("weather", {"city": "Oslo"})]},
            {"role": "tool", "parts": [result('{"celsius": 21}'), result("rain")]},
        ]
    ),
    "no tools, no parameters": view(tools=[], params={}),
    "names of tools alone": view(tools=[{"name": "weather"}]),
    "types in capitals": view(tools=[{"name": "weather", "parameters": {"properties": {"city": {"type": "STRING"}}}}]),
    "more parameters of the model": view(params={"temperature": 0.5, "top_p": 1.0, "model": "gpt-4o-mini"}),
    "the question in two pieces": view(
        messages=[
            view()["messages"][0],
            {"role": "user", "parts": [text("What is the weather")]},
            {"role": "user", "parts": [text("in Paris?")]},
            *view()["messages"][2:],
        ]
    ),
}


@pytest.mark.parametrize("spelling", SAME)
def test_the_same_call_in_other_words(spelling: str) -> None:
    found = compared(SAME[spelling])
    assert (found.equal, found.recorded, found.actual) == (True, {}, {})


@pytest.mark.parametrize("spelling", SAME)
@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("Be brief.", "Be verbose.", "system"),
        (QUESTION, "What was the weather in Paris?", "messages"),
        ("Oslo", "Bergen", "messages"),
        ("rain", "snow", "messages"),
        ("celsius", "fahrenheit", "messages"),
    ],
)
def test_a_changed_word_is_found_in_every_spelling(spelling: str, old: str, new: str, field: str) -> None:
    found = compared(SAME[spelling], changed(CHAT, old, new))
    assert not found.equal
    assert list(found.recorded) == list(found.actual) == [field]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**CHAT, "model": "gpt-4o"}, "model"),
        ({**CHAT, "temperature": 1.0}, "temperature"),
        (changed(CHAT, "The weather of a city.", "The weather of a town."), "tools"),
        (changed(CHAT, "Its name.", "Its code."), "tools"),
        (json.loads(json.dumps(CHAT).replace('"type": "string"', '"type": "number"')), "tools"),
        ({**CHAT, "tools": [*CHAT["tools"], {"type": "function", "function": {"name": "now"}}]}, "tools"),
        ({**CHAT, "tools": []}, "tools"),
        ({**CHAT, "messages": CHAT["messages"][:-1]}, "messages"),
        ({**CHAT, "messages": CHAT["messages"][1:]}, "system"),
        ({**CHAT, "messages": [*CHAT["messages"], {"role": "user", "content": "And now?"}]}, "messages"),
    ],
)
def test_whatever_the_record_shows_is_compared(body: dict[str, Any], field: str) -> None:
    found = compared(view(), body)
    assert not found.equal
    assert [*found.recorded, *found.actual][0] == field


def test_the_difference_stands_where_the_agent_has_it() -> None:
    found = compared(view(), changed(CHAT, QUESTION, "And in Rome?"))
    assert found.recorded["messages"][:2] == [None, {"role": "user", "content": QUESTION}]
    assert found.actual["messages"][1] == {"role": "user", "content": "And in Rome?"}


@pytest.mark.parametrize(
    ("model", "same"),
    [("openai/gpt-4o-mini", True), ("gpt-4o-mini-2024-07-18", True), ("GPT-4o-mini", True), ("gpt-4o", False), ("gpt-4o-mini-tts", False)],
)
def test_models_are_named_in_several_ways(model: str, same: bool) -> None:
    assert alike(recorded(view(), model), live(CHAT), shows([])).equal is same


def test_what_a_record_does_not_show_is_named() -> None:
    body = {**CHAT, "messages": [CHAT["messages"][0], {"role": "user", "content": [
        {"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]}  # fmt: skip
    bare = {"messages": [{"role": "user", "parts": [text("And this?")]}], "system": [], "tools": [], "params": {}}
    found = compared(bare, body)
    assert (found.equal, found.left_out) == (True, frozenset({SYSTEM, TOOLS, MEDIA, SETTING.format("temperature")}))
    shown = {**bare, "messages": [{"role": "user", "parts": [text("And this?"), {"type": "uri", "uri": "https://example.com/b.png"}]}]}
    assert not compared({**shown, "system": [text("Be brief.")], "tools": view()["tools"]}, body).equal


WEATHER: dict[str, Any] = {"type": "object", "properties": {"celsius": {"type": "number"}}}
SETTINGS: list[tuple[str, dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = [
    # name, in the body, what instrumentations write of it, another one in the body
    ("temperature", {"temperature": 0}, [{"temperature": 0.0}, {"temperature": "0"}, {"config": {"temperature": 0}}], {"temperature": 0.5}),
    ("max_tokens", {"max_completion_tokens": 9}, [{"max_tokens": 9}, {"maxOutputTokens": 9}, {"max_output_tokens": 9}], {"max_tokens": 8}),
    ("top_k", {"top_k": 3}, [{"topK": 3}, {"top_k": 3.0}], {"top_k": 4}),
    ("seed", {"seed": 7}, [{"seed": 7}], {"seed": 8}),
    ("n", {"n": 2}, [{"choice.count": 2}, {"candidateCount": 2}], {"n": 3}),
    ("stop", {"stop": "."}, [{"stop_sequences": ["."]}, {"stopSequences": '["."]'}], {"stop": ["!"]}),
    (
        "tool_choice",
        {"tool_choice": "required"},
        [{"tool_choice": {"type": "any"}}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, {"toolChoice": "required"}],
        {"tool_choice": "none"},
    ),
    (
        "tool_choice",
        {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        [{"tool_choice": {"type": "tool", "name": "weather"}}, {"tool_choice": '{"type": "tool", "toolName": "weather"}'}],
        {"tool_choice": {"type": "function", "function": {"name": "other"}}},
    ),
    (
        "response_format",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "W", "schema": WEATHER}}},
        [{"text": {"format": {"type": "json_schema", "schema": WEATHER}}}, {"output.type": "json"}, {"responseFormat": "<class 'W'>"}],
        {"response_format": {"type": "text"}},
    ),
    ("reasoning_effort", {"reasoning_effort": "low"}, [{"reasoning": {"effort": "low"}}, {"reasoning.level": "low"}], {}),
    ("parallel_tool_calls", {"parallel_tool_calls": False}, [{"parallel_tool_calls": False}], {"parallel_tool_calls": True}),
]


def plain(
    settings: dict[str, Any], *, record: dict[str, Any] | None = None, dialect: str = "gen_ai", every_setting: bool = False
) -> Likeness:
    """A bare call with some settings against the record of one."""
    view = {"messages": [{"role": "user", "parts": [text("Hi")]}], "system": [], "tools": [], "params": record}
    made = recorded_request(
        step(1, None, "", kind="model_call", name="gpt-4o-mini", input=view, dialect=dialect, every_setting=every_setting), str
    )
    assert made is not None
    return alike(made, live({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hi"}], **settings}), shows([made]))


ATTACHED: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
]


@pytest.mark.parametrize("attached", ATTACHED)
def test_an_attachment_recorded_as_its_api_takes_it_is_the_same_and_another_is_not(attached: dict[str, Any]) -> None:
    def asking(part: dict[str, Any]) -> Request:
        return live({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, part]}]})

    made = recorded({"messages": [{"role": "user", "parts": [text("See"), attached]}]}, "m")
    assert alike(made, asking(attached), shows([made])).equal
    other = json.loads(json.dumps(attached).replace("iVBO", "iVBP").replace("a.png", "b.png").replace("AAAA", "AAAB").replace("-1", "-2"))
    assert not alike(made, asking(other), shows([made])).equal


BLOCKS: list[dict[str, Any]] = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
]


@pytest.mark.parametrize("attached", BLOCKS)
def test_so_is_a_block_of_anthropic(attached: dict[str, Any]) -> None:
    asked = live({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [attached]}]}, "/v1/messages")
    made = recorded({"messages": [{"role": "user", "parts": [attached]}]})
    assert [turn.kind for turn in asked.turns] == ["media"]
    assert made.turns == asked.turns


ITEMS: list[dict[str, Any]] = [
    {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
]


@pytest.mark.parametrize("attached", ITEMS)
def test_so_is_an_item_of_the_responses_api(attached: dict[str, Any]) -> None:
    asked = live({"model": "m", "input": [{"role": "user", "content": [attached]}]}, "/v1/responses")
    made = recorded({"messages": [{"role": "user", "parts": [attached]}]})
    assert made.turns == asked.turns


@pytest.mark.parametrize(("name", "set_to", "told", "other"), SETTINGS)
def test_settings_are_compared_in_every_spelling(
    name: str, set_to: dict[str, Any], told: list[dict[str, Any]], other: dict[str, Any]
) -> None:
    for record in told:
        found = plain(set_to, record=record)
        assert (found.equal, found.left_out) == (True, frozenset()), record
    assert not plain(other, record=told[0]).equal
    assert not plain({}, record=told[0]).equal, "a setting that is left out now is a difference"


@pytest.mark.parametrize(("name", "set_to", "told", "other"), SETTINGS)
def test_a_setting_that_the_record_does_not_show_is_named_or_was_not_set(
    name: str, set_to: dict[str, Any], told: list[dict[str, Any]], other: dict[str, Any]
) -> None:
    unknown = plain(set_to, record={})
    assert (unknown.equal, unknown.left_out) == (True, frozenset({SETTING.format(name)}))
    unset = plain(set_to, record={}, every_setting=True)
    if name == "top_k":
        assert (unset.equal, unset.left_out) == (True, frozenset({SETTING.format(name)})), "OpenAI's SDK has no parameter of it"
        return
    assert (unset.equal, list(unset.actual), unset.recorded, unset.left_out) == (False, [name], {}, frozenset())
    assert plain(set_to, record=None, every_setting=True).left_out == {SETTING.format(name)}, "its parameters were not captured"


def test_a_setting_without_a_common_name_is_compared_by_its_own_where_both_have_it() -> None:
    set_to = {"logit_bias": {"5": 1}, "user": "u"}
    assert plain(set_to, record={"logit_bias": '{"5": 1}', "user": "u"}).left_out == frozenset()
    other = plain(set_to, record={"logit_bias": {"5": 2}, "user": "u"})
    assert (other.recorded, other.actual) == ({"logit_bias": {"5": 2}}, {"logit_bias": {"5": 1}})
    untold = plain({**set_to, "stream_options": {}}, record={"user": "u"}, every_setting=True)
    assert (untold.equal, untold.left_out) == (True, frozenset({SETTING.format("logit_bias")}))


def test_what_every_server_takes_for_a_setting_left_out_is_no_difference() -> None:
    defaults = {
        "temperature": 1.0,
        "top_p": 1,
        "tool_choice": "auto",
        "n": 1,
        "text": {"format": {"type": "text"}},
        "reasoning": {"effort": "medium"},
    }
    assert plain({}, record=defaults).equal
    assert plain(defaults, record={}, every_setting=True).equal
    assert plain({}, record={"seed": 0}, dialect="openlit").equal
    assert not plain({}, record={"seed": 0}).equal


def test_a_setting_that_one_call_of_the_record_shows_is_known_of_all() -> None:
    bare, set_to = recorded({**view(), "params": {}}), recorded(view())
    assert alike(bare, live(CHAT), shows([bare])).equal
    assert not alike(bare, live(CHAT), shows([bare, set_to])).equal


def test_one_step_that_shows_the_system_prompt_makes_it_compared_in_all() -> None:
    bare = recorded({"messages": [{"role": "user", "parts": [text("Hi")]}]})
    asked = live({"model": "gpt-4o-mini", "messages": [{"role": "system", "content": "New."}, {"role": "user", "content": "Hi"}]})
    assert alike(bare, asked, shows([bare])).equal
    assert not alike(bare, asked, shows([bare, recorded(view())])).equal


@pytest.mark.parametrize("placeholder", ["__REDACTED__", "<REDACTED>", "[Scrubbed due to 'password']"])
def test_a_withheld_text_is_not_compared_and_said(placeholder: str) -> None:
    found = compared(changed(view(), QUESTION, placeholder))
    assert (found.equal, found.left_out) == (True, frozenset({WITHHELD}))


def test_what_a_message_without_content_said_is_not_compared_and_said() -> None:
    """Some instrumentations leave out all that a message says which is not one plain text, such as one with a picture."""
    said = [view()["messages"][0], {"role": "user", "parts": []}, *view()["messages"][2:]]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    shown = {**CHAT, "messages": [CHAT["messages"][0], {"role": "user", "content": [{"type": "text", "text": QUESTION}, picture]}]}
    shown["messages"] += CHAT["messages"][2:]
    for body in (CHAT, shown):
        found = compared(view(messages=said), body)
        assert (found.equal, UNSAID in found.left_out) == (True, True)
    assert not compared(view(messages=said), changed(CHAT, "rain", "snow")).equal


def test_a_cut_text_is_compared_as_far_as_it_goes_where_that_is_accepted() -> None:
    one = recorded(changed(view(), QUESTION, QUESTION[:12]))
    assert not alike(one, live(CHAT), shows([one])).equal
    assert alike(one, live(CHAT), shows([one]), cut=True).equal
    assert not alike(one, live(changed(CHAT, "What is", "Where is")), shows([one]), cut=True).equal


def test_results_without_their_calls_are_compared_where_that_is_accepted() -> None:
    said = [*view()["messages"][:2], {"role": "tool", "parts": [text('{"celsius": 21}'), text("rain")]}]
    one = recorded(view(messages=said))
    assert not alike(one, live(CHAT), shows([one])).equal
    found = alike(one, live(CHAT), shows([one]), cut=True)
    assert (found.equal, found.left_out) == (True, frozenset({CALLS}))
    assert not alike(one, live(changed(CHAT, "rain", "snow")), shows([one]), cut=True).equal


def test_other_apis_say_the_same() -> None:
    claude = {
        "model": "gpt-4o-mini",
        "max_tokens": 5,
        "temperature": 0.5,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris", "days": 2}},
                    {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Oslo"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c2", "content": "rain"},
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": '{"celsius": 21}'}]},
                ],
            },
        ],
    }
    assert compared(view(), {**claude, "tools": [{"name": "weather", "input_schema": {}}]}, "/v1/messages").equal
    responses = {
        "model": "gpt-4o-mini",
        "instructions": "Be brief.",
        "temperature": 0.5,
        "input": [
            {"role": "user", "content": QUESTION},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Paris", "days": 2}'},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"city": "Oslo"}'},
            {"type": "function_call_output", "call_id": "c1", "output": '{"celsius": 21}'},
            {"type": "function_call_output", "call_id": "c2", "output": "rain"},
        ],
        "tools": [{"type": "function", "name": "weather"}],
    }
    assert compared(view(), responses, "/v1/responses").equal
    gemini = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.5},
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "weather", "args": {"city": "Paris", "days": 2}}},
                    {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "weather", "response": {"celsius": 21}}},
                    {"functionResponse": {"name": "weather", "response": {"result": "rain"}}},
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "weather"}]}],
    }
    path = "/v1beta/models/gpt-4o-mini:generateContent"
    found = live_request(json.dumps({"method": "POST", "url": path, "body": gemini}), "gpt-4o-mini")
    assert found is not None
    one = recorded(view())
    assert alike(one, found, shows([one])).equal


# ---- tool calls --------------------------------------------------------------------------------------------------


def weather(city: str, days: int = 1, *, unit: str | None = None) -> None: ...


SIGNATURE = inspect.signature(weather)
ASKED = codec.encode({"city": "Paris", "days": 2}).text


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "Paris", "days": 2},
        '{"city": "Paris", "days": 2}',
        "{'city': 'Paris', 'days': 2}",
        ["Paris", 2],
        {"args": ["Paris"], "kwargs": {"days": 2}},
        {"args": [], "kwargs": {"city": "Paris", "days": 2}},
        {"city": "Paris", "days": 2.0, "unit": None},
        {"city": "Paris", "days": "2"},
        {"city": "Paris", "days": 2, "runtime": {"anything": 1}},
    ],
)
def test_arguments_in_other_words(arguments: Any) -> None:
    found = alike_arguments(arguments, ASKED, SIGNATURE)
    as_text = isinstance(arguments, dict) and arguments.get("days") == "2"
    assert (found.equal, found.left_out) == (True, frozenset({TYPES} if as_text else ()))


@pytest.mark.parametrize(
    ("arguments", "recorded_part", "actual_part"),
    [
        ({"city": "Oslo", "days": 2}, {"city": "Oslo"}, {"city": "Paris"}),
        ({"city": "Paris"}, {}, {"days": 2}),
        ({"city": "Paris", "days": 2, "unit": "F"}, {"unit": "F"}, {}),
        ({"city": "Paris", "days": True}, {"days": True}, {"days": 2}),
        (["Paris", 3], {"days": 3}, {"days": 2}),
        ("Paris", {"arguments": "Paris"}, {"city": "Paris", "days": 2}),
        (None, {}, {"city": "Paris", "days": 2}),
    ],
)
def test_other_arguments(arguments: Any, recorded_part: Any, actual_part: Any) -> None:
    found = alike_arguments(arguments, ASKED, SIGNATURE)
    assert (found.equal, found.recorded, found.actual) == (False, recorded_part, actual_part)


def test_defaults_and_objects_that_a_framework_hands_in_need_not_be_shown() -> None:
    assert alike_arguments({"city": "Paris"}, codec.encode({"city": "Paris", "days": 1}).text, SIGNATURE).equal
    assert alike_arguments({"city": "Paris", "days": 1}, codec.encode({"city": "Paris"}).text, SIGNATURE).equal
    assert alike_arguments({"city": "Paris"}, codec.encode({"deps": object(), "city": "Paris"}).text, None).equal
    assert not alike_arguments({"city": "Paris"}, codec.encode({"deps": 1, "city": "Paris"}).text, None).equal


def test_a_lone_argument_may_stand_alone() -> None:
    one = codec.encode({"city": "Paris"}).text
    assert all(alike_arguments(value, one, None).equal for value in ("Paris", ["Paris"], {"city": "Paris"}, '{"city": "Paris"}'))
    assert not alike_arguments("Oslo", one, None).equal
    many = codec.encode({"cities": ["Paris"]}).text
    assert alike_arguments(["Paris"], many, None).equal
    assert alike_arguments('["Paris"]', many, None).equal
    assert alike_arguments({}, None, None).equal
    assert alike_arguments("", "{}", None).equal


KINDS = ("text", "refusal", "tool_call", "tool_call_response", "blob")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


NAMES = (
    "temperature",
    "stop",
    "tool_choice",
    "toolConfig",
    "response_format",
    "text",
    "reasoning",
    "thinkingConfig",
    "n",
    "generationConfig",
)


@settings(max_examples=60, deadline=None)
@given(JSON, JSON, JSON)
def test_nothing_that_was_recorded_makes_it_fail(messages: Any, part: Any, arguments: Any) -> None:
    given = messages if isinstance(messages, list) else [messages]
    parts = [part, *({"type": kind, **dict.fromkeys(("content", "arguments", "response"), part)} for kind in KINDS), {"type": part}]
    tools = [part, {"name": "a", "parameters": part, "description": part}]
    for asked in (
        {"messages": given, "system": messages, "tools": part, "params": dict.fromkeys(NAMES, part)},
        {"messages": [{"role": part, "parts": parts}], "tools": tools},
    ):
        one = recorded_request(step(1, None, "", kind="model_call", name="m", input=asked), str)
        assert one is not None
        alike(one, live(CHAT), shows([one]))
        assert alike(one, one, shows([one])).equal
    for name in NAMES:
        for inner in (
            part,
            {"type": part},
            {"function": part, "name": part},
            {"functionCallingConfig": {"mode": part}},
            {"format": {"type": part}},
        ):
            plain({}, record={name: inner})
    alike_arguments(arguments, ASKED, SIGNATURE)
    assert alike_arguments({"a": arguments}, codec.encode({"a": arguments}).text, None).equal

"""docs/examples/model.py, the model of the examples: every API it speaks, in one piece and as streams, asked by hand and by two SDKs."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anthropic
import openai
import pytest

MODEL: Final = Path(__file__).parent.parent.parent / "docs" / "examples" / "model.py"
QUESTION: Final = "How is the weather in Oslo?"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "kelvin"]},
        "days": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/days"}]},
        "note": {"type": "string"},
    },
    "required": ["city", "unit", "days"],
    "$defs": {"days": {"type": "integer"}},
}
ARGUMENTS: Final = {"city": "Oslo", "unit": "celsius", "days": 1}
NAMED: Final = {"name": "get_weather", "description": "Get the weather."}
RESULT: Final = "Oslo: 21 °C"
SAID: Final = "I found: Oslo: 21 °C"
USER: Final = {"role": "user", "content": QUESTION}
CALL: Final = {"name": "get_weather", "arguments": json.dumps(ARGUMENTS)}

WIRES: Final[dict[str, tuple[str, dict[str, Any], list[Any], list[Any], str, str]]] = {
    "chat": (
        "/v1/chat/completions",
        {"tools": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA}}]},
        [{"role": "system", "content": "Be brief."}, USER],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": CALL}]},
            {"role": "tool", "tool_call_id": "1", "content": RESULT},
        ],
        "messages",
        "",
    ),
    "responses": (
        "/v1/responses",
        {"tools": [{"type": "function", **NAMED, "parameters": SCHEMA}]},
        [USER],
        [{"type": "function_call", "call_id": "1", **CALL}, {"type": "function_call_output", "call_id": "1", "output": RESULT}],
        "input",
        "",
    ),
    "anthropic": (
        "/v1/messages",
        {"tools": [{**NAMED, "input_schema": SCHEMA}]},
        [USER],
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "get_weather", "input": ARGUMENTS}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": RESULT}]}]},
        ],
        "messages",
        "",
    ),
    "gemini": (
        "/v1beta/models/gemini-2.5-flash:generateContent",
        {"tools": [{"functionDeclarations": [{**NAMED, "parametersJsonSchema": SCHEMA}]}]},
        [{"role": "user", "parts": [{"text": QUESTION}]}],
        [
            {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"result": RESULT}}}]},
        ],
        "contents",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    ),
}
"""Path, what is offered, the question, a call with its result, the key of messages, the path of streams where it is another one."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Address of the model, served by its own command."""
    with subprocess.Popen([sys.executable, MODEL], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        exports = dict(server.stdout.readline().removeprefix("export ").strip().split("=", 1) for _ in range(4))
        yield exports["ANTHROPIC_BASE_URL"]
        server.terminate()


def post(url: str, body: object) -> tuple[str, str]:
    """Content type and text of the response."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return response.headers["content-type"], response.read().decode()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_each_api_asks_for_the_tool_and_then_says_what_it_gave(url: str, wire: str, streamed: bool) -> None:
    path, offered, question, answered, key, stream_path = WIRES[wire]
    target = url + (stream_path if streamed and stream_path else path)
    stream = {"stream": True} if streamed and not stream_path else {}
    kind, asks = post(target, {"model": "m", key: question, **offered, **stream})
    assert kind == ("text/event-stream" if streamed else "application/json")
    assert "get_weather" in asks
    assert "celsius" in asks
    _, says = post(target, {"model": "m", key: [*question, *answered], **offered, **stream})
    for half in (SAID,) if not streamed else (SAID[:10], SAID[10:]):
        assert json.dumps(half)[1:-1] in says
    _, alone = post(target, {"model": "m", key: question, **stream})
    assert "You said" in alone


def test_what_is_no_request_to_a_model_is_refused(url: str) -> None:
    for path, data, status in (
        ("/v1/elsewhere", b"{}", 404),
        ("/v1/chat/completions", b"[1", 400),
        ("/v1/messages", b'{"messages": [1]}', 400),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}{path}", data)
        with refused.value as answer:
            assert (answer.code, "message" in json.load(answer)["error"]) == (status, True)


@pytest.fixture
def openai_client(url: str) -> Iterator[openai.OpenAI]:
    """Closed at the end: a connection that is left open is collected, with a warning, in the middle of another test."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        yield client


@pytest.fixture
def anthropic_client(url: str) -> Iterator[anthropic.Anthropic]:
    """Closed at the end."""
    with anthropic.Anthropic(base_url=url, api_key="none") as client:
        yield client


def test_the_openai_sdk_is_answered(openai_client: openai.OpenAI) -> None:
    client = openai_client
    _, offered, question, answered, _, _ = WIRES["chat"]
    message = client.chat.completions.create(model="m", messages=question, **offered).choices[0].message
    assert message.tool_calls is not None
    assert json.loads(message.tool_calls[0].function.arguments) == ARGUMENTS
    with client.chat.completions.stream(model="m", messages=question, **offered) as asking:
        (call,) = asking.get_final_completion().choices[0].message.tool_calls or []
    assert json.loads(call.function.arguments) == ARGUMENTS
    chunks = client.chat.completions.create(model="m", messages=[*question, *answered], stream=True, **offered)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == SAID

    _, offered, question, answered, _, _ = WIRES["responses"]
    first = client.responses.create(model="m", input=question, **offered)
    (item,) = first.output
    assert item.type == "function_call"
    assert json.loads(item.arguments) == ARGUMENTS
    result: Any = [{"type": "function_call_output", "call_id": item.call_id, "output": RESULT}]
    assert client.responses.create(model="m", input=result, previous_response_id=first.id, **offered).output_text == SAID
    for messages, text in ((question, ""), ([*question, *answered], SAID)):
        with client.responses.stream(model="m", input=messages, **offered) as stream:
            whole = stream.get_final_response()
        assert whole.output_text == text
        assert whole.output[0].type == ("message" if text else "function_call")


def test_the_anthropic_sdk_is_answered(anthropic_client: anthropic.Anthropic) -> None:
    client = anthropic_client
    _, offered, question, answered, _, _ = WIRES["anthropic"]
    (block,) = client.messages.create(model="m", max_tokens=99, messages=question, **offered).content
    assert block.type == "tool_use"
    assert block.input == ARGUMENTS
    with client.messages.stream(model="m", max_tokens=99, messages=question, **offered) as asking:
        (block,) = asking.get_final_message().content
    assert (block.type, getattr(block, "input", None)) == ("tool_use", ARGUMENTS)
    with client.messages.stream(model="m", max_tokens=99, messages=[*question, *answered], **offered) as stream:
        assert stream.get_final_text() == SAID


def test_a_typed_answer_fits_its_schema(url: str) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}
    _, text = post(f"{url}/v1/chat/completions", {"messages": [USER], "response_format": wanted})
    assert json.loads(json.loads(text)["choices"][0]["message"]["content"]) == ARGUMENTS


def asked_for(url: str, *names: str) -> str | None:
    """The tool that is asked for when these are offered."""
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    _, text = post(f"{url}/v1/chat/completions", {"messages": [USER], "tools": tools})
    calls = json.loads(text)["choices"][0]["message"].get("tool_calls")
    return str(calls[0]["function"]["name"]) if calls else None


def test_tools_that_destroy_or_run_commands_are_not_asked_for(url: str) -> None:
    assert asked_for(url, "delete_all", "shell", "execute", "look") == "look"
    assert asked_for(url, "delete_all", "shell", "execute") is None
    assert asked_for(url, "Bash", "Read", "mcp__shop__price") == "mcp__shop__price", "a coding agent's own tools act on the machine"
    assert asked_for(url, "Bash", "Read") is None


def test_a_command_runs_beside_the_model_and_keeps_its_exit_code() -> None:
    program = "import os, sys; print(os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY']); sys.exit(3)"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "SPANREPLAY_"))}
    done = subprocess.run(
        [sys.executable, MODEL, "--", sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "model.py: 0 requests answered\n")
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.endswith("/v1 not-needed\n")
    missing = subprocess.run([sys.executable, MODEL, "--", "no-such-program"], capture_output=True, text=True, check=False)
    assert missing.returncode == 127
    assert "no-such-program" in missing.stderr

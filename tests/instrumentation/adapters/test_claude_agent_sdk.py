"""The Claude Agent SDK's seams, on classes of the same shape."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.adapters import claude_agent_sdk as adapter
from support.taped import recorded, replayed

SAID: list[dict[str, Any]] = [
    {"type": "control_response", "response": {"subtype": "success", "request_id": "req_1_old"}},
    {"type": "assistant", "message": {"id": "m1", "model": "claude", "content": [{"type": "text", "text": "I look."}]}},
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "model": "claude",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
        },
    },
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]}},
    {"type": "control_request", "request_id": "c1", "request": {"subtype": "can_use_tool", "tool_name": "Write", "input": {"path": "a"}}},
    {"type": "result", "result": "done"},
]
"""What the CLI says; before the third to last but one message the program has answered."""


class Fake:
    """A program of the transport's, which is started by each ``connect``."""

    started = 0
    ids = iter(range(10**9))


def modules() -> dict[str, ModuleType]:
    made = {
        name: ModuleType(name)
        for name in (
            "claude_agent_sdk",
            "claude_agent_sdk.client",
            "claude_agent_sdk._internal.client",
            "claude_agent_sdk._internal.transport.subprocess_cli",
        )
    }

    class SubprocessCLITransport:
        def __init__(self) -> None:
            self.written: list[dict[str, Any]] = []
            self.more = asyncio.Event()

        async def connect(self) -> None:
            Fake.started += 1

        async def write(self, data: str) -> None:
            self.written.append(json.loads(data))
            self.more.set()

        async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
            for message in SAID:
                if message["type"] == "control_response":
                    while not self.written:
                        await self.more.wait()
                    answer = {**message["response"], "request_id": self.written[0]["request_id"]}
                    yield {**message, "response": answer}
                else:
                    yield message

        async def end_input(self) -> None: ...

        async def close(self) -> None: ...

    class ResultMessage(SimpleNamespace): ...

    class InternalClient:
        async def process_query(self, prompt: str, options: Any) -> AsyncIterator[Any]:
            transport = SubprocessCLITransport()
            await transport.connect()
            request = f"req_1_{next(Fake.ids)}"
            await transport.write(json.dumps({"type": "control_request", "request_id": request}))
            await transport.write(json.dumps({"type": "user", "message": {"content": prompt}}))
            async for message in transport.read_messages():
                if message["type"] == "control_response":
                    assert message["response"]["request_id"] == request
                elif message["type"] == "control_request":
                    answer = {"request_id": message["request_id"], "response": {"behavior": options.answer, "message": "no"}}
                    await transport.write(json.dumps({"type": "control_response", "response": answer}))
                elif message["type"] == "result":
                    yield ResultMessage(result=message["result"], is_error=False)
                else:
                    yield message["type"]
            await transport.close()

    class ClaudeSDKClient:
        async def connect(self, prompt: Any = None) -> None: ...
        async def receive_messages(self) -> AsyncIterator[Any]:
            yield None

        async def disconnect(self) -> None: ...

    def create_sdk_mcp_server(name: str, version: str = "1.0.0", tools: Any = None) -> Any:
        return {each.name: each for each in tools}

    made["claude_agent_sdk"].create_sdk_mcp_server = create_sdk_mcp_server  # type: ignore[attr-defined]
    made["claude_agent_sdk.client"].ClaudeSDKClient = ClaudeSDKClient  # type: ignore[attr-defined]
    made["claude_agent_sdk._internal.client"].InternalClient = InternalClient  # type: ignore[attr-defined]
    made["claude_agent_sdk._internal.transport.subprocess_cli"].SubprocessCLITransport = SubprocessCLITransport  # type: ignore[attr-defined]
    return made


@pytest.fixture(name="sdk")
def _sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    made = modules()
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(adapter, "_version", lambda: "claude-agent-sdk 0")
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    Fake.started = 0
    yield made
    adapter.uninstall()


def asker(sdk: dict[str, ModuleType], answer: str = "allow") -> Any:
    async def ask(prompt: str = "hello") -> list[Any]:
        client = sdk["claude_agent_sdk._internal.client"].InternalClient()
        return [message async for message in client.process_query(prompt, SimpleNamespace(answer=answer, model="claude"))]

    return ask


def test_it_is_as_it_was_when_off_and_when_taken_out(sdk: dict[str, ModuleType]) -> None:
    assert adapter.status() == "active"
    assert [str(m) for m in asyncio.run(asker(sdk)())][:-1] == ["assistant", "assistant", "user"]
    assert Fake.started == 1
    adapter.uninstall()
    transport = sdk["claude_agent_sdk._internal.transport.subprocess_cli"].SubprocessCLITransport
    assert "spanreplay" not in transport.connect.__code__.co_filename
    assert adapter.status() == "off"


def test_a_conversation_is_recorded_and_replayed_with_no_cli(sdk: dict[str, ModuleType]) -> None:
    tape = recorded(asker(sdk))
    (run,) = [run for run in tape.runs() if run.agent_name == "claude"]
    assert [(step.kind, step.name, step.grade) for step in run.steps if step.kind != "io"] == [
        ("model_call", "claude", "structure"),
        ("tool_call", "Bash", "structure"),
        ("decision", "Write", "exact"),
    ]
    assert (run.grade, run.output) == ("structure", "done")
    assert run.steps[3].requested_by is not None or run.steps[3].call_id == "t1"
    started = Fake.started
    result = replayed(tape, asker(sdk))
    assert result.equal, result.differences
    assert [str(message) for message in result.value][:-1] == ["assistant", "assistant", "user"]
    assert Fake.started == started


def test_another_prompt_and_another_permission_are_differences(sdk: dict[str, ModuleType]) -> None:
    tape = recorded(asker(sdk))
    assert [d.name for d in replayed(tape, asker(sdk), "bye").differences] == ["agent claude"]
    (difference,) = replayed(tape, asker(sdk, "deny")).differences
    assert (difference.name, difference.field) == ("decision Write", "outcome")


def test_a_sub_agent_lies_inside_its_call_and_what_hooks_say_is_kept(sdk: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    def said(number: str, block: dict[str, Any], parent: str | None = None) -> dict[str, Any]:
        return {"type": "assistant", "message": {"id": number, "model": "claude", "content": [block]}, "parent_tool_use_id": parent}

    def result(call_id: str, text: str, parent: str | None = None) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return {"type": "user", "message": {"content": [block]}, "parent_tool_use_id": parent}

    given = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm"}}
    task = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"subagent_type": "scout", "prompt": "look"}}
    messages = [
        SAID[0],
        said("m1", task),
        said("m2", {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}}, "t1"),
        {"type": "control_request", "request_id": "c1", "request": {"subtype": "hook_callback", "callback_id": "h", "input": given}},
        result("t2", "a.txt", "t1"),
        said("m3", {"type": "text", "text": "a file"}, "t1"),
        result("t1", "a file"),
        said("m4", {"type": "tool_use", "id": "t3", "name": "Task", "input": {"prompt": "never"}}),
        said("m5", {"type": "text", "text": "I begin"}, "t3"),
        SAID[-1],
    ]
    monkeypatch.setattr(sys.modules[__name__], "SAID", messages)
    tape = recorded(asker(sdk))
    (run,) = [run for run in tape.runs() if run.agent_name == "claude"]
    by_seq = {step.seq: step for step in run.steps}

    def place(step: Any) -> str:
        return "" if step.parent_seq is None else f"{place(by_seq[step.parent_seq])}{by_seq[step.parent_seq].name} > "

    assert [f"{place(step)}{step.kind} {step.name} {step.outcome}" for step in run.steps if step.name not in ("claude", "prompt")] == [
        "tool_call Task ok",
        "Task > agent scout ok",
        "io hook PreToolUse ok",
        "Task > scout > tool_call Bash ok",
        "tool_call Task cancelled",
        "Task > agent Task cancelled",
    ]
    models = [place(step) for step in run.steps if step.kind == "model_call"]
    assert models == ["", "Task > scout > ", "Task > scout > ", "", "Task > Task > "]
    assert replayed(tape, asker(sdk)).equal


@dataclass(frozen=True)
class SdkTool:
    name: str
    description: str
    input_schema: Any
    handler: Any


def test_a_tool_of_the_program_is_a_step_and_does_not_run_again(sdk: dict[str, ModuleType]) -> None:
    ran: list[str] = []

    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        ran.append(arguments["city"])
        return {"content": [], "is_error": True}

    server = sdk["claude_agent_sdk"].create_sdk_mcp_server("desk", tools=[SdkTool("weather", "Look.", {"city": str}, handler)])

    async def call() -> Any:
        return await server["weather"].handler({"city": "Paris"})

    tape = recorded(call)
    assert tape.outcomes == ["tool_error"]
    assert tape.starts[0].attributes["gen_ai.tool.name"] == "mcp__desk__weather"
    assert replayed(tape, call).value == {"content": [], "is_error": True}
    assert ran == ["Paris"]


def test_another_transport_is_said_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("claude_agent_sdk._internal.transport.subprocess_cli")

    class SubprocessCLITransport:
        async def connect(self) -> None: ...

    module.SubprocessCLITransport = SubprocessCLITransport  # type: ignore[attr-defined]
    before = SubprocessCLITransport.connect
    monkeypatch.setitem(sys.modules, module.__name__, module)
    adapter.uninstall()  # a replay of another test may have it waiting
    adapter.install()
    try:
        assert adapter.status().startswith("unsupported: wanted a function SubprocessCLITransport.write")
        assert SubprocessCLITransport.connect is before
    finally:
        adapter.uninstall()

"""Local actions that the model asks for by kinds of its own: shell commands, patches, custom tools, a computer."""

import asyncio
import json
import sys
from typing import Any

import agents
from agents import (
    Agent,
    ApplyPatchTool,
    AsyncComputer,
    ComputerTool,
    LocalShellTool,
    OpenAIResponsesModel,
    Runner,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
)
from agents.editor import ApplyPatchResult
from models import transport
from openai import AsyncOpenAI
from toolbox import ran

TURNS: dict[str, dict[str, Any]] = {
    "shell": {"type": "shell_call", "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000}, "status": "completed"},
    "local_shell": {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}, "status": "completed"},
    "patch": {"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a.txt", "diff": "+hello"}, "status": "completed"},
    "custom": {"type": "custom_tool_call", "name": "query", "input": "SELECT 1"},
    "computer": {
        "type": "computer_call",
        "actions": [{"type": "click", "x": 1, "y": 2, "button": "left"}, {"type": "screenshot"}],
        "pending_safety_checks": [],
        "status": "completed",
    },
}


def turn(number: int, item: dict[str, Any]) -> dict[str, Any]:
    """A response of the Responses API with one item."""
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    made = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-4o-mini", "status": "completed"}
    return {**made, "output": [item], "usage": usage | details, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def shell(request: Any) -> ShellResult:
    ran("shell")
    return ShellResult(output=[ShellCommandOutput(command=command, stdout=f"{command}: done") for command in request.data.action.commands])


async def local_shell(request: Any) -> str:
    ran("local_shell")
    return " ".join(request.data.action.command)


async def query(_context: Any, text: str) -> str:
    ran("query")
    return f"{text}: 1"


class Editor:
    def create_file(self, operation: Any) -> ApplyPatchResult:
        ran("create_file")
        return ApplyPatchResult(status="completed", output=f"created {operation.path}")

    def update_file(self, operation: Any) -> None:
        raise NotImplementedError

    def delete_file(self, operation: Any) -> None:
        raise NotImplementedError


class Screen(AsyncComputer):
    environment = "browser"
    dimensions = (10, 10)

    async def screenshot(self) -> str:
        ran("screenshot")
        return "aGVsbG8="

    async def click(self, x: int, y: int, button: str) -> None:
        ran("click")

    async def double_click(self, x: int, y: int) -> None: ...
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    async def type(self, text: str) -> None: ...
    async def wait(self) -> None: ...
    async def move(self, x: int, y: int) -> None: ...
    async def keypress(self, keys: list[str]) -> None: ...
    async def drag(self, path: list[tuple[int, int]]) -> None: ...


TOOLS = {
    "shell": lambda: ShellTool(executor=shell),
    "local_shell": lambda: LocalShellTool(executor=local_shell),
    "patch": lambda: ApplyPatchTool(editor=Editor()),
    "custom": lambda: agents.CustomTool(name="query", description="Ask a database.", on_invoke_tool=query),
    "computer": lambda: ComputerTool(computer=Screen()),
}


async def main(mode: str) -> str:
    item = {"id": f"item_{mode}", "call_id": f"call_{mode}", **TURNS[mode]}
    client = AsyncOpenAI(http_client=transport([turn(1, item), turn(2, said(f"{mode} is done"))]))
    agent = Agent(name="operator", model=OpenAIResponsesModel(model="gpt-4o-mini", openai_client=client), tools=[TOOLS[mode]()])
    result = await Runner.run(agent, mode)
    return f"{result.final_output} {[str(item.output) for item in result.new_items if hasattr(item, 'output')]}"


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(main(mode))}), flush=True)

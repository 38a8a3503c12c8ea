"""Hooks: a prompt that is looked at, a command that one denies, an answer that another adds to; and a callback that changes arguments."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, ResultMessage, query

os.environ["FAKE_CLI_PYTHON"] = sys.executable
heard = []


async def at_prompt(given: Any, _id: str | None, _context: Any) -> dict[str, Any]:
    heard.append(f"{given['hook_event_name']} {given['prompt']}")
    return {}


async def before(given: Any, _id: str | None, _context: Any) -> dict[str, Any]:
    heard.append(f"{given['hook_event_name']} {given['tool_name']}")
    if "rm" not in given["tool_input"].get("command", ""):
        return {}
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "nothing is removed"}
    return {"hookSpecificOutput": said}


async def after(given: Any, _id: str | None, _context: Any) -> dict[str, Any]:
    heard.append(f"{given['hook_event_name']} {given['tool_response']}")
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "well done"}}


async def may_use(_name: str, arguments: dict[str, Any], _context: Any) -> PermissionResultAllow:
    return PermissionResultAllow(updated_input={**arguments, "path": "/elsewhere"})


async def asked() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": "tidy up"}, "parent_tool_use_id": None, "session_id": "s1"}


async def main() -> None:
    options = ClaudeAgentOptions(
        cli_path=Path(__file__).parent / "fake_cli",
        model="claude-test",
        can_use_tool=may_use,
        allowed_tools=["Bash"],
        hooks={
            "UserPromptSubmit": [HookMatcher(hooks=[at_prompt])],
            "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
            "PostToolUse": [HookMatcher(hooks=[after])],
        },
    )
    async for message in query(prompt=asked(), options=options):
        if isinstance(message, ResultMessage):
            print(json.dumps({"mode": "hooks", "output": [message.result, *heard]}), flush=True)


asyncio.run(main())

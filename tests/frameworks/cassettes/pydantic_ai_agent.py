"""Pydantic AI: the agent of any of its recordings. Output tools, tool search, deferred capabilities are its own."""

import asyncio
import json
import os
from typing import Any

from playing import SCENE, say, say_error, use
from pydantic_ai import Agent, AudioUrl, DocumentUrl, ImageUrl, ModelRetry, StructuredDict, Tool
from pydantic_ai.capabilities import Capability
from pydantic_ai.mcp import MCPToolset

OWN = {"search_tools", "load_capability", "tool_search_tool_bm25", "tool_search_tool_regex"}
MODELS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "google"}
RETRY = "\n\nFix the errors and try again."


def body(name: str, arguments: dict[str, Any]) -> Any:
    result = use(name, arguments)
    if isinstance(result, str) and result.endswith(RETRY):
        raise ModelRetry(result.removesuffix(RETRY))
    if isinstance(result, list) and result and "file_url" in result[0]:
        url = result[0]["file_url"]
        return (AudioUrl if url.endswith((".mp3", ".wav")) else DocumentUrl)(url=url)
    if isinstance(result, list) and result and "image_url" in result[0]:
        return ImageUrl(url=result[0]["image_url"])
    try:
        return json.loads(result)
    except (TypeError, ValueError):
        return result


def tool(told: dict[str, Any], deferred: bool) -> Tool:
    def called(**arguments: Any) -> Any:
        return body(told["name"], arguments)

    made = Tool.from_schema(called, told["name"], told["description"], told["parameters"])
    made.defer_loading = deferred
    return made


def agent(turn: dict[str, Any]) -> Agent[None, Any]:
    first, *later = turn["phases"]
    offered = {told["name"]: told for phase in (first, *later) for told in phase["tools"]}
    at_once = {told["name"] for told in first["tools"] if not told["deferred"]}
    output: Any = str
    if "final_result" in offered:
        output = StructuredDict(offered.pop("final_result")["parameters"], name="Answer")
    capabilities = []
    if "load_capability" in offered:
        loaded = next(each["arguments"]["id"] for each in SCENE["results"] if each["name"] == "load_capability")
        hidden = [tool(told, deferred=False) for name, told in offered.items() if name not in at_once | OWN]
        capabilities = [Capability(id=loaded, tools=hidden, defer_loading=True)]
    tools = [
        tool(told, deferred=name not in at_once)
        for name, told in offered.items()
        if name not in OWN and (name in at_once or not capabilities)
    ]
    return Agent(
        f"{MODELS[turn['api']]}:{turn['model']}",
        name="agent",
        instructions=first["instructions"] or None,
        output_type=output,
        tools=[] if SCENE["server"] else tools,
        toolsets=[MCPToolset(os.environ["MCP_URL"])] if SCENE["server"] else [],
        capabilities=capabilities,
        model_settings={"max_tokens": turn["max_tokens"]} if turn["max_tokens"] else None,  # a large default is streamed
        retries=2,
    )


async def streamed(context: Any, events: Any) -> None:
    async for _ in events:
        pass


async def main() -> None:
    history = None
    for turn in SCENE["turns"]:
        try:
            done = await agent(turn).run(
                turn["question"],
                message_history=history if turn["goes_on"] else None,
                event_stream_handler=streamed if SCENE["streamed"] else None,
            )
        except Exception as error:
            say_error(error)
            return
        history = done.all_messages()
        say(done.output)


asyncio.run(main())

"""OpenAI Agents SDK: the agent of any of its recordings; each hand-off is to an agent with the tools that are offered after it."""

import asyncio
import os
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    default_tool_error_function,
    handoff,
    set_tracing_disabled,
)
from agents.tool import function_tool
from openai import AsyncOpenAI
from playing import SCENE, function, say, say_error, use

set_tracing_disabled(True)  # it would ask api.openai.com
HANDOFF = "transfer_to_"
FAILED = "An error occurred while running the tool. Please try again. Error: "


def body(name: str, arguments: dict[str, Any]) -> Any:
    result = use(name, arguments)
    if isinstance(result, str) and result.startswith(FAILED):
        raise RuntimeError(result.removeprefix(FAILED))
    return result


def tool(told: dict[str, Any]) -> FunctionTool:
    made = function_tool(function(told, body), strict_mode=False, failure_error_function=default_tool_error_function)
    made.params_json_schema = told["parameters"]
    return made


def model(turn: dict[str, Any]) -> Any:
    kind = OpenAIResponsesModel if turn["api"] == "responses" else OpenAIChatCompletionsModel
    return kind(model=turn["model"], openai_client=AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], max_retries=0))


def agent(turn: dict[str, Any]) -> Agent[None]:
    made: Agent[None] | None = None
    for phase in reversed(turn["phases"]):
        names = [told["name"] for told in phase["tools"]]
        to = [handoff(made, tool_name_override=name) for name in names if name.startswith(HANDOFF) and made is not None]
        tools = [tool(told) for told in phase["tools"] if not told["name"].startswith(HANDOFF)]
        name = "agent" if made is None else f"before {made.name}"
        made = Agent(
            name=name,
            instructions=phase["instructions"] or None,
            model=model(turn),
            tools=tools,
            handoffs=to,
            model_settings=ModelSettings(),
        )
    assert made is not None
    return made


async def main() -> None:
    history: list[Any] = []
    for turn in SCENE["turns"]:
        asked = [*(history if turn["goes_on"] else []), {"role": "user", "content": turn["question"]}]
        try:
            if SCENE["streamed"]:
                done = Runner.run_streamed(agent(turn), asked)
                async for _ in done.stream_events():
                    pass
            else:
                done = await Runner.run(agent(turn), asked)
        except Exception as error:
            say_error(error)
            return
        history = done.to_input_list()
        say(str(done.final_output))


asyncio.run(main())

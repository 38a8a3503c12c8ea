"""A team of two agents of LlamaIndex: one looks something up with a tool and hands over to the one that writes.

pip install llama-index-core llama-index-llms-openai
export OPENAI_API_KEY=…
spanreplay record -- python agent.py
spanreplay replay last -- python agent.py
"""

import asyncio
import os

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


async def main() -> None:
    llm = OpenAI(model=os.environ.get("MODEL", "gpt-4o-mini"))
    scout = FunctionAgent(
        name="scout",
        description="Looks the weather up.",
        system_prompt="Look the weather up, then hand over to the writer.",
        llm=llm,
        tools=[get_weather],
        can_handoff_to=["writer"],
    )
    writer = FunctionAgent(name="writer", description="Writes about it.", system_prompt="Write one sentence.", llm=llm)
    print(await AgentWorkflow(agents=[scout, writer], root_agent="scout").run(user_msg="How is the weather in Paris?"))


asyncio.run(main())

"""Models of this process: one that LangChain has for tests, one of the user's own, asked and streamed. Neither runs in a replay."""

import asyncio
import json

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from toolbox import get_weather, ran

ASKED = {"messages": [("user", "How is Rome?")]}


class Mine(BaseChatModel):
    model_name: str = "mine"

    @property
    def _llm_type(self):
        return "mine"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        ran("model")
        if messages[-1].type == "tool":
            message = AIMessage(f"It says {messages[-1].content}.")
        else:
            message = AIMessage("", tool_calls=[{"name": "get_weather", "args": {"city": "Rome"}, "id": "call_1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def main():
    agent = create_agent(Mine(), [get_weather], name="mine")
    print(json.dumps({"mode": "own", "output": (await agent.ainvoke(ASKED))["messages"][-1].content}), flush=True)
    fake = GenericFakeChatModel(messages=iter([AIMessage("one two three"), AIMessage("four")]))
    said = [chunk.content async for chunk in fake.astream("count")]
    print(json.dumps({"mode": "fake", "output": [said, fake.invoke("go on").content]}), flush=True)


asyncio.run(main())

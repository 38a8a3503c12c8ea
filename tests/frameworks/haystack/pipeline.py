"""Haystack: a pipeline that retrieves, run, awaited and as a generator; an agent in a pipeline."""

import asyncio
import json
import sys

from agent import model
from haystack import Document, Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import create_tool_from_function
from toolbox import get_weather

TEMPLATE = "{% for document in documents %}{{ document.content }} {% endfor %}{{ question }}"
ASKED = {"retriever": {"query": "umbrella", "top_k": 1}, "prompt": {"question": "Where do I need one?"}}


def retrieving() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content="In Oslo an umbrella helps."), Document(content="Paris is sunny.")])
    made = Pipeline(metadata={"name": "umbrellas"})
    made.add_component("retriever", InMemoryBM25Retriever(store))
    made.add_component("prompt", ChatPromptBuilder(template=[ChatMessage.from_user(TEMPLATE)], required_variables="*"))
    made.add_component("llm", model("chat"))
    made.connect("retriever.documents", "prompt.documents")
    made.connect("prompt.prompt", "llm.messages")
    return made


async def generated() -> str:
    last = {}
    async for part in retrieving().run_async_generator(ASKED):
        last = part
    return str(last["llm"]["replies"][0].text)


def with_agent() -> str:
    made = Pipeline()
    made.add_component("desk", Agent(chat_generator=model("chat"), tools=[create_tool_from_function(get_weather)]))
    return str(made.run({"desk": {"messages": [ChatMessage.from_user("Weather in Paris?")]}})["desk"]["last_message"].text)


def run(mode: str) -> str:
    if mode == "agent":
        return with_agent()
    if mode == "generator":
        return asyncio.run(generated())
    done = asyncio.run(retrieving().run_async(ASKED)) if mode == "async" else retrieving().run(ASKED)
    return str(done["llm"]["replies"][0].text)


for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": run(mode)}), flush=True)

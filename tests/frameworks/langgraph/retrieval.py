"""Retrievers of one's own, asked and awaited, one of which fails: no look-up runs in a replay, the callbacks around it do."""

import asyncio
import json

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from toolbox import ran

from spanreplay.instrumentation import agent_run


class Cities(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        ran("look_up")
        if query == "nowhere":
            raise LookupError("no such city")
        return [Document(page_content=f"{query} lies at the sea.", metadata={"pages": (1, 2)}, id="1")]


class Streets(Cities):
    async def _aget_relevant_documents(self, query, *, run_manager, limit=2):
        ran("look_up")
        return [Document(page_content=f"street {number} of {query}") for number in range(limit)]


class Heard(BaseCallbackHandler):
    def __init__(self):
        self.heard = []

    def on_retriever_start(self, serialized, query, **_):
        self.heard.append(query)

    def on_retriever_end(self, documents, **_):
        self.heard.append(len(documents))


async def main():
    heard = Heard()
    config = {"callbacks": [heard]}
    with agent_run("guide") as run:
        cities = Cities()
        found = cities.invoke("Oslo", config) + await cities.ainvoke("Oslo", config)
        found += await Streets().ainvoke("Paris", config, limit=1)
        try:
            cities.invoke("nowhere", config)
        except LookupError as error:
            found.append(str(error))
        run.output = [each if isinstance(each, str) else [each.page_content, each.metadata, type(each).__name__] for each in found]
        return [run.output, heard.heard]


print(json.dumps({"mode": "retrieval", "output": asyncio.run(main())}))

"""Retrievers of one's own, asked and awaited, with a text and with a bundle, one of which fails: no look-up runs in a replay."""

import asyncio
import json

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from toolbox import ran

from spanreplay.instrumentation import agent_run


class Cities(BaseRetriever):
    def _retrieve(self, query_bundle):
        ran("look_up")
        if query_bundle.query_str == "nowhere":
            raise LookupError("no such city")
        text = f"{query_bundle.query_str} lies at the sea."
        return [NodeWithScore(node=TextNode(text=text, id_="1", metadata={"page": 1}), score=0.5)]


async def main():
    with agent_run("guide") as run:
        cities = Cities()
        found = cities.retrieve("Oslo") + await cities.aretrieve(QueryBundle("Paris"))
        said = [[type(each.node).__name__, each.node.id_, each.get_text(), each.metadata, each.get_score()] for each in found]
        try:
            cities.retrieve("nowhere")
        except LookupError as error:
            said.append(str(error))
        run.output = said
        return said


print(json.dumps({"mode": "retrieval", "output": asyncio.run(main())}))

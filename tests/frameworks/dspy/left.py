"""A program with a limit of time, one of whose two tools never ends."""

import asyncio
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from agent import model
from toolbox import get_weather, wait_for_ever


class Plain(dspy.ChatAdapter):
    """What a model says is the answer, in whatever form."""

    def parse(self, signature, completion):
        return {"answer": completion}


class both(dspy.Module):
    def __init__(self):
        super().__init__()
        self.say = dspy.Predict("question -> answer")
        self.tools = [dspy.Tool(get_weather), dspy.Tool(wait_for_ever)]

    async def aforward(self, question):
        said = await self.say.acall(question=question)
        async with asyncio.timeout(3):
            told = await asyncio.gather(self.tools[0].acall(city="Paris"), self.tools[1].acall())
        return dspy.Prediction(answer=f"{said.answer} {told}")


async def limited():
    try:
        return str((await both().acall(question="What is the weather?")).answer)
    except TimeoutError:
        return "too late"


async def main():
    with dspy.context(lm=model("litellm"), adapter=Plain()):
        return await limited()


print(json.dumps({"mode": "limited", "output": asyncio.run(main())}), flush=True)

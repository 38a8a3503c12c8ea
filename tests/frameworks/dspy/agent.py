"""DSPy: a program with four plain tools and another program behind a fifth, whose model calls tools in the API's own way.

``native`` is DSPy's own HTTP client, which newer releases have, ``litellm`` the other one.
"""

import asyncio
import json
import os
import sys
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else litellm asks GitHub for prices, again and again in a thread of its own

import dspy
from toolbox import get_alerts, get_time, get_weather, roll

NEW = tuple(int(part) for part in dspy.__version__.split(".")[:2]) >= (3, 4)


def model(client: str) -> dspy.LM:
    options: dict[str, Any] = {"engine": "litellm" if client == "litellm" else "lm15"} if NEW else {}
    base = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    return dspy.LM("openai/gpt-4o-mini", api_base=base, api_key="a-key", cache=False, num_retries=0, **options)


class Spoken(dspy.ChatAdapter):
    """What a model says is the answer, in whatever form."""

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        return {"answer": completion}


class Turn(dspy.Signature):
    """You are a weather assistant."""

    question: str = dspy.InputField()
    so_far: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()
    answer: str = dspy.OutputField()


class specialist(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.say = dspy.Predict(dspy.Signature("question -> answer", "You know about umbrellas."))

    def forward(self, question: str) -> dspy.Prediction:
        return self.say(question=question)

    async def aforward(self, question: str) -> dspy.Prediction:
        return await self.say.acall(question=question)


def ask_specialist(question: str) -> str:
    """Ask the specialist."""
    return str(specialist()(question=question).answer)


async def aask_specialist(question: str) -> str:
    """Ask the specialist."""
    return str((await specialist().acall(question=question)).answer)


class weather(dspy.Module):
    def __init__(self, ask: Any) -> None:
        super().__init__()
        self.turn = dspy.Predict(Turn)
        made = [dspy.Tool(get_weather), dspy.Tool(get_time), dspy.Tool(roll), dspy.Tool(get_alerts), dspy.Tool(ask, name="ask_specialist")]
        self.tools = {tool.name: tool for tool in made}

    def forward(self, question: str) -> dspy.Prediction:
        so_far = ""
        while True:
            turn = self.turn(question=question, so_far=so_far, tools=list(self.tools.values()))
            if not turn.calls:
                return dspy.Prediction(answer=turn.answer)
            for call in turn.calls.tool_calls:
                try:
                    so_far += f"{call.name}: {self.tools[call.name](**call.args)}\n"
                except RuntimeError as error:
                    so_far += f"{call.name}: {error}\n"

    async def aforward(self, question: str) -> dspy.Prediction:
        so_far = ""
        while True:
            turn = await self.turn.acall(question=question, so_far=so_far, tools=list(self.tools.values()))
            if not turn.calls:
                return dspy.Prediction(answer=turn.answer)
            done = [self.tools[call.name].acall(**call.args) for call in turn.calls.tool_calls]
            told = await asyncio.gather(*done, return_exceptions=True)
            so_far += "".join(f"{call.name}: {one}\n" for call, one in zip(turn.calls.tool_calls, told, strict=True))


async def stream(question: str) -> str:
    program = dspy.streamify(weather(aask_specialist), is_async_program=True)
    async for item in program(question=question):
        if isinstance(item, dspy.Prediction):
            return str(item.answer)
    return ""


def run(mode: str, question: str) -> str:
    way, _, client = mode.partition("-")
    with dspy.context(lm=model(client), adapter=Spoken(use_native_function_calling=True)):
        if way == "sync":
            return str(weather(ask_specialist)(question=question).answer)
        if way == "async":
            return str(asyncio.run(weather(aask_specialist).acall(question=question)).answer)
        return asyncio.run(stream(question))


for mode in sys.argv[1:] if __name__ == "__main__" else ():
    print(json.dumps({"mode": mode, "output": run(mode, "What is the weather?")}), flush=True)

"""DSPy: ReActV2 with the calls of the model's API, ``ToolCall.execute`` of functions and tools, code that a model wrote."""

import json
import sys
import warnings

import dspy
from agent import model
from toolbox import get_time, get_weather, ran


def price(item: str) -> int:
    """Look a price up."""
    ran("price")
    return len(item)


class Turn(dspy.Signature):
    """Answer with tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def react() -> str:
    agent = dspy.ReActV2("question -> answer", tools=[get_weather, get_time])
    done = agent(question="What is the weather in Paris?")
    return f"{done.answer} {done.termination_reason} {len(done.history.messages)}"


def execute() -> str:
    asked = dspy.Predict(Turn)(question="Three prices.", tools=[dspy.Tool(price)]).calls.tool_calls
    there = [dspy.Tool(price)]
    return str([asked[0].execute(), asked[1].execute({"price": price}), asked[2].execute(there)])


def code() -> str:
    warnings.simplefilter("ignore")
    agent = dspy.CodeAct("n: int -> sum: int", tools=[price], interpreter_factory=dspy.LocalInterpreter)
    return str(agent(n=3).sum)


for mode in sys.argv[1:]:
    native = dspy.ChatAdapter(use_native_function_calling=mode != "code")
    with dspy.context(lm=model("lm15"), adapter=native):
        print(json.dumps({"mode": mode, "output": {"react": react, "execute": execute, "code": code}[mode]()}), flush=True)

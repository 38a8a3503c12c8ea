"""llm: a prompt of any of its recordings. There is no adapter for it: models are seen at HTTP, and functions are marked as tools here."""

import os
from typing import Any

import llm
from playing import SCENE, function, say, say_error, use

from spanreplay.instrumentation import tool

os.environ["LLM_USER_PATH"] = os.getcwd()


def marked(told: dict[str, Any]) -> llm.Tool:
    body = tool(name=told["name"], effect="read")(function(told, lambda name, arguments: str(use(name, arguments))))
    return llm.Tool(name=told["name"], description=told["description"], input_schema=told["parameters"], implementation=body)


conversation: Any = None
for turn in SCENE["turns"]:
    phase = turn["phases"][0]
    if conversation is None or not turn["goes_on"]:
        conversation = llm.get_model(turn["model"]).conversation()
    tools = [marked(told) for told in phase["tools"]]
    try:
        chain = conversation.chain(
            turn["question"], system=phase["instructions"] or None, stream=SCENE["streamed"], tools=tools, key="a-key"
        )
        say(chain.text())
    except Exception as error:
        say_error(error)
        break

"""A loop of one's own over litellm, with one tool. The model is recorded where litellm sends its requests.

Run it with ``pip install litellm``, ``OPENAI_API_KEY`` set, and ``spanreplay record -- python agent.py``.
"""

import json
import os

import litellm

from spanreplay.instrumentation import agent_run, tool

MODEL = os.environ.get("MODEL", "openai/gpt-4o-mini")


@tool(effect="read")
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 21 °C and sunny"


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": get_weather.__doc__, "parameters": PARAMETERS}}]


def answer(question: str) -> str:
    messages = [{"role": "user", "content": question}]
    with agent_run("weather", input=question) as run:
        while True:
            message = litellm.completion(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                run.output = message.content
                return message.content
            for call in message.tool_calls:
                result = get_weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


print(answer("Is Oslo or Paris warmer?"))

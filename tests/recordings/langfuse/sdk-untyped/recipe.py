"""The weather scenario with Langfuse's wrapper of the openai client, and its decorator with no type on agent and tools."""

import json
import os

from langfuse import get_client, observe, propagate_attributes
from langfuse.openai import OpenAI

os.environ.update(
    LANGFUSE_PUBLIC_KEY="pk-lf-a-key",
    LANGFUSE_SECRET_KEY="sk-lf-a-key",
    LANGFUSE_BASE_URL=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
)


@observe()
def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@observe()
def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


@observe(name="weather")
def weather(question: str) -> str:
    client = OpenAI()
    messages = [{"role": "system", "content": "You are a weather assistant."}, {"role": "user", "content": question}]
    while True:
        answer = client.chat.completions.create(model="gpt-4o-mini", temperature=0, messages=messages, tools=OFFERED).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        for asked in answer.tool_calls:
            try:
                said = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


with propagate_attributes(session_id="session-1", user_id="user-1", tags=["demo"]):
    weather("What is the weather in Paris and in Oslo?")
get_client().flush()

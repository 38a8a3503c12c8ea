"""The weather scenario with the plain openai client and OpenLIT, its decorator around the tools."""

import json
import os
from pathlib import Path

import openlit
from openai import OpenAI
from opentelemetry import trace

prices = Path("prices.json")  # else they would be fetched
prices.write_text("{}")
openlit.init(service_name="weather", environment="test", disable_metrics=True, pricing_json=str(prices))

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


def get_weather(city: str) -> dict:
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in TOOLS]


def main() -> None:
    client = OpenAI()
    messages = [
        {"role": "system", "content": "You are a weather assistant."},
        {"role": "user", "content": "What is the weather in Paris and in Oslo?"},
    ]
    while True:
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return
        for asked in answer.tool_calls:
            try:
                said = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


with openlit.start_trace(name="weather"):
    main()
trace.get_tracer_provider().force_flush()
os._exit(0)

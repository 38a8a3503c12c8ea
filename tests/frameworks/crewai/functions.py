"""A function that a model runs by itself, without an agent."""

import json
import os

from crewai import LLM
from toolbox import get_weather

llm = LLM(model="openai/gpt-4o-mini", max_retries=0, base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"))
parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
offered = {"name": "get_weather", "description": "Get the weather of a city.", "parameters": parameters}
said = llm.call(
    "How is the weather in Oslo?", tools=[{"type": "function", "function": offered}], available_functions={"get_weather": get_weather}
)
print(json.dumps({"mode": "call", "output": said}), flush=True)

"""The weather scenario with an agent of LlamaIndex and OpenLLMetry's instrumentations of it and of its client."""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LlamaIndexInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather in a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts in force in a city."""
    raise RuntimeError("alert service unavailable")


async def main() -> None:
    agent = FunctionAgent(
        name="weather",
        tools=[get_weather, get_alerts],
        llm=OpenAI(model="gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"]),
        system_prompt="You are a weather assistant.",
    )
    await agent.run(user_msg="What is the weather in Paris and in Oslo?")


asyncio.run(main())
provider.shutdown()

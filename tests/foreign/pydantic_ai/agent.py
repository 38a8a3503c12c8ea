"""Pydantic AI, streamed, recorded by its own instrumentation."""

import asyncio
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from toolbox import get_alerts, get_weather

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))

agent = Agent(OpenAIChatModel("gpt-4o-mini"), name="weather", instructions="You are a weather assistant.", tools=[get_weather])


@agent.tool_plain(name="get_alerts")
def alerts(city: str) -> dict | str:
    """Get the weather alerts of a city."""
    try:
        return get_alerts(city)
    except RuntimeError as error:
        return f"failed: {error}"


async def main() -> None:
    async with agent.run_stream(sys.argv[1]) as run:
        print(await run.get_output())


asyncio.run(main())
provider.shutdown()

"""The SDK's own tracing: what it sends to OpenAI is no step, and is not sent by a replay."""

import asyncio
import json

from agents import Agent, Runner, function_tool, set_trace_processors, set_tracing_disabled
from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor
from models import model
from toolbox import get_weather, ran

try:
    import httpx2 as httpx
except ImportError:  # releases before openai 3
    import httpx


def receive(request: httpx.Request) -> httpx.Response:
    ran(request.url.host)
    return httpx.Response(200, json={})


exporter = BackendSpanExporter(api_key="a-key")
exporter._client = httpx.Client(transport=httpx.MockTransport(receive))
processor = BatchTraceProcessor(exporter, schedule_delay=60)
set_trace_processors([processor])
set_tracing_disabled(False)

agent = Agent(name="weather", instructions="You know the weather.", model=model(), tools=[function_tool(get_weather)])
output = asyncio.run(Runner.run(agent, "What is the weather in Paris?")).final_output
processor.force_flush()
print(json.dumps({"mode": "run", "output": output}), flush=True)

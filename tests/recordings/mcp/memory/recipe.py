"""Requests of an MCP client to a server in the same process: tools, one of which fails, a resource,
a prompt. Nothing is set up but tracing.

The first call is made inside an ``execute_tool`` span with its arguments and result, as an agent framework would open it.
"""

import asyncio

from mcp import Client
from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = provider.get_tracer("app")

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> dict:
    return WEATHER[city]


@server.tool()
def get_alerts(city: str) -> dict:
    raise RuntimeError("alert service unavailable")


@server.resource("weather://cities")
def cities() -> str:
    return "Paris, Oslo"


@server.prompt()
def report(city: str) -> str:
    return f"Report the weather of {city}."


async def main() -> None:
    async with Client(server) as client:
        await client.list_tools()
        with tracer.start_as_current_span(
            "execute_tool get_weather",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.id": "call_paris",
                "gen_ai.tool.call.arguments": '{"city":"Paris"}',
            },
        ) as span:
            result = await client.call_tool("get_weather", {"city": "Paris"})
            span.set_attribute("gen_ai.tool.call.result", result.content[0].text)
        await client.call_tool("get_weather", {"city": "Oslo"})
        await client.call_tool("get_alerts", {"city": "Oslo"})
        await client.read_resource("weather://cities")
        await client.get_prompt("report", {"city": "Oslo"})


with tracer.start_as_current_span(
    "invoke_agent weather", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
):
    asyncio.run(main())
provider.shutdown()

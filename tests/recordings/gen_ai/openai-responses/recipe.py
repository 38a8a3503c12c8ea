"""The weather scenario with the Responses API of the plain openai client, the last answer streamed, and OpenTelemetry's instrumentation."""

import json
import os

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIInstrumentor().instrument(tracer_provider=provider)
handler = TelemetryHandler(tracer_provider=provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
OFFERED = [{"type": "function", "name": name, "parameters": CITY} for name in ("get_weather", "get_alerts")]


def call(asked) -> str:
    given = json.loads(asked.arguments)
    with handler.tool(asked.name, tool_type="function") as tool:
        tool.tool_call_id, tool.arguments = asked.call_id, given
        if asked.name == "get_alerts":
            raise RuntimeError("alert service unavailable")
        tool.tool_result = WEATHER[given["city"]]
    return json.dumps(WEATHER[given["city"]])


def main() -> None:
    client = OpenAI()
    items = [{"role": "user", "content": "What is the weather in Paris and in Oslo?"}]
    asked = {"model": "gpt-4o-mini", "instructions": "You are a weather assistant.", "tools": OFFERED}
    for streamed in (False, False, True):
        if streamed:
            for _ in client.responses.create(input=items, stream=True, **asked):
                pass
            return
        for item in client.responses.create(input=items, **asked).output:
            items.append({"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments})
            try:
                said = call(item)
            except RuntimeError as error:
                said = f"error: {error}"
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": said})


with handler.workflow("weather"):
    main()
provider.shutdown()

"""The weather scenario with the plain Anthropic client, the last answer streamed, and OpenTelemetry's instrumentation of it."""

import json
import os

from anthropic import Anthropic
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
AnthropicInstrumentor().instrument(tracer_provider=provider)
handler = TelemetryHandler(tracer_provider=provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def call(block) -> str:
    with handler.tool(block.name, tool_type="function") as tool:
        tool.tool_call_id, tool.arguments = block.id, block.input
        if block.name == "get_alerts":
            raise RuntimeError("alert service unavailable")
        tool.tool_result = WEATHER[block.input["city"]]
    return json.dumps(WEATHER[block.input["city"]])


def result(block) -> dict:
    told = {"type": "tool_result", "tool_use_id": block.id}
    try:
        return {**told, "content": call(block)}
    except RuntimeError as error:
        return {**told, "content": str(error), "is_error": True}


def main() -> None:
    client = Anthropic()
    messages = [{"role": "user", "content": "What is the weather in Paris and in Oslo?"}]
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "You are a weather assistant.",
        "tools": [{"name": name, "description": name, "input_schema": CITY} for name in ("get_weather", "get_alerts")],
    }
    for streamed in (False, False, True):
        if streamed:
            with client.messages.stream(messages=messages, **asked) as stream:
                answer = stream.get_final_message()
        else:
            answer = client.messages.create(messages=messages, **asked)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        messages.append({"role": "user", "content": [result(block) for block in answer.content if block.type == "tool_use"]})


with handler.invoke_local_agent(agent_name="weather", request_model="claude-sonnet-4-5"):
    main()
provider.shutdown()

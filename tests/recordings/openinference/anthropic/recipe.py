"""The weather scenario with the plain Anthropic client, the last answer streamed, and OpenInference's instrumentation of it."""

import json

from anthropic import Anthropic
from openinference.instrumentation.anthropic import AnthropicInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
AnthropicInstrumentor().instrument(tracer_provider=provider)
tracer = provider.get_tracer("weather")

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def call(name: str, city: str) -> str:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": name,
        "tool.parameters": json.dumps({"city": city}),  # arguments, as several converters have them
    }
    with tracer.start_as_current_span(name, attributes=attributes) as span:
        if name == "get_alerts":
            raise RuntimeError("alert service unavailable")
        value = json.dumps(WEATHER[city])
        span.set_attribute("output.value", value)
        span.set_attribute("output.mime_type", "application/json")
        return value


def result(block) -> dict:
    told = {"type": "tool_result", "tool_use_id": block.id}
    try:
        return {**told, "content": call(block.name, block.input["city"])}
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


with tracer.start_as_current_span("weather", attributes={"openinference.span.kind": "CHAIN", "session.id": "session-1"}):
    main()
provider.shutdown()

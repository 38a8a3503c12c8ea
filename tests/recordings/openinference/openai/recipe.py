"""The weather scenario with the plain openai client and OpenInference's instrumentation of it."""

import json

from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = provider.get_tracer("weather")


def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


def call(asked) -> str:
    arguments = json.loads(asked.function.arguments)
    with tracer.start_as_current_span(
        asked.function.name,
        attributes={
            "openinference.span.kind": "TOOL",
            "tool.name": asked.function.name,
            "input.value": asked.function.arguments,
            "input.mime_type": "application/json",
        },
    ) as span:
        value = json.dumps(TOOLS[asked.function.name](**arguments))
        span.set_attribute("output.value", value)
        span.set_attribute("output.mime_type", "application/json")
        return value


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
                said = call(asked)
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


with tracer.start_as_current_span("weather", attributes={"openinference.span.kind": "AGENT", "agent.name": "weather"}):
    main()
provider.shutdown()

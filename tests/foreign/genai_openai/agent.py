"""A loop of one's own over the OpenAI SDK, recorded by OpenTelemetry's own instrumentation of it."""

import json
import os
import sys

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"

from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler
from toolbox import get_alerts, get_weather

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)
handler = TelemetryHandler(tracer_provider=provider)

TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OFFERED = [{"type": "function", "function": {"name": n, "description": f"{n} of a city", "parameters": SCHEMA}} for n in TOOLS]


def called(call: object) -> str:
    arguments = json.loads(call.function.arguments)
    try:
        with handler.tool(call.function.name) as invocation:
            invocation.tool_call_id, invocation.arguments = call.id, arguments
            invocation.tool_result = TOOLS[call.function.name](**arguments)
            return json.dumps(invocation.tool_result)
    except RuntimeError as error:
        return f"failed: {error}"


def answer(question: str) -> str:
    client = OpenAI()
    messages = [{"role": "system", "content": "You are a weather assistant."}, {"role": "user", "content": question}]
    while True:
        said = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        messages += [{"role": "tool", "tool_call_id": call.id, "content": called(call)} for call in said.tool_calls]


with handler.workflow("weather"):
    print(answer(sys.argv[1]))
provider.shutdown()

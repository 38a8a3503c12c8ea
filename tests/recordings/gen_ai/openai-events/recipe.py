"""The weather scenario with the plain openai client and OpenTelemetry's own instrumentation of it; content in log events."""

import json
import os

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "EVENT_ONLY"
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=logs)
handler = TelemetryHandler(tracer_provider=provider, logger_provider=logs)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
OFFERED = [{"type": "function", "function": {"name": name, "parameters": CITY}} for name in ("get_weather", "get_alerts")]


def call(asked) -> str:
    given = json.loads(asked.function.arguments)
    with handler.tool(asked.function.name, tool_type="function") as tool:
        tool.tool_call_id, tool.arguments = asked.id, given
        if asked.function.name == "get_alerts":
            raise RuntimeError("alert service unavailable")
        tool.tool_result = WEATHER[given["city"]]
    return json.dumps(WEATHER[given["city"]])


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


with handler.invoke_local_agent(agent_name="weather", request_model="gpt-4o-mini", conversation_id="conversation-1"):
    main()
provider.shutdown()
logs.shutdown()

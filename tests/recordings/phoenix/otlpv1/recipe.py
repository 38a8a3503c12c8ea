"""The weather scenario with OpenInference, sent to a Phoenix that runs here; the spans as its REST API lists them in OTLP."""

import json
import os
import time
import urllib.request
from pathlib import Path

os.environ.update(
    PHOENIX_WORKING_DIR=str(Path("phoenix").absolute()),
    PHOENIX_HOST="127.0.0.1",
    PHOENIX_PORT="16006",
    PHOENIX_GRPC_PORT="16007",
    PHOENIX_TELEMETRY_ENABLED="false",
    PHOENIX_ALLOW_EXTERNAL_RESOURCES="false",
)

import phoenix  # noqa: E402 (it reads the environment)
from openai import OpenAI  # noqa: E402
from openinference.instrumentation.openai import OpenAIInstrumentor  # noqa: E402
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: E402

PHOENIX = "http://127.0.0.1:16006"
phoenix.launch_app()
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{PHOENIX}/v1/traces")))
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
    given = {
        "openinference.span.kind": "TOOL",
        "tool.name": asked.function.name,
        "tool.parameters": json.dumps(OFFERED[0]["function"]["parameters"]),
        "input.value": asked.function.arguments,
        "input.mime_type": "application/json",
    }
    with tracer.start_as_current_span(asked.function.name, attributes=given) as span:
        value = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
        span.set_attributes({"output.value": value, "output.mime_type": "application/json"})
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


with tracer.start_as_current_span(
    "weather",
    attributes={
        "openinference.span.kind": "AGENT",
        "agent.name": "weather",
        "session.id": "session-1",
        "metadata": '{"team": {"name": "demo"}}',
    },
):
    main()
provider.shutdown()
text = ""
while text.count('"weather"') < 1:
    time.sleep(0.5)
    text = urllib.request.urlopen(f"{PHOENIX}/v1/projects/default/spans/otlpv1").read().decode()
Path(os.environ["RECORDING_FILE"]).write_text(json.dumps(json.loads(text), indent=1), encoding="utf-8")
phoenix.close_app()

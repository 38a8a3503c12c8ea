"""The weather scenario with LiteLLM and its own tracing; the agent and its tools have spans in the GenAI conventions."""

import json
import os
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks for the prices of today when it is imported

import litellm
from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter=OTLPSpanExporter()), tracer_provider=provider)]
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
    name, arguments = asked.function.name, asked.function.arguments
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": asked.id}
    with tracer.start_as_current_span(f"execute_tool {name}", attributes={**told, "gen_ai.tool.call.arguments": arguments}) as span:
        value = json.dumps(TOOLS[name](**json.loads(arguments)))
        span.set_attribute("gen_ai.tool.call.result", value)
        return value


def main() -> None:
    messages = [
        {"role": "system", "content": "You are a weather assistant."},
        {"role": "user", "content": "What is the weather in Paris and in Oslo?"},
    ]
    while True:
        done = litellm.completion(
            model="openai/gpt-4o-mini", messages=messages, tools=OFFERED, temperature=0.5, api_base=os.environ["OPENAI_BASE_URL"]
        )
        answer = done.choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return
        for asked in answer.tool_calls:
            try:
                said = call(asked)
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}
with tracer.start_as_current_span("invoke_agent weather", attributes=agent):
    main()
    time.sleep(2)  # its spans are made in a thread of its own
provider.shutdown()

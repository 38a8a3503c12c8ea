"""The weather scenario with the plain openai client and AgentOps: its instrumentation and its decorators, sent to a Collector."""

import json
import os

from agentops.instrumentation import instrument_all
from agentops.sdk.core import tracer
from agentops.sdk.decorators import agent, task, tool, trace
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

receiver = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
tracer.initialize(exporter_endpoint=f"{receiver}/v1/traces", metrics_endpoint=f"{receiver}/v1/metrics")
tracer.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # its own exporter sends nothing without an account
instrument_all()


@tool
def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@tool
def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


@agent(name="weather")
class Weather:
    @task
    def ask(self, question: str) -> str:
        client = OpenAI()
        messages = [{"role": "system", "content": "You are a weather assistant."}, {"role": "user", "content": question}]
        while True:
            answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED).choices[0].message
            messages.append(answer.model_dump(exclude_none=True))
            if not answer.tool_calls:
                return answer.content
            for asked in answer.tool_calls:
                try:
                    said = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
                except RuntimeError as error:
                    said = f"error: {error}"
                messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


@trace(name="job")
def job(question: str) -> str:
    return Weather().ask(question)


job("What is the weather in Paris and in Oslo?")
tracer.provider.force_flush()

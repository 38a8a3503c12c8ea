"""The weather scenario with the plain openai client and OpenLLMetry, decorated functions and all; run for the old and for the new form."""

import json
import os

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import tool, workflow
from traceloop.sdk.instruments import Instruments

os.environ["TRACELOOP_TELEMETRY"] = "false"
processor = BatchSpanProcessor(OTLPSpanExporter())
Traceloop.init("weather", processor=processor, instruments={Instruments.OPENAI})

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@tool(name="get_weather", version=2)
def get_weather(city: str) -> dict:
    return WEATHER[city]


@tool(name="get_alerts", version=1)
def get_alerts(city: str) -> dict:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [{"type": "function", "function": {"name": name, "description": name, "parameters": CITY}} for name in TOOLS]


def call(asked) -> str:
    try:
        return json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
    except RuntimeError as error:
        return f"error: {error}"


@workflow(name="weather", version=3)
def main(question: str) -> str:
    client = OpenAI()
    messages = [{"role": "system", "content": "You are a weather assistant."}, {"role": "user", "content": question}]
    while True:
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED, temperature=0).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        messages += [{"role": "tool", "tool_call_id": asked.id, "content": call(asked)} for asked in answer.tool_calls]


Traceloop.set_association_properties({"session_id": "session-1"})
main("What is the weather in Paris and in Oslo?")
processor.force_flush()

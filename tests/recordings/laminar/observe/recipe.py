"""The weather scenario with the plain openai client, Laminar's instrumentation of it and its ``@observe``."""

import json
import os
from urllib.parse import urlsplit

from lmnr import Instruments, Laminar, observe
from openai import OpenAI

receiver = urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
Laminar.initialize(
    project_api_key="key",
    base_url=f"http://{receiver.hostname}",
    http_port=receiver.port,
    force_http=True,
    instruments={Instruments.OPENAI},
)


@observe(span_type="TOOL")
def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@observe()
def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


@observe(name="weather", session_id="session-1")
def ask(question: str) -> str:
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


ask("What is the weather in Paris and in Oslo?")
Laminar.shutdown()

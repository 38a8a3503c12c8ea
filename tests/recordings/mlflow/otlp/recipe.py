"""The weather scenario with MLflow: its autologging of the openai client and its decorator, sent by OTLP."""

import json
import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
import mlflow  # noqa: E402 (it reads the environment)
from openai import OpenAI  # noqa: E402

mlflow.openai.autolog()


@mlflow.trace(span_type="TOOL")
def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@mlflow.trace(span_type="TOOL")
def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


@mlflow.trace(name="weather", span_type="AGENT")
def weather(question: str) -> str:
    client = OpenAI()
    messages = [{"role": "system", "content": "You are a weather assistant."}, {"role": "user", "content": question}]
    while True:
        answer = client.chat.completions.create(model="gpt-4o-mini", temperature=0, messages=messages, tools=OFFERED).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        for asked in answer.tool_calls:
            try:
                said = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


weather("What is the weather in Paris and in Oslo?")
mlflow.flush_trace_async_logging()

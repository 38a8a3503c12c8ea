"""The weather scenario with LangSmith's decorator and its wrapper of the openai client, sent by OpenTelemetry only."""

import json
import os

os.environ.update(
    LANGSMITH_TRACING="true",
    LANGSMITH_TRACING_MODE="otel",
    LANGSMITH_API_KEY="a-key",
    LANGSMITH_PROJECT="weather",
    LANGSMITH_ENDPOINT=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
)

from langsmith import Client, traceable  # noqa: E402 (it reads the environment)
from langsmith.wrappers import wrap_openai  # noqa: E402
from openai import OpenAI  # noqa: E402

langsmith = Client()


@traceable(run_type="tool", client=langsmith)
def get_weather(city: str) -> dict[str, object]:
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@traceable(run_type="tool", client=langsmith)
def get_alerts(city: str) -> dict[str, object]:
    raise RuntimeError("alert service unavailable")


TOOLS = {"get_weather": get_weather, "get_alerts": get_alerts}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in TOOLS
]


@traceable(run_type="chain", name="weather", client=langsmith, metadata={"session_id": "session-1"}, tags=["demo"])
def weather(question: str) -> str:
    client = wrap_openai(OpenAI(), tracing_extra={"client": langsmith})
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
langsmith.flush()

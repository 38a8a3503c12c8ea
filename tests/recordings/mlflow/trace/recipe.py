"""The weather scenario with MLflow: its autologging of the openai client and its decorator; the trace as ``Trace.to_json`` has it."""

import json
import os
from pathlib import Path

import mlflow
from openai import OpenAI

os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT")  # else the spans go there and nowhere else
os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", LOGNAME="app")
mlflow.set_tracking_uri(Path("mlruns").absolute().as_uri())
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
    mlflow.update_current_trace(metadata={"mlflow.trace.session": "session-1", "mlflow.trace.user": "user-1"}, tags={"team": "demo"})
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
Path(os.environ["RECORDING_FILE"]).write_text(mlflow.get_trace(mlflow.get_last_active_trace_id()).to_json(pretty=True), encoding="utf-8")

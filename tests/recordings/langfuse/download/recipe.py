"""The weather scenario with an agent of Langfuse's SDK and OpenInference's instrumentation of the openai client; as a trace page downloads it.

There is no server here: ``kept`` does with each span what the server's ``OtelIngestionProcessor`` and the download do. It takes content
out of the attributes, makes a text of every attribute, drops events, and cuts times to milliseconds.
"""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

os.environ.update(LANGFUSE_PUBLIC_KEY="pk-lf-a-key", LANGFUSE_SECRET_KEY="sk-lf-a-key", LANGFUSE_BASE_URL="http://127.0.0.1:9")

from langfuse import Langfuse, observe, propagate_attributes  # noqa: E402 (it reads the environment)
from openai import OpenAI  # noqa: E402
from openinference.instrumentation.openai import OpenAIInstrumentor  # noqa: E402
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

memory = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
Langfuse(tracer_provider=provider, tracing_enabled=True, span_exporter=memory)
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = provider.get_tracer("weather", "1.0")


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
    time.sleep(0.002)  # two calls within one millisecond would have no order in the download
    # As Koog and others do it: a tool known by its name only.
    given = {"gen_ai.tool.name": asked.function.name, "gen_ai.tool.call.id": asked.id, "input.value": asked.function.arguments}
    with tracer.start_as_current_span(f"tool.{asked.function.name}", attributes=given) as span:
        value = json.dumps(TOOLS[asked.function.name](**json.loads(asked.function.arguments)))
        span.set_attribute("output.value", value)
        return value


@observe(as_type="agent", name="weather")
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
                said = call(asked)
            except RuntimeError as error:
                said = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": asked.id, "content": said})


TAKEN = ("input.value", "output.value", "langfuse.observation.input", "langfuse.observation.output")
TYPES = {"LLM": "GENERATION", "TOOL": "TOOL", "AGENT": "AGENT", "CHAIN": "CHAIN"}


def kept(span: ReadableSpan) -> dict[str, object]:
    given = dict(span.attributes)
    own = span.instrumentation_scope.name == "langfuse-sdk"
    left = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in given.items()
        if key not in TAKEN and not key.startswith(("llm.input_messages", "llm.output_messages"))
    }
    metadata = {} if own else {"attributes": left}
    metadata["resourceAttributes"] = dict(span.resource.attributes)
    scope = span.instrumentation_scope
    metadata["scope"] = {"name": scope.name, "version": scope.version, "attributes": dict(scope.attributes or {})}
    failed = span.status.status_code.name == "ERROR"
    kind = given.get("langfuse.observation.type", TYPES.get(given.get("openinference.span.kind", ""), "SPAN")).upper()
    return {
        "id": f"{span.context.span_id:016x}",
        "traceId": f"{span.context.trace_id:032x}",
        "startTime": moment(span.start_time),
        "endTime": moment(span.end_time),
        "projectId": "project-1",
        "parentObservationId": f"{span.parent.span_id:016x}" if span.parent else None,
        "type": kind,
        "environment": "default",
        "name": given.get("gen_ai.tool.name", span.name),
        "level": "ERROR" if failed else "DEFAULT",
        "statusMessage": span.status.description if failed else None,
        "version": None,
        "input": given.get("langfuse.observation.input", given.get("input.value")),
        "output": given.get("langfuse.observation.output", given.get("output.value")),
        "model": given.get("llm.model_name"),
        "modelParameters": json.loads(given.get("llm.invocation_parameters", "{}")),
        "usageDetails": {
            name: given[key]
            for name, key in (
                ("input", "llm.token_count.prompt"),
                ("output", "llm.token_count.completion"),
                ("total", "llm.token_count.total"),
            )
            if key in given
        },
        "promptName": None,
        "promptVersion": None,
        "metadata": json.dumps(metadata),
    }


def moment(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


question = "What is the weather in Paris and in Oslo?"
with propagate_attributes(session_id="session-1", user_id="user-1", tags=["demo"]):
    answer = weather(question)
provider.force_flush()
seen = {span.context.span_id: span for span in memory.get_finished_spans()}
observations = [kept(span) for span in sorted(seen.values(), key=lambda span: span.name)]
root = next(observation for observation in observations if observation["parentObservationId"] is None)
trace = {
    "id": root["traceId"],
    "projectId": "project-1",
    "name": "weather",
    "timestamp": root["startTime"],
    "environment": "default",
    "tags": ["demo"],
    "bookmarked": False,
    "release": None,
    "version": None,
    "userId": "user-1",
    "sessionId": "session-1",
    "public": False,
    "input": json.dumps(question),
    "output": json.dumps(answer),
    "metadata": root["metadata"],
    "scores": [{"id": "score-1", "name": "helpful", "value": 1}],
    "observations": observations,
}
text = json.dumps({"trace": trace, "observations": observations}, indent=1)
Path(os.environ["RECORDING_FILE"]).write_text(text, encoding="utf-8")

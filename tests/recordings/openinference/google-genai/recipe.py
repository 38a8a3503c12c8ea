"""The weather scenario with the plain Gemini client and OpenInference's instrumentation of it; of tools no spans are made."""

import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


def get_weather(city: str) -> dict:
    """The weather of a city."""
    return WEATHER[city]


def get_alerts(city: str) -> dict:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor

GoogleGenAIInstrumentor().instrument(tracer_provider=provider)
from google import genai
from google.genai import types

client = genai.Client(api_key="a-key", http_options=types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"]))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OFFERED = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name=n, description=f"{n} of a city", parameters_json_schema=SCHEMA)
            for n in ("get_weather", "get_alerts")
        ]
    )
]
contents = [types.Content(role="user", parts=[types.Part(text="What is the weather in Paris and in Oslo?")])]
with trace.get_tracer("weather").start_as_current_span("weather", attributes={"openinference.span.kind": "AGENT"}):
    while True:
        said = client.models.generate_content(
            model="gemini-2.5-flash",
            contents=contents,
            config=types.GenerateContentConfig(system_instruction="You are a weather assistant.", tools=OFFERED, temperature=0),
        )
        contents.append(said.candidates[0].content)
        if not said.function_calls:
            break
        results = []
        for call in said.function_calls:
            try:
                result = {"output": globals()[call.name](**call.args)}
            except RuntimeError as error:
                result = {"error": str(error)}
            results.append(types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=result)))
        contents.append(types.Content(role="user", parts=results))
provider.shutdown()

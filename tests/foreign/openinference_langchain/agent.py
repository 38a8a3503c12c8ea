"""LangChain's agent on LangGraph, recorded by OpenInference."""

import sys

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from toolbox import get_alerts, get_weather

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)

agent = create_agent(
    ChatOpenAI(model="gpt-4o-mini"),
    tools=[get_weather, get_alerts],
    system_prompt="You are a weather assistant.",
    middleware=[ToolRetryMiddleware(max_retries=0)],
    name="weather",
)
print(agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})["messages"][-1].content)
provider.shutdown()

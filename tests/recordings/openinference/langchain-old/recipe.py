"""The weather scenario with LangGraph's prebuilt agent and an early version of OpenInference's instrumentation of LangChain."""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import ToolNode, create_react_agent
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}


@tool
def get_weather(city: str) -> dict:
    """The weather in a city."""
    return WEATHER[city]


@tool
def get_alerts(city: str) -> dict:
    """The alerts in force in a city."""
    raise RuntimeError("alert service unavailable")


tools = ToolNode([get_weather, get_alerts], handle_tool_errors=lambda error: f"error: {error}")
agent = create_react_agent(ChatOpenAI(model="gpt-4o-mini", temperature=0), tools, prompt="You are a weather assistant.")
agent.invoke({"messages": [("user", "What is the weather in Paris and in Oslo?")]})
provider.shutdown()

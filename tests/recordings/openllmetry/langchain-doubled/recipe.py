"""The weather scenario as a LangChain agent, which is a LangGraph graph, and the instrumentations of it by OpenLLMetry and OpenInference at once."""

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangchainInstrumentor().instrument(tracer_provider=provider)
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


def answered(request, handler):
    try:
        return handler(request)
    except RuntimeError as error:
        return ToolMessage(f"error: {error}", tool_call_id=request.tool_call["id"], status="error")


def main() -> None:
    agent = create_agent(
        ChatOpenAI(model="gpt-4o-mini"),
        [get_weather, get_alerts],
        system_prompt="You are a weather assistant.",
        middleware=[wrap_tool_call(answered)],
    )
    asked = {"messages": [{"role": "user", "content": "What is the weather in Paris and in Oslo?"}]}
    agent.invoke(asked, {"configurable": {"thread_id": "thread-1"}, "metadata": {"thread_id": "thread-1"}})


main()
provider.shutdown()

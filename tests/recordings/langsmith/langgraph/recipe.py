"""The weather scenario with LangGraph's prebuilt agent and LangChain's own tracing, sent by OpenTelemetry only."""

import os

os.environ.update(
    LANGSMITH_TRACING="true",
    LANGSMITH_TRACING_MODE="otel",
    LANGSMITH_API_KEY="a-key",
    LANGSMITH_PROJECT="weather",
    LANGSMITH_ENDPOINT=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
)

from langchain_core.messages import SystemMessage  # noqa: E402 (LangSmith reads the environment)
from langchain_core.tools import tool  # noqa: E402
from langchain_core.tracers.langchain import get_client, wait_for_all_tracers  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.prebuilt import ToolNode, create_react_agent  # noqa: E402


@tool
def get_weather(city: str) -> dict[str, object]:
    """The weather in a city."""
    return {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}[city]


@tool
def get_alerts(city: str) -> dict[str, object]:
    """The alerts of a city."""
    raise RuntimeError("alert service unavailable")


tools = ToolNode([get_weather, get_alerts], handle_tool_errors=lambda error: f"error: {error}")
agent = create_react_agent(ChatOpenAI(model="gpt-4o-mini", temperature=0), tools, prompt=SystemMessage("You are a weather assistant."))
agent.invoke(
    {"messages": [("user", "What is the weather in Paris and in Oslo?")]},
    config={"run_name": "weather", "metadata": {"thread_id": "session-1"}},
)
wait_for_all_tracers()
get_client().flush()

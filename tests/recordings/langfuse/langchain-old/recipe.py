"""The weather scenario with LangGraph's prebuilt agent and the handler that gave a tool no type (Langfuse 3.2)."""

import os

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import ToolNode, create_react_agent

os.environ.update(
    LANGFUSE_PUBLIC_KEY="pk-lf-a-key",
    LANGFUSE_SECRET_KEY="sk-lf-a-key",
    LANGFUSE_HOST=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
)

from langfuse import get_client  # noqa: E402 (it reads the environment)
from langfuse.langchain import CallbackHandler  # noqa: E402


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
    config={"callbacks": [CallbackHandler()], "run_name": "weather", "metadata": {"langfuse_session_id": "session-1"}},
)
get_client().flush()

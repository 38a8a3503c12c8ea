"""The weather scenario with LangGraph's prebuilt agent and LangChain's own tracing; the runs as the API lists them.

The API here is a stand-in: it keeps what the client posts and patches, and lists it, the last run first, as the real one does.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

runs: dict[str, dict[str, object]] = {}


class Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        run = runs.setdefault(body.get("id") or self.path.rpartition("/")[2], {})
        run.update({key: value for key, value in body.items() if value is not None or key not in run})
        self._answer({})

    do_PATCH = do_POST

    def do_GET(self) -> None:
        self._answer({"version": "0.13.0", "batch_ingest_config": None})

    def _answer(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        return


server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(
    LANGSMITH_TRACING="true",
    LANGSMITH_API_KEY="a-key",
    LANGSMITH_PROJECT="weather",
    LANGSMITH_ENDPOINT=f"http://127.0.0.1:{server.server_address[1]}",
)

from langchain_core.messages import SystemMessage  # noqa: E402 (LangSmith reads the environment)
from langchain_core.tools import tool  # noqa: E402
from langchain_core.tracers.langchain import LangChainTracer, wait_for_all_tracers  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.prebuilt import ToolNode, create_react_agent  # noqa: E402
from langsmith import Client  # noqa: E402


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
    config={
        "run_name": "weather",
        "metadata": {"thread_id": "session-1"},
        "callbacks": [LangChainTracer(client=Client(auto_batch_tracing=False))],
    },
)
wait_for_all_tracers()
listed = sorted(runs.values(), key=lambda run: str(run["dotted_order"]), reverse=True)
Path(os.environ["RECORDING_FILE"]).write_text(json.dumps({"runs": listed, "cursors": {"next": None}}, indent=1), encoding="utf-8")

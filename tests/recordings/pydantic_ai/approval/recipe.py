"""A tool that waits for approval, a call with wrong arguments and an output function, with pydantic-ai and its own telemetry."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext, ToolOutput
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def report(text: str) -> dict[str, str]:
    """The report for the user."""
    return {"report": text}


agent = Agent(
    OpenAIChatModel("gpt-4o-mini"),
    name="weather",
    instructions="You are a weather assistant.",
    output_type=[ToolOutput(report, name="final_result"), DeferredToolRequests],
)


@agent.tool_plain
def get_weather(city: str) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 21, "sky": "sunny"}


@agent.tool
def clear_alerts(ctx: RunContext[None], city: str) -> str:
    """Takes back the alerts of a city."""
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"reason": "alerts are public"})
    return f"no more alerts in {city}"


with provider.get_tracer("weather").start_as_current_span("conversation"):
    first = agent.run_sync("Look at Paris, and clear the alerts of Oslo.")
    agent.run_sync(message_history=first.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"call_clear": True}))
provider.shutdown()

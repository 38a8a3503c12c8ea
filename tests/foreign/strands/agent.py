"""Strands Agents with its OpenAI model, recorded by its own instrumentation."""

import os
import sys

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.telemetry import StrandsTelemetry
from toolbox import get_alerts, get_weather

telemetry = StrandsTelemetry()
telemetry.setup_otlp_exporter()

agent = Agent(
    model=OpenAIModel(model_id="gpt-4o-mini"),
    name="weather",
    system_prompt="You are a weather assistant.",
    tools=[tool(get_weather), tool(get_alerts)],
    callback_handler=None,
)
print(str(agent(sys.argv[1])).strip())
telemetry.tracer_provider.shutdown()

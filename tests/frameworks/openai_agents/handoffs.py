"""Hand-offs: one whose callback is given input and calls a service through a tool, then another agent's turns; guardrails around them."""

import asyncio
import json
import sys

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    Runner,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from models import model
from pydantic import BaseModel
from toolbox import get_weather


class Reason(BaseModel):
    reason: str


class Answer(BaseModel):
    city: str
    degrees: int


@input_guardrail
async def polite(_context: object, _agent: object, given: object) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info="looked at", tripwire_triggered="damn" in str(given))


@output_guardrail
def warm(_context: object, _agent: object, output: Answer) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=output.degrees < 0)


noted: list[str] = []


def note(_context: object, given: Reason) -> None:
    noted.append(given.reason)


def agents() -> Agent:
    weather = Agent(
        name="weather",
        handoff_description="Knows the weather.",
        instructions=lambda _context, agent: f"You are {agent.name}.",
        model=model(),
        tools=[function_tool(get_weather)],
        output_type=Answer,
        output_guardrails=[warm],
    )
    return Agent(
        name="triage",
        instructions="Hand over.",
        model=model(),
        handoffs=[handoff(weather, on_handoff=note, input_type=Reason)],
        input_guardrails=[polite],
    )


async def ask(question: str, streamed: bool) -> str:
    try:
        if streamed:
            result = Runner.run_streamed(agents(), question)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agents(), question)
    except (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered) as error:
        return type(error).__name__
    assert isinstance(result.final_output, Answer)
    return f"{result.final_output!r} by {result.last_agent.name}, {noted}"


QUESTIONS = {"run": "Weather in Paris?", "stream": "Weather in Paris?", "cold": "Weather in Oslo?"}
for mode in sys.argv[1:]:
    print(json.dumps({"mode": mode, "output": asyncio.run(ask(QUESTIONS[mode], mode == "stream"))}), flush=True)

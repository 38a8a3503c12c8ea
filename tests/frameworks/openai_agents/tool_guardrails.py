"""A guardrail that lets one call of a tool through and answers another itself."""

import asyncio
import json

from agents import Agent, Runner, ToolGuardrailFunctionOutput, function_tool, tool_input_guardrail
from agents.tool_guardrails import ToolInputGuardrailData
from models import model
from toolbox import ran


@tool_input_guardrail
def small(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    if json.loads(data.context.tool_arguments)["euros"] > 100:
        return ToolGuardrailFunctionOutput.reject_content("too much")
    return ToolGuardrailFunctionOutput.allow()


@function_tool(tool_input_guardrails=[small])
def refund(euros: int) -> str:
    """Refund."""
    ran("refund")
    return f"refunded {euros}"


agent = Agent(name="till", instructions="You refund.", model=model("chat"), tools=[refund])
output = asyncio.run(Runner.run(agent, "Refund 30 and 300.")).final_output
print(json.dumps({"mode": "run", "output": output}), flush=True)

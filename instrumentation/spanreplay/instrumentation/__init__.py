"""What an agent's author writes: the manual API. Framework adapters, HTTP transports and shims are private to this package."""

from spanreplay.instrumentation.manual import AgentRun, Prompt, agent_run, prompt, read, record_decision, scope
from spanreplay.instrumentation.skills import Skill, skill
from spanreplay.instrumentation.tools import tool

__all__ = ["AgentRun", "Prompt", "Skill", "agent_run", "prompt", "read", "record_decision", "scope", "skill", "tool"]

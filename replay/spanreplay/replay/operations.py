"""What kind of step an operation of the GenAI conventions is; shared by the dialects that find one beside names of their own."""

from collections.abc import Mapping
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

KINDS: Final[Mapping[str, Kind]] = {
    "chat": "model_call",
    "generate_content": "model_call",
    "text_completion": "model_call",
    "execute_tool": "tool_call",
    "load_skill": "tool_call",
    "read_skill_resource": "tool_call",
    "command": "tool_call",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "agent",
    "handle_conversation_turn": "agent",
    "plan": "agent",
    "retrieval": "retrieval",
    "embeddings": "retrieval",
    "create_memory_store": "memory",
    "delete_memory_store": "memory",
    "search_memory": "memory",
    "create_memory": "memory",
    "update_memory": "memory",
    "upsert_memory": "memory",
    "delete_memory": "memory",
    "handoff": "handoff",
}
"""By ``gen_ai.operation.name``."""


def operation_kind(span: SpanRecord) -> Kind | None:
    """The kind of a span that names its operation, or, where it names none, a tool; else ``None``."""
    operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
    if isinstance(operation, str):
        return KINDS.get(operation)
    return "tool_call" if isinstance(span.attributes.get(a.GEN_AI_TOOL_NAME), str) else None

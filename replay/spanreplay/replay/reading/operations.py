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
_PROVIDERS: Final = (a.GEN_AI_PROVIDER_NAME, "gen_ai.system")
_ANSWERED: Final = ("gen_ai.response.", "gen_ai.usage.", a.GEN_AI_OUTPUT_MESSAGES, "gen_ai.completion")


def operation_kind(span: SpanRecord) -> Kind | None:
    """The kind of a span that names its operation, or, where it names none, what else tells a tool or a model; else ``None``."""
    operation = span.attributes.get(a.GEN_AI_OPERATION_NAME)
    if isinstance(operation, str):
        return KINDS.get(operation)
    if isinstance(span.attributes.get(a.GEN_AI_TOOL_NAME), str):
        return "tool_call"
    return "model_call" if _is_model(span) else None


def _is_model(span: SpanRecord) -> bool:
    """Whether a span says which model of whom was asked, and anything of the answer: before 1.26 there were no operations."""
    names = span.attributes
    named = isinstance(names.get(a.GEN_AI_REQUEST_MODEL), str) and any(isinstance(names.get(n), str) for n in _PROVIDERS)
    return named and any(name.startswith(_ANSWERED) for name in names)

"""Attributes whose dotted names were taken apart into objects, put together again.

Tools that show spans as JSON like ``{"llm": {"input_messages": [{"message": {"role": "user"}}]}}`` better than the attribute it was,
``llm.input_messages.0.message.role``. OpenTelemetry itself has objects as values too, so only the name spaces of known conventions are put
together, and no further than to the attributes that hold a value of the application.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spanreplay.semconv import attributes as a

_SPACES: Final = frozenset(
    (
        "agent", "ai", "code", "db", "embedding", "error", "exception", "gcp", "gen_ai", "graph", "http", "input", "langfuse", "langsmith",
        "llm", "logfire", "mcp", "mlflow", "network", "openinference", "output", "reranker", "retrieval", "rpc", "server", "session",
        "telemetry", "tool", "tool_call", "traceloop", "url", "user",
    )
)  # fmt: skip
"""First words of attribute names in the conventions that are read here."""
_WHOLE: Final = frozenset(
    (
        a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.GEN_AI_SYSTEM_INSTRUCTIONS, a.GEN_AI_TOOL_DEFINITIONS,
        a.GEN_AI_TOOL_CALL_ARGUMENTS, a.GEN_AI_TOOL_CALL_RESULT, "gen_ai.retrieval.documents", "input.value", "output.value",
        "tool.parameters", "llm.invocation_parameters", "llm.prompt_template.variables", "llm.function_call",
    )
)  # fmt: skip
"""Attributes whose value may be an object or an array of its own."""
_WHOLE_ENDS: Final = (".arguments", ".json_schema", ".metadata", ".function_call_arguments_json")
_MAX_DEPTH: Final = 12


def joined(attributes: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The attributes by their dotted names, and whether there was anything to put together.

    An attribute that is there by its dotted name as well keeps that value.
    """
    if not any(name in _SPACES and isinstance(value, Mapping) for name, value in attributes.items()):
        return attributes, False
    out: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _SPACES and isinstance(value, Mapping):
            for path, leaf in _leaves(name, value, 0):
                out.setdefault(path, leaf)
        else:
            out[name] = value
    return out, True


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    whole = path in _WHOLE or path.endswith(_WHOLE_ENDS) or depth >= _MAX_DEPTH
    if isinstance(value, Mapping) and value and not whole:
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner, depth + 1)
    elif _of_objects(value) and not whole:
        for index, inner in enumerate(value):
            yield from _leaves(f"{path}.{index}", inner, depth + 1)
    else:
        yield path, value


def _of_objects(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and all(isinstance(item, Mapping) for item in value)

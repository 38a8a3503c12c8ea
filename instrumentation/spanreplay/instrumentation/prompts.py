"""A prompt that a registry gave: its name, version and text are in force from then on, as those of ``prompt()`` are.

The fetch itself goes over HTTP and is a step there; a replay answers it, and the prompt is the recorded one.
"""

from types import MappingProxyType
from typing import Any

from spanreplay.boundary import boundary
from spanreplay.boundary.scope import in_force
from spanreplay.content import codec
from spanreplay.content.canonical import digest
from spanreplay.instrumentation.skills import still_loaded
from spanreplay.semconv import attributes as names


def fetched(registry: str, name: object, version: object, template: object) -> None:
    """Put a prompt in force. Raises nothing.

    Args:
        registry: which one, for example ``langfuse``.
        name: of the prompt.
        version: there; a number, a commit.
        template: a text, or messages as JSON values.
    """
    scope = boundary.here()
    if scope is None or not isinstance(name, str):
        return
    try:
        text = template if isinstance(template, str) else codec.encode(template).text
        attributes: dict[str, Any] = {
            **still_loaded(),
            names.GEN_AI_PROMPT_NAME: name,
            names.PROMPT_DIGEST: digest(text),
            names.PROMPT_TEMPLATE: text,
            names.PROMPT_REGISTRY: registry,
        }
        if version is not None:
            attributes[names.GEN_AI_PROMPT_VERSION] = str(version)
        in_force.set(MappingProxyType(attributes))
    except Exception:  # noqa: BLE001 — telemetry never breaks the agent
        scope.session.failed(f"the prompt {name}")

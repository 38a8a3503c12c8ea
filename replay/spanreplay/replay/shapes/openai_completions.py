"""Bodies of the OpenAI completions API, the one before chat. Source: <https://platform.openai.com/docs/api-reference/completions>."""

from collections.abc import Mapping
from typing import Final

from spanreplay.replay.model import Json

NAME: Final = "openai-completions"

_NOT_PARAMS: Final = frozenset({"prompt", "model", "stream"})


def reads(item: Mapping[str, Json]) -> bool:
    """Never: there are no messages."""
    del item
    return False


def messages(item: Mapping[str, Json], role: str) -> list[dict[str, Json]]:
    """Nothing; see :func:`reads`."""
    del item, role
    return []


def asked(body: Mapping[str, Json]) -> Json:
    """A request has a ``prompt``, or several, and a ``model``; each is taken for what the user said."""
    prompt = body.get("prompt")
    prompts = prompt if isinstance(prompt, list) else [prompt]
    if not isinstance(body.get("model"), str) or not prompts or not all(isinstance(text, str) for text in prompts):
        return None
    return {
        "messages": [{"role": "user", "content": text} for text in prompts],
        "params": {key: value for key, value in body.items() if key not in _NOT_PARAMS and value is not None},
    }


def answered(body: Mapping[str, Json]) -> Json:
    """A response has ``choices``, each with a ``text``."""
    choices = body.get("choices")
    said = (
        [choice for choice in choices if isinstance(choice, dict) and isinstance(choice.get("text"), str)]
        if isinstance(choices, list)
        else []
    )
    if not said:
        return None
    return {"messages": [{"role": "assistant", "content": choice["text"]} for choice in said], "finish": said[0].get("finish_reason")}

"""What a fork changes of a model call: model, system prompt and parameters, in the body that is sent.

Where they stand in a body is the API's: the table below is from the references of the APIs named there.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from spanreplay.boundary.step import Rewrite
from spanreplay.replay.reexecution.policy import RESULT, PolicyError

Body: TypeAlias = dict[str, Any]

_SHOWN: Final = 60


def rewrite(changes: Mapping[str, Any], provider: str) -> Rewrite:
    """What makes of target and body of a request those that are sent.

    Args:
        changes: by key; ``model`` and ``prompt`` mean the same for every API, any other key is a place in the body, dots lead inwards.
        provider: ``spanreplay.wire.provider`` of the request.

    Raises:
        PolicyError: that API's model cannot be changed; the rewrite itself raises it where a body is no JSON object.
    """
    wanted = {key: value for key, value in changes.items() if key != RESULT}
    if provider.startswith("aws."):
        raise PolicyError("a request to Bedrock is signed as a whole, so that nothing of it can be changed on its way; change the agent")

    def made(target: str, body: bytes) -> tuple[str, bytes]:
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise PolicyError(f"wanted a JSON object as the body of a model call to {provider}, to change {', '.join(wanted)} in it")
        for key, value in wanted.items():
            if key == "model":
                target = _set_model(target, document, value)
            elif key == "prompt":
                _PROMPTS.get(provider, _first_message)(document, value)
            else:
                _set(document, [*_PARAMETERS.get(provider, ()), *key.split(".")] if "." not in key else key.split("."), value)
        return target, json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")

    return made


def _set_model(target: str, body: Body, model: str) -> str:
    path, mark, query = target.partition("?")
    before, found, last = path.partition("/deployments/")
    if found:  # Azure: /openai/deployments/NAME/chat/completions
        body.update({"model": model} if "model" in body else {})
        return f"{before}{found}{quote(model, safe='')}/{last.partition('/')[2]}{mark}{query}"
    before, found, last = path.rpartition("/models/")
    if found and "model" not in body:  # Gemini: /v1beta/models/NAME:generateContent
        return f"{before}{found}{quote(model, safe='')}:{last.rpartition(':')[2]}{mark}{query}"
    body["model"] = model
    return target


def _set(body: Body, place: list[str], value: Any) -> None:
    """Set what stands at a place; a number in it is an index of a list. Objects that lead there are made, nothing else is replaced by one.

    Raises:
        PolicyError: something else stands on the way.
    """
    inner: Any = body
    for depth, key in enumerate(place[:-1]):
        if isinstance(inner, dict):
            if inner.get(key) is None and place[depth + 1].isdecimal():
                raise PolicyError(f"{'.'.join(place)} cannot be changed: there is no {'.'.join(place[: depth + 1])}")
            if inner.get(key) is None:
                inner[key] = {}
            inner = inner[key]
        else:
            inner = inner[_index(inner, place, depth)]
    last = place[-1]
    if isinstance(inner, dict):
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value
        return
    index = _index(inner, place, len(place) - 1)
    if value is None:
        del inner[index]
    else:
        inner[index] = value


def _index(inner: Any, place: list[str], depth: int) -> int:
    """Where in a list the key at this depth leads."""
    key = place[depth]
    if isinstance(inner, list) and key.isdecimal() and int(key) < len(inner):
        return int(key)
    around = ".".join(place[:depth])
    found = f"a list of {len(inner)} items, counted from 0" if isinstance(inner, list) else json.dumps(inner, ensure_ascii=False)[:_SHOWN]
    raise PolicyError(f"{'.'.join(place)} cannot be changed: {around} is {found}, which has no {key}")


_SYSTEM: Final = frozenset({"system", "developer"})


def _first_message(body: Body, text: str) -> None:
    messages = [m for m in body.get("messages") or [] if isinstance(m, dict)]
    role = next((m["role"] for m in messages if m.get("role") in _SYSTEM), "system")
    body["messages"] = [{"role": role, "content": text}, *(m for m in messages if m.get("role") not in _SYSTEM)]


def _instructions(body: Body, text: str) -> None:
    asked = body.get("input")
    if isinstance(asked, list):
        body["input"] = [item for item in asked if not (isinstance(item, dict) and item.get("role") in _SYSTEM)]
    body["instructions"] = text


def _system(body: Body, text: str) -> None:
    body["system"] = text


def _system_instruction(body: Body, text: str) -> None:
    name = "system_instruction" if "system_instruction" in body else "systemInstruction"
    body[name] = {"parts": [{"text": text}]}


def _ollama(body: Body, text: str) -> None:
    (_first_message if "messages" in body else _system)(body, text)


_PROMPTS: Final[Mapping[str, Callable[[Body, str], None]]] = {
    "openai.responses": _instructions,
    "anthropic.messages": _system,
    "gemini": _system_instruction,
    "ollama": _ollama,
}
"""Where the system prompt stands; for every other API it is the first message."""

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {"gemini": ("generationConfig",), "ollama": ("options",)}
"""Where an API keeps temperature and the like."""

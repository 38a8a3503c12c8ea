"""An agent that asks a model once: what is asked is its input."""

from typing import Any

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import prompt
from spanreplay.instrumentation.providers import openai_chat

REQUEST: dict[str, Any] = {
    "model": "m1",
    "temperature": 0,
    "messages": [{"role": "system", "content": "Be careful."}, {"role": "user", "content": "Hello"}],
    "tools": [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    ],
}


def ask(request: dict[str, Any]) -> None:
    """Ask, with a prompt that has a name and a version; the model answers nothing."""
    scope = boundary.here()
    assert scope is not None
    prompt("greeter", "3", template="t")
    call = Call(
        kind="model_call",
        name=str(request["model"]),
        input=codec.encode({"body": request}),
        attributes=openai_chat.PROVIDER.request(request).attributes,
    )
    boundary.call(scope, call, lambda: None)

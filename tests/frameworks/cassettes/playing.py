"""What the agents here share: the scene they are to play (``support/cassette_scene.py``), its tools, and the lines they print."""

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolbox import ran

SCENE: dict[str, Any] = json.loads(Path(os.environ["SCENE"]).read_text(encoding="utf-8"))
TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_left = [dict(each) for each in SCENE["results"]]


def use(name: str, arguments: dict[str, Any]) -> Any:
    """The body of every tool: gives what the recorded one gave for these arguments, or a text of its own."""
    ran(name)
    found = [each for each in _left if (each["name"], each["arguments"]) == (name, arguments)]
    if not found:
        return f"result of {name}"
    if len(found) > 1:
        _left.remove(found[0])
    return found[0]["result"]


def function(tool: dict[str, Any], body: Callable[[str, dict[str, Any]], Any] = use) -> Callable[..., Any]:
    """A function as a user writes one, for frameworks that make a tool of its signature."""
    needed = tool["parameters"].get("required", ())
    properties = sorted(tool["parameters"].get("properties", {}).items(), key=lambda each: each[0] not in needed)
    types = {name: TYPES.get(str(schema.get("type")), str) for name, schema in properties}

    def called(**arguments: Any) -> Any:
        return body(tool["name"], arguments)

    called.__name__ = called.__qualname__ = tool["name"]
    called.__doc__ = tool["description"] or "A tool."
    called.__annotations__ = {**types, "return": Any}
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = [
        inspect.Parameter(name, keyword, annotation=of, default=inspect.Parameter.empty if name in needed else None)
        for name, of in types.items()
    ]
    called.__signature__ = inspect.Signature(given, return_annotation=Any)  # type: ignore[attr-defined]
    return called


def say(output: object) -> None:
    """Print what came of a turn, on a line of its own, whatever the framework has printed before."""
    print("\n" + json.dumps({"mode": "turn", "output": output}), flush=True)


def say_error(error: Exception) -> None:
    """Print the exception that ended a turn."""
    say(f"{type(error).__name__}: {error}")

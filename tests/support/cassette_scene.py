"""What an agent was to do when a recording was made: its questions, the tools it had, and what they gave.

Read out of the recorded requests alone, since each repeats what was said before it. The forms are those of the four APIs: Chat Completions,
Responses, Messages and generateContent.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from support.cassette_server import Recorded

Scene = dict[str, Any]
"""JSON for an agent's program:

- ``streamed``: whether responses were streamed.
- ``turns``: what a person asked, in order: ``api``, ``model``, ``max_tokens``, ``question``, ``goes_on`` (it has seen the turns before),
  and ``phases``: ``instructions`` and ``tools`` (``name``, ``description``, ``parameters``, ``deferred``), again whenever they changed.
- ``results``: what tools gave: ``name``, ``arguments``, ``result``.
"""


def scene(given: Sequence[Recorded]) -> Scene:
    """The scene of a recording."""
    turns: list[dict[str, Any]] = []
    results: dict[Any, dict[str, Any]] = {}
    for recorded in given:
        api, body = api_of(recorded), recorded.request
        items = list(_items(api, body))
        if not turns or _is_asked(items):
            asked = next((item["text"] for item in reversed(items) if item["kind"] == "question"), "")
            goes_on = any(item["kind"] != "question" for item in items)
            turn = {"api": api, "model": _model(recorded), "max_tokens": body.get("max_tokens"), "question": asked}
            turns.append({**turn, "goes_on": goes_on, "phases": []})
        phase = {"instructions": _instructions(api, body), "tools": _tools(body)}
        if phase not in turns[-1]["phases"]:
            turns[-1]["phases"].append(phase)
        begun = sum(not turn["goes_on"] for turn in turns)
        for place, result in enumerate(_results(items)):
            results.setdefault(result.pop("id") or (begun, place), result)
    return {"streamed": _is_streamed(given[0]), "turns": turns, "results": list(results.values())}


def _is_asked(items: list[dict[str, Any]]) -> bool:
    """Whether a person has spoken last; what follows the result of a tool at once is said by the framework."""
    kinds = [item["kind"] for item in items]
    return kinds[-1:] in ([], ["question"]) and kinds[-2:-1] != ["result"]


def api_of(recorded: Recorded) -> str:
    """Which of the four APIs a request is to."""
    ends = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
    return next((api for end, api in ends.items() if recorded.path.endswith(end)), "gemini")


def _is_streamed(recorded: Recorded) -> bool:
    return bool(recorded.request.get("stream")) or recorded.path.endswith(":streamGenerateContent")


def _model(recorded: Recorded) -> str:
    named: str = recorded.request.get("model") or recorded.path.rpartition("/")[2].partition(":")[0]
    return named


# ---- what was said ----------------------------------------------------------------------------------------------


def _instructions(api: str, body: dict[str, Any]) -> str:
    if api == "gemini":
        return _text(body.get("systemInstruction", {}).get("parts"))
    said = body.get("system") or body.get("instructions")
    if said:
        return _text(said)
    messages = [each for each in _listed(body.get("messages") or body.get("input")) if each.get("role") in ("system", "developer")]
    return "\n\n".join(_text(each["content"]) for each in messages)


def _items(api: str, body: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Questions, calls, results and answers, in order; system messages are left out."""
    for message in _listed(body.get("contents") or body.get("messages") or body.get("input")):
        role, content = message.get("role"), message.get("content") or message.get("parts")
        parts = content if isinstance(content, list) else []
        if message.get("type") == "function_call":
            yield _call(message["call_id"], message["name"], message["arguments"])
        elif message.get("type") == "function_call_output":
            yield {"kind": "result", "id": message["call_id"], "result": message["output"]}
        elif role == "tool":
            yield {"kind": "result", "id": message["tool_call_id"], "result": content}
        elif api in ("messages", "gemini") and any({"tool_use", "tool_result"} & {part.get("type")} or _used(part) for part in parts):
            yield from (item for part in parts for item in _of_part(part))
        elif role == "user":
            yield {"kind": "question", "text": _text(content)}
        elif role not in ("system", "developer"):
            yield {"kind": "answer"}
            yield from (_call(e["id"], e["function"]["name"], e["function"]["arguments"]) for e in message.get("tool_calls") or ())


def _used(part: dict[str, Any]) -> bool:
    return "functionCall" in part or "functionResponse" in part


def _of_part(part: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if part.get("type") == "tool_use":
        yield _call(part["id"], part["name"], part["input"])
    elif part.get("type") == "tool_result":
        yield {"kind": "result", "id": part["tool_use_id"], "result": part.get("content")}
    elif "functionCall" in part:
        yield _call(part["functionCall"].get("id"), part["functionCall"]["name"], part["functionCall"].get("args", {}))
    elif "functionResponse" in part:
        said = part["functionResponse"]
        yield {"kind": "result", "id": said.get("id"), "name": said["name"], "result": said["response"]}


def _call(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    return {"kind": "call", "id": call_id, "name": name, "arguments": given}


def _results(items: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Every result with the call it answers: of the same id, or, where there are none, the first of that name without a result."""
    calls = [item for item in items if item["kind"] == "call"]
    for item in items:
        if item["kind"] == "result":
            asked = [call for call in calls if (call["id"] == item["id"] if item["id"] else call["name"] == item["name"])]
            if asked:
                calls.remove(asked[0])
                yield {"id": item["id"], "name": asked[0]["name"], "arguments": asked[0]["arguments"], "result": _result(item["result"])}


def _result(given: Any) -> Any:
    """The text of a result, or what it is beside text."""
    if isinstance(given, dict):
        return next(iter(given.values())) if set(given) <= {"return_value", "result"} and given else given
    texts = [part.get("text") for part in given] if isinstance(given, list) else []
    return "".join(texts) if texts and None not in texts else given


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _listed(given: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())


# ---- what there was to use --------------------------------------------------------------------------------------


def _tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for one in body.get("tools") or () if not isinstance(body.get("tools"), dict) else [body["tools"]]:
        for told in one.get("functionDeclarations") or one.get("function_declarations") or [one.get("function", one)]:
            if "name" in told:
                parameters = told.get("parameters") or told.get("parametersJsonSchema") or told.get("input_schema") or {"type": "object"}
                found.append(
                    {
                        "name": told["name"],
                        "description": told.get("description") or "",
                        "parameters": _lower(parameters),
                        "deferred": bool(told.get("defer_loading")),
                    }
                )
    return found


def _lower(schema: Any) -> Any:
    """A schema whose types are in lower case, as JSON Schema has them; Gemini's are not."""
    if isinstance(schema, list):
        return [_lower(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: value.lower() if key == "type" and isinstance(value, str) else _lower(value) for key, value in schema.items()}

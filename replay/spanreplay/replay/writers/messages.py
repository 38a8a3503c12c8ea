"""A run as chat messages, in the form that chat completion APIs, evaluations and fine-tuning take: one conversation a line.

Each line: ``{"run_id", "agent", "steps", "messages": [{"role", "content", "tool_calls"?, "tool_call_id"?}], "tools", "unanswered",
"behaviour"}``. Every result stands right behind the call that asked for it; ``unanswered`` lists the calls that have none; ``behaviour`` is
equal for runs that did the same.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spanreplay.replay.model import Json, Run
from spanreplay.replay.rebuilding.behaviour import behaviour_hash
from spanreplay.replay.rebuilding.transcript import Conversation, conversations
from spanreplay.replay.showing import safe_json
from spanreplay.spans.record import Record

NAME: Final = "messages"
BINARY: Final = False
LOGS: Final = True
"""What they hold is in the messages."""


def write(records: Sequence[Record], runs: Sequence[Run]) -> bytes:
    """UTF-8 JSON lines, one a conversation, in order of the runs."""
    del records
    lines = [_line(run, talk, behaviour) for run in runs for behaviour in [behaviour_hash(run)] for talk in conversations(run)]
    return "".join(safe_json(json.dumps(line, ensure_ascii=False)) + "\n" for line in lines).encode()


def _line(run: Run, talk: Conversation, behaviour: str) -> dict[str, Json]:
    return {
        "run_id": run.run_id,
        "agent": talk.agent,
        "steps": talk.steps,
        "messages": list(_adjacent([chat for message in talk.messages for chat in _chat(message)])),
        "tools": talk.tools,
        "unanswered": talk.unanswered,
        "behaviour": behaviour,
    }


def _chat(message: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """One message of the parts shape as chat messages: each tool result is one of its own."""
    said: list[Json] = []
    calls: list[Json] = []
    thoughts: list[str] = []
    for part in message["parts"]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call":
            arguments = part.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments, ensure_ascii=False)
            calls.append({"id": part.get("id"), "type": "function", "function": {"name": part.get("name"), "arguments": text}})
        elif kind == "tool_call_response":
            response = part.get("response")
            text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": text}
        elif kind == "reasoning" and isinstance(part.get("content"), str):
            thoughts.append(part["content"])
        elif kind == "text":
            said.append({"type": "text", "text": part.get("content")})
        else:
            said.append(_medium(part) if isinstance(part, dict) else part)
    if not said and not calls and not thoughts:
        return
    only_text = all(isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str) for item in said)
    content: Json = "\n".join(item["text"] for item in said) if only_text else said
    chat: dict[str, Json] = {"role": message.get("role"), "content": content if said else None}
    if thoughts:
        chat["reasoning_content"] = "\n".join(thoughts)
    if calls:
        chat["tool_calls"] = calls
    yield chat


def _medium(part: dict[str, Any]) -> dict[str, Any]:
    """An image or a sound as chat messages hold it; any other part as it is."""
    kind, modality, data = part.get("type"), part.get("modality"), part.get("content")
    mime_type = part.get("mime_type") or f"{modality}/*"
    if kind == "blob" and modality == "audio" and isinstance(data, str):
        return {"type": "input_audio", "input_audio": {"data": data, "format": str(mime_type).partition("/")[2]}}
    held = part.get("uri") if kind == "uri" else f"data:{mime_type};base64,{data}" if kind == "blob" and isinstance(data, str) else None
    if modality != "image" or held is None:
        return part
    detail = part.get("detail")
    return {"type": "image_url", "image_url": {"url": held, **({} if detail is None else {"detail": detail})}}


def _adjacent(chat: Sequence[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """Each result right behind the message that asked for it, in the order in which it asked; other results where they were."""
    moved: set[int] = set()
    for place, message in enumerate(chat):
        if place in moved:
            continue
        yield message
        wanted = [call["id"] for call in message.get("tool_calls", ()) if call["id"] is not None]
        for call_id in wanted:
            for later in range(place + 1, len(chat)):
                if call_id in [call["id"] for call in chat[later].get("tool_calls", ())]:
                    break  # the id is used again: what follows answers the later call
                if later not in moved and chat[later].get("tool_call_id") == call_id:
                    moved.add(later)
                    yield chat[later]
                    break

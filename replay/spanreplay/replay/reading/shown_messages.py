"""Messages in the text that Python shows of the objects that they are, which instrumentations write where nothing turns them into JSON."""

from typing import Final

from spanreplay.replay.model import Json
from spanreplay.replay.reading.python_text import python_members

_BEGINS: Final = 100
"""Characters among which an object's text names a role, if it is a message."""
_OF_LANGCHAIN: Final = ("content='", 'content="', "content=[")
_MEMBERS: Final = ("role", "content", "tool_calls", "tool_call_id", "name")


def shown_message(text: str) -> dict[str, Json]:
    """The message that Python shows as this text (``role='assistant' content=''``, ``ModelResponse(…)`` of Agno); empty of any other."""
    members = python_members(text) if "role='" in text[:_BEGINS] else {}
    message = {name: members[name] for name in _MEMBERS if members.get(name) is not None}
    return message if {"role", "content"} <= members.keys() and isinstance(members["role"], str) else {}


def shown_of_langchain(text: str) -> dict[str, Json]:
    """The message of LangChain that ``str`` shows as this text (``content='' additional_kwargs={} … id='run-1'``), empty of any other.

    The text has no type. What names the call of a tool is its result; what has tool calls, tokens, or something of a response is an
    answer; of what else has an id a user's message is taken, since only those are kept among answers with one.
    """
    if not text.startswith(_OF_LANGCHAIN):
        return {}
    members = python_members(text)
    if "content" not in members:
        return {}
    if isinstance(members.get("tool_call_id"), str):
        return {**members, "type": "tool"}
    if not members.keys() >= {"additional_kwargs", "response_metadata"}:
        return {}
    if members["additional_kwargs"] or members["response_metadata"] or members.get("tool_calls") or members.get("usage_metadata"):
        return {**members, "type": "ai"}
    return {**members, "type": "human"} if isinstance(members.get("id"), str) else {}


def shown_messages(request: Json) -> list[dict[str, Json]]:
    """The messages of a call of a function, each as Python shows it; none where one of them is not."""
    given = request.get("messages") if isinstance(request, dict) else None
    shown = [shown_message(one) for one in given if isinstance(one, str)] if isinstance(given, list) else []
    return shown if isinstance(given, list) and len(shown) == len(given) and all(shown) else []

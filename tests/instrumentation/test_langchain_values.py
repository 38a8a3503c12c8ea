"""What LangChain passes around, as the record keeps it: nothing in it differs between two equal executions."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.instrumentation.langchain_values import Sent, packed, shown, unpacked


def of(module: str, name: str, **members: Any) -> Any:
    return type(name, (), {"__module__": module, "__qualname__": name})


Interrupt, Message = of("langgraph.types", "Interrupt"), of("langchain_core.messages.base", "BaseMessage")
ToolMessage = type("ToolMessage", (Message,), {"__module__": "langchain_core.messages.tool", "__qualname__": "ToolMessage"})
Send = type("Send", (), {"__module__": "langgraph.types", "__qualname__": "Send"})


@dataclass(frozen=True)
class Command:
    update: Any = None
    resume: Any = None
    goto: Any = field(default=())


Command.__module__, Command.__qualname__ = "langgraph.types", "Command"


def made(cls: Any, **members: Any) -> Any:
    value = cls()
    vars(value).update(members)
    return value


def tool_message(**members: Any) -> Any:
    return made(ToolMessage, **{"type": "tool", "name": "search", "content": "found", "status": "success", "tool_call_id": "c1", **members})


def test_messages_are_short_and_have_no_ids() -> None:
    calls = [{"name": "search", "args": {"q": 1}, "id": "c1", "type": "tool_call"}]
    message = made(Message, type="ai", content="", id="lc_run--1", tool_calls=calls, additional_kwargs={"refusal": None})
    assert shown({"messages": (message,)}) == {
        "messages": [{"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {"q": 1}}]}]
    }
    assert shown(tool_message(status="error", id="x")) == {"type": "tool", "name": "search", "content": "found", "status": "error"}


def test_interrupts_and_their_answers_do_not_tell_which_task_was_first() -> None:
    one, other = made(Interrupt, value={"q": "a"}, id="1"), made(Interrupt, value={"q": "b"}, id="2")
    assert shown({"__interrupt__": [other, one]}) == shown({"__interrupt__": [one, other]})
    assert shown(Command(resume={"f" * 32: 2, "e" * 32: 1})) == {"resume": [1, 2]}
    assert shown(Command(resume={"approved": True})) == {"resume": {"approved": True}}


def test_the_times_of_files_are_left_out() -> None:
    assert shown({"/a": {"content": "x", "created_at": "1", "modified_at": "2"}}) == {"/a": {"content": "x"}}


@pytest.mark.parametrize(
    ("message", "kept"),
    [(tool_message(), "found"), (tool_message(artifact=None, id=None, additional_kwargs={}), "found")],
)
def test_a_message_that_is_a_text_is_kept_as_one(message: Any, kept: str) -> None:
    assert packed(message, "search") == kept


@pytest.mark.parametrize("members", [{"status": "error"}, {"artifact": 1}, {"name": "other"}, {"content": ["x"]}, {"id": "m"}])
def test_a_message_that_says_more_is_kept_whole(members: dict[str, Any]) -> None:
    message = tool_message(**members)
    assert packed(message, "search") is message


def test_a_text_becomes_the_message_that_a_model_is_given() -> None:
    modules = {
        "langchain_core.messages.tool": SimpleNamespace(ToolMessage=lambda content, **told: (content, told["tool_call_id"], told["name"]))
    }
    assert unpacked("found", "search", "c9", modules) == ("found", "c9", "search")
    assert unpacked({"type": "tool", "content": "of others"}, "search", "c9", modules) == ("of others", "c9", "search")
    assert unpacked({"a": 1}, "search", "c9", modules)[0] == '{"a": 1}'
    assert unpacked({"a": 1}, "search", None, modules) == {"a": 1}, "a bare tool gives what it gives"


def test_commands_that_jump_can_be_restored() -> None:
    command = Command(goto=[made(Send, node="n", arg={"a": 1}), "other"])
    kept = packed(command, "jump")
    assert kept.goto == [Sent("n", {"a": 1}), "other"]
    modules = {"langgraph.types": SimpleNamespace(Send=lambda node, arg: (node, arg))}
    assert unpacked(kept, "jump", "c1", modules).goto == [("n", {"a": 1}), "other"]
    alone = packed(Command(goto=made(Send, node="n", arg=1)), "jump")
    assert unpacked([alone], "jump", "c1", modules)[0].goto == ("n", 1)

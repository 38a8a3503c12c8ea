"""A run as conversations, and as chat messages."""

import json
from typing import Any

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.transcript import conversations
from spanreplay.replay.writers import messages
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

USER = {"role": "user", "parts": [{"type": "text", "content": "weather?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"city": "Oslo"}}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]}
DONE = {"role": "assistant", "parts": [{"type": "text", "content": "Rain."}]}


def asking(number: int, said: list[Any], answer: list[Any] | None, start: int, name: str | None = None) -> SpanRecord:
    attributes: dict[str, Any] = {a.GEN_AI_INPUT_MESSAGES: json.dumps(said)}
    if answer is not None:
        attributes[a.GEN_AI_OUTPUT_MESSAGES] = json.dumps(answer)
    if name is not None:
        attributes[a.GEN_AI_AGENT_NAME] = name
    return chat(number, 1, content=False, start=start, attributes=attributes)


def looked(number: int, start: int, call_id: str = "c1", result: str | None = '"rain"') -> SpanRecord:
    return tool(number, 1, start=start, name="look", call=call_id, args='{"city": "Oslo"}', result=result)


def run_of(*spans: SpanRecord) -> Run:
    (run,) = build_runs([agent(1, start=0, end=1000), *spans])
    return run


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in messages.write((), [run]).decode().splitlines()]


def test_calls_that_go_on_make_one_conversation() -> None:
    (talk,) = conversations(run_of(asking(2, [USER], [CALL], 10), looked(3, 30), asking(4, [USER, CALL, RESULT], [DONE], 50)))
    assert [(m["role"], m["parts"][0]["type"]) for m in talk.messages] == [
        ("user", "text"), ("assistant", "tool_call"), ("tool", "tool_call_response"), ("assistant", "text"),
    ]  # fmt: skip
    assert (talk.steps, talk.unanswered) == ([1, 3], [])


def test_a_history_that_leaves_the_answer_out_still_goes_on() -> None:
    (talk,) = conversations(run_of(asking(2, [USER], [CALL], 10), looked(3, 30), asking(4, [USER, RESULT], [DONE], 50)))
    assert [m["role"] for m in talk.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_call_that_does_not_go_on_and_another_agent_begin_anew() -> None:
    other = {"role": "user", "parts": [{"type": "text", "content": "a poem"}]}
    found = conversations(run_of(asking(2, [USER], [DONE], 10), asking(3, [other], [DONE], 30), asking(4, [USER], [DONE], 50, name="poet")))
    assert [(len(talk.messages), talk.steps) for talk in found] == [(2, [1]), (2, [2]), (2, [3])]
    assert found[2].agent == "poet"


def test_a_run_that_was_cut_after_a_call_lists_it_and_makes_nothing_up() -> None:
    (talk,) = conversations(run_of(asking(2, [USER], [CALL], 10)))
    assert (talk.unanswered, len(talk.messages)) == (["c1"], 2)
    (talk,) = conversations(run_of(asking(2, [USER], [CALL], 10), looked(3, 30)))
    assert (talk.unanswered, talk.messages[-1]["parts"][0]["response"]) == ([], "rain")
    (line,) = lines(run_of(asking(2, [USER], [CALL], 10)))
    assert line["unanswered"] == ["c1"]


def test_chat_messages_keep_each_result_behind_its_call() -> None:
    two = {"role": "assistant", "parts": [{"type": "tool_call", "id": i, "name": "look", "arguments": {"n": i}} for i in ("a", "b")]}
    results = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": i, "response": {"is": i}}]} for i in ("b", "a")]
    (line,) = lines(run_of(asking(2, [USER, two, DONE, *results], [DONE], 10)))
    assert [(m["role"], m.get("tool_call_id")) for m in line["messages"]] == [
        ("user", None), ("assistant", None), ("tool", "a"), ("tool", "b"), ("assistant", None), ("assistant", None),
    ]  # fmt: skip
    assert line["messages"][1]["tool_calls"][0] == {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n": "a"}'}}
    assert line["messages"][2]["content"] == '{"is": "a"}'


def test_an_id_that_is_used_again_answers_the_later_call() -> None:
    (line,) = lines(run_of(asking(2, [USER, CALL, CALL, RESULT], [DONE], 10)))
    assert [m["role"] for m in line["messages"]] == ["user", "assistant", "assistant", "tool", "assistant"]

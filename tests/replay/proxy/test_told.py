"""Tool calls that a proxy knows from what the model is told."""

import json
from typing import Any

from spanreplay.boundary.boundary import here
from spanreplay.instrumentation import agent_run
from spanreplay.instrumentation.provider import by_name
from spanreplay.replay.proxy.told import Told
from spanreplay.semconv import attributes as names
from support.taped import Tape, recorded, replayed

CALLS = [{"id": f"call_{n}", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}} for n in (1, 2)]
ASKED: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": CALLS}]
ANSWERED = [
    *ASKED,
    {"role": "tool", "tool_call_id": "call_2", "content": "cold"},
    {"role": "tool", "tool_call_id": "call_1", "content": "icy"},
]


def tells(*requests: Any, path: str = "/v1/chat/completions") -> None:
    told = Told()
    with agent_run("proxied"):
        scope = here()
        assert scope is not None
        for request in requests:
            body = json.dumps(request).encode()
            told.steps(scope, "POST", path, {"content-type": "application/json"}, body)


def chat(*messages: Any) -> Any:
    return {"model": "m", "messages": list(messages)}


def seen(tape: Tape) -> list[tuple[Any, ...]]:
    return [
        (s[names.STEP_NAME], s[names.GEN_AI_TOOL_CALL_ID], json.loads(s[names.GEN_AI_TOOL_CALL_RESULT]))
        for s in tape.steps
        if s[names.STEP_KIND] == "tool_call"
    ]


def test_each_answer_is_one_step_however_often_it_is_told() -> None:
    more = [*ANSWERED, {"role": "assistant", "content": "Icy."}, {"role": "user", "content": "Again"}]
    tape = recorded(tells, chat(*ASKED[:1]), chat(*ANSWERED), chat(*ANSWERED), chat(*more))
    assert seen(tape) == [("weather", "call_2", "cold"), ("weather", "call_1", "icy")]
    (run,) = tape.runs()
    assert [(step.grade, [reason.code for reason in step.reasons]) for step in run.steps] == [("structure", ["attested"])] * 2
    assert run.grade == "structure"


def test_another_conversation_with_the_same_ids_is_another_call() -> None:
    other = [{"role": "user", "content": "Ho"}, *ANSWERED[1:]]
    assert len(seen(recorded(tells, chat(*ANSWERED), chat(*other)))) == 4


def test_calls_without_ids_are_answered_by_name_and_in_order() -> None:
    call = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}
    answer = {"functionResponse": {"name": "weather", "response": {"result": "cold"}}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [call, call]},
        {"role": "user", "parts": [answer] * 2},
    ]
    tape = recorded(lambda: tells({"contents": contents}, path="/v1beta/models/m:generateContent"))
    steps = [s for s in tape.steps if s[names.STEP_KIND] == "tool_call"]
    assert [json.loads(s[names.GEN_AI_TOOL_CALL_ARGUMENTS]) for s in steps] == [{"city": "Oslo"}] * 2


def test_told_again_in_a_replay() -> None:
    tape = recorded(tells, chat(*ANSWERED))
    assert replayed(tape, tells, chat(*ANSWERED)).equal
    asks_else = json.loads(json.dumps(ANSWERED).replace("Oslo", "Lima"))
    (difference,) = [d for d in replayed(tape, tells, chat(*asks_else)).differences if d.kind == "input"]
    assert (difference.name, difference.field) == ("tool_call weather", "arguments.city")


def test_what_tells_nothing() -> None:
    stray = chat({"role": "tool", "tool_call_id": "call_9", "content": "?"})
    assert seen(recorded(tells, stray, {"model": "m"}, [], "x", chat(*ASKED), chat({"role": "tool"}, 7, None))) == []
    assert seen(recorded(lambda: tells(chat(*ANSWERED), path="/v1/files"))) == []
    assert by_name("openai.chat") is not None

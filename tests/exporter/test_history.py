"""What went into model calls is kept once for a conversation, and the views give it back for every call."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from spanreplay.store.rows import RunRow, StepRow
from spanreplay.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def call(seq: int, messages: list[dict[str, Any]], answer: str = "yes", **more: Any) -> StepRow:
    output = {"messages": [message("assistant", answer)], "finish": "stop"}
    return StepRow(
        run_id="r",
        seq=seq,
        kind="model_call",
        name="gpt",
        trace_id=TRACE,
        span_id=f"{seq:016x}",
        input=json.dumps({"messages": messages, "params": {"t": 0.5}, **more}),
        output=json.dumps(output),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def put(store: Store, steps: list[StepRow]) -> None:
    store.put_runs([TRACE], [RunRow(run_id="r", trace_ids=(TRACE,))], steps)


def given_back(store: Store, side: str = "input") -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for seq, said in store.query(f"SELECT seq, message::VARCHAR FROM messages WHERE side = '{side}' ORDER BY seq, n").rows:
        found.setdefault(int(str(seq)), []).append(json.loads(str(said)))
    return found


def history(turns: int) -> list[dict[str, Any]]:
    return [
        message(("user", "assistant")[n % 2], f'{n} "said" \\ é \ud83d\ude00'.encode("utf-16", "surrogatepass").decode("utf-16") * (n % 40))
        for n in range(turns)
    ]


def test_a_conversation_is_kept_once_and_every_call_has_all_of_it(store: Store) -> None:
    steps = [call(seq, history(2 * seq + 1), f"answer {seq}" * 50) for seq in range(1, 30)]
    put(store, steps)
    assert given_back(store) == {step.seq: json.loads(step.input or "")["messages"] for step in steps}
    assert given_back(store, "output") == {step.seq: json.loads(step.output or "")["messages"] for step in steps}
    assert list(store.query("SELECT part, count(*) FROM history GROUP BY part ORDER BY part").rows) == [("message", 59), ("output", 29)]
    assert set(store.query("SELECT input, output FROM steps").rows) == {('{"params": {"t": 0.5}}', '{"finish": "stop"}')}
    told = list(store.query("SELECT n, first_seq, last_seq FROM conversations ORDER BY n").rows)
    assert told == [(n, max(1, (n + 1) // 2), 29) for n in range(59)]


def test_two_agents_that_take_turns_are_two_threads(store: Store) -> None:
    mine, yours = [message("system", "you are one")], [message("system", "you are one"), message("user", "other")]
    steps = []
    for seq in range(1, 20):
        talk = mine if seq % 2 else yours
        talk.append(message("user", f"{seq}"))
        steps.append(call(seq, list(talk)))
    put(store, steps)
    assert given_back(store) == {step.seq: json.loads(step.input or "")["messages"] for step in steps}
    ((rows, threads),) = store.query("SELECT count(*), count(DISTINCT thread) FROM history WHERE part = 'message'").rows
    assert (rows, threads) == (len(mine) + len(yours), 2)


def test_a_history_that_is_cut_summed_up_or_changed_is_given_back(store: Store) -> None:
    chance = random.Random(4)
    talk: list[dict[str, Any]] = [message("system", "s")]
    steps = []
    for seq in range(1, 60):
        talk = [*talk, message("user", f"{chance.random()}" * 20)]
        if chance.random() < 0.2:
            talk = [talk[0], message("user", "summary"), *talk[-2:]]
        elif chance.random() < 0.2:
            talk = [*talk[:-1], message("user", "changed")]
        tools = [{"name": "a", "parameters": {"v": seq // 20}}, {"function": {"name": "b"}}][: 1 + seq % 2]
        steps.append(call(seq, talk, tools=tools, system=[{"type": "text", "content": "x"}] if seq > 30 else []))
    put(store, steps)
    assert given_back(store) == {step.seq: json.loads(step.input or "")["messages"] for step in steps}
    offered = "SELECT seq, list(schema::VARCHAR ORDER BY tool) FROM steps JOIN tools_offered AS t ON t.thread = steps.thread"
    found = dict(store.query(f"{offered} AND seq BETWEEN first_seq AND last_seq GROUP BY seq").rows)
    assert {seq: [json.loads(text) for text in list(texts)] for seq, texts in found.items()} == {
        step.seq: json.loads(step.input or "")["tools"] for step in steps
    }
    names = store.query("SELECT DISTINCT tool FROM tools_offered ORDER BY tool").rows
    assert list(names) == [("a",), ("b",)]
    assert list(store.query("SELECT count(DISTINCT digest) FROM tools_offered WHERE tool = 'a'").rows) == [(3,)]


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[1]",
        '{"messages": "x"}',
        '{"messages": []}',
        '{"messages": [1',
        "{}",
        '{"messages": [1, 2]} x',
        '{"a": {"messages": [1]}}',
    ],
)
def test_an_input_without_messages_stays_as_it_is(store: Store, text: str) -> None:
    odd = call(1, [])
    put(store, [StepRow(run_id="r", seq=1, kind="model_call", name="gpt", trace_id=TRACE, span_id="1" * 16, input=text, output=odd.output)])
    assert list(store.query("SELECT input, output FROM steps").rows) == [(text, odd.output)]
    assert given_back(store, "output") == {1: [message("assistant", "yes")]}


def test_messages_of_any_json_are_given_back(store: Store) -> None:
    odd: list[Any] = [1, "x" * 400, None, {"role": 3}, [], {"role": "user", "parts": {}}, {"role": "a\\u0000", "é": ["y" * 300, "z" * 300]}]
    longer: list[Any] = [*odd, 12]
    longest: list[Any] = [*odd, 123]
    put(store, [call(1, odd), call(2, longer), call(3, longest)])
    assert given_back(store) == {1: odd, 2: longer, 3: longest}


def test_deriving_again_replaces_the_history(store: Store) -> None:
    put(store, [call(1, history(9))])
    put(store, [call(1, history(3))])
    assert given_back(store) == {1: history(3)}

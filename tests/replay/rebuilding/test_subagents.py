"""Sub-agents whose spans are not where they ran."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from fixtures.runs.spans import agent, asking, chat, own, own_root, said, sid, span, tool
from spanreplay.replay.model import Run, Step
from spanreplay.replay.rebuilding.histories import History, histories
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record, SpanRecord

END = 1000


def one(records: Sequence[Record]) -> Run:
    (run,) = build_runs(records)
    return run


def inside(run: Run, number: int) -> str | None:
    """The span of the step that a span's step is inside."""
    step = step_of(run, number)
    return None if step.parent_seq is None else run.steps[step.parent_seq - 1].span_id


def step_of(run: Run, number: int) -> Step:
    return next(step for step in run.steps if step.span_id == sid(number))


def told(run: Run, number: int) -> list[str]:
    return [reason.detail for reason in step_of(run, number).reasons if reason.code == "beside-tool"]


def lead(*inner: SpanRecord) -> list[SpanRecord]:
    """A workflow with a lead agent; the rest hangs under one of them."""
    return [span(1, end=END), agent(2, 1, name="lead", start=1, end=END - 1), *inner]


def test_a_sub_agent_beside_the_tool_that_ran_it_is_inside_it() -> None:
    records = lead(
        tool(3, 2, name="ask_math_specialist", start=10, end=200),
        agent(4, 1, name="math_specialist", start=20, end=190),
        chat(5, 4, start=30, end=60),
        tool(6, 4, name="multiply", start=70, end=80),
    )
    run = one(records)
    assert [(step.span_id, inside(run, int(step.span_id, 16))) for step in run.steps] == [
        (sid(3), None),
        (sid(4), sid(3)),
        (sid(5), sid(4)),
        (sid(6), sid(4)),
    ]
    assert "inside the tool call ask_math_specialist" in told(run, 4)[0]
    assert step_of(run, 5).agent == "math_specialist"


def test_where_the_tree_says_where_it_ran_nothing_is_changed_however_long_it_lasts() -> None:
    records = lead(
        tool(3, 2, name="delegate", start=10, end=100),
        agent(4, 3, name="worker", start=20, end=END + 500),
        tool(5, 4, name="bash", start=300, end=310),
        tool(6, 2, name="worker", start=290, end=400),
    )
    run = one(records)
    assert inside(run, 4) == sid(3)
    assert inside(run, 5) == sid(4)
    assert not told(run, 4)


def test_a_sub_agent_is_known_by_an_argument_or_by_what_it_was_asked() -> None:
    named = lead(
        tool(3, 2, name="task", args='{"subagent_type": "Researcher"}', start=10, end=200),
        agent(4, 1, name="researcher", start=20, end=190),
    )
    assert inside(one(named), 4) == sid(3)
    asked = lead(
        tool(3, 2, name="lookup", args='{"query": "the price of tea"}', start=10, end=200),
        agent(4, 1, name="clerk", start=20, end=190),
        chat(5, 4, start=30, attributes={a.GEN_AI_INPUT_MESSAGES: said("the price of tea")}),
    )
    assert inside(one(asked), 4) == sid(3)
    unknown = lead(
        tool(3, 2, name="lookup", args='{"query": "the price of tea"}', start=10, end=200), agent(4, 1, name="clerk", start=20, end=190)
    )
    run = one(unknown)
    assert inside(run, 4) is None
    assert "nothing says that it ran inside" in told(run, 4)[0]


def test_parallel_calls_of_one_tool_are_told_apart_by_what_they_asked_or_not_at_all() -> None:
    def both(first: str, second: str) -> Run:
        return one(
            lead(
                tool(3, 2, name="ask_clerk", args=f'{{"q": "{first}"}}', start=10, end=200),
                tool(4, 2, name="ask_clerk", args=f'{{"q": "{second}"}}', start=11, end=201),
                agent(5, 1, name="clerk", start=20, end=190, attributes={a.GEN_AI_INPUT_MESSAGES: said("tea")}),
                agent(6, 1, name="clerk", start=21, end=191, attributes={a.GEN_AI_INPUT_MESSAGES: said("milk")}),
            )
        )

    run = both("milk", "tea")
    assert (inside(run, 5), inside(run, 6)) == (sid(4), sid(3))
    unclear = both("a", "b")
    assert (inside(unclear, 5), inside(unclear, 6)) == (None, None)
    assert "each of them may have run it" in told(unclear, 5)[0]


def test_an_agent_without_a_name_is_in_the_only_call_that_may_have_run_it() -> None:
    def nameless(number: int, **more: Any) -> SpanRecord:
        return span(number, 1, name="invoke_agent", attributes={a.GEN_AI_OPERATION_NAME: "invoke_agent"}, **more)

    run = one(lead(tool(3, 2, name="delegate", start=10, end=200), nameless(4, start=20, end=190)))
    assert inside(run, 4) == sid(3)
    calls = [tool(3, 2, name="delegate", start=10, end=200), tool(5, 2, name="other", start=10, end=200)]
    assert inside(one(lead(*calls, nameless(4, start=20, end=190))), 4) is None
    assert inside(one(lead(calls[0], chat(5, 3, start=12), nameless(4, start=20, end=190))), 4) is None, "that call has its own inside"


def test_peers_that_only_ran_at_the_same_time_stay_peers() -> None:
    run = one(
        [
            span(1, end=END),
            agent(2, 1, name="reader", start=1, end=500),
            agent(3, 1, name="writer", start=2, end=400),
            tool(4, 2, name="fetch", start=5, end=450),
            chat(5, 3, start=10),
        ]
    )
    assert inside(run, 3) is None
    assert inside(run, 5) == sid(3)


def test_a_nested_call_of_the_same_name_gets_the_sub_agent() -> None:
    run = one(
        lead(
            tool(3, 2, name="ask_clerk", start=10, end=300),
            agent(4, 3, name="desk", start=12, end=290),
            tool(5, 4, name="ask_clerk", start=20, end=200),
            agent(6, 1, name="clerk", start=30, end=190),
        )
    )
    assert inside(run, 6) == sid(5)


def test_steps_of_parallel_sub_agents_under_the_top_agent_are_kept_apart() -> None:  # B29
    def said_by(number: int, who: str, start: int) -> SpanRecord:
        return chat(number, 2, start=start, end=start + 50, attributes={a.GEN_AI_AGENT_NAME: who})

    records = lead(
        tool(3, 2, name="ask_tea", start=10, end=200),
        tool(4, 2, name="ask_milk", start=11, end=201),
        said_by(5, "tea", 20),
        said_by(6, "milk", 21),
        said_by(7, "tea", 100),
        said_by(8, "milk", 101),
        chat(9, 2, start=300),
    )
    run = one(records)
    assert [inside(run, n) for n in (5, 6, 7, 8, 9)] == [sid(3), sid(4), sid(3), sid(4), None]
    talks = histories(run.steps)
    assert {history.agent: [step.span_id for step in steps] for history, steps in talks.items()} == {
        "tea": [sid(5), sid(7)],
        "milk": [sid(6), sid(8)],
        "lead": [sid(9)],
    }
    assert "agents-mixed" not in {reason.code for reason in run.grade_reasons}


def test_conversations_keep_the_steps_of_one_agent_apart() -> None:
    calls = [
        chat(n, 2, start=20 * n, end=20 * n + 50, attributes={a.GEN_AI_CONVERSATION_ID: which})
        for n, which in ((5, "x"), (6, "y"), (7, "x"))
    ]
    run = one(lead(*calls))
    assert histories(run.steps) == {
        History(None, "lead", "x"): [run.steps[0], run.steps[2]],
        History(None, "lead", "y"): [run.steps[1]],
    }
    assert "agents-mixed" not in {reason.code for reason in run.grade_reasons}


def test_where_nothing_tells_sub_agents_apart_a_warning_says_so() -> None:  # B29
    run = one(lead(chat(5, 2, start=20, end=90), chat(6, 2, start=30, end=95), chat(7, 2, start=100)))
    (warning,) = [reason for reason in run.grade_reasons if reason.code == "agents-mixed"]
    assert "steps 1, 2" in warning.detail
    assert [step.parent_seq for step in run.steps] == [None] * 3
    ours = [
        own_root(1, seq=1),
        own(2, 1, "model_call", seq=3, end=5000, attributes={a.STEP_SEQ_END: 9, a.STEP_PATH: "x"}),
        own(3, 1, "model_call", seq=4, attributes={a.STEP_PATH: "y"}),
    ]
    assert "agents-mixed" not in {reason.code for reason in one(ours).grade_reasons}, "our own paths tell"


def test_a_hand_off_is_no_tool_and_answers_its_request() -> None:
    asked = asking(("c1", "transfer_to_booking", {}), text="over to booking")
    records = [
        span(1, end=END),
        agent(2, 1, name="desk", start=1, end=100),
        chat(3, 2, start=5, end=50, attributes={a.GEN_AI_OUTPUT_MESSAGES: asked}),
        span(4, 2, name="handoff", start=60, attributes={a.GEN_AI_OPERATION_NAME: "handoff", "gen_ai.handoff.to_agent": "booking"}),
        agent(5, 1, name="booking", start=110, end=900),
        chat(6, 5, start=120),
    ]
    run = one(records)
    handed = step_of(run, 4)
    assert (handed.kind, handed.requested_by, handed.call_id) == ("handoff", step_of(run, 3).seq, "c1")
    assert inside(run, 5) is None
    assert "call-not-run" not in {reason.code for reason in run.grade_reasons}
    unspanned = one([record for record in records if record.span_id != sid(4)])
    assert step_of(unspanned, 5).requested_by == step_of(unspanned, 3).seq, "the next agent is what was asked for"


@pytest.mark.parametrize("seed", range(5))
def test_links_do_not_depend_on_the_order_of_records(seed: int) -> None:
    records = lead(
        *(tool(10 + n, 2, name=f"ask_{n}", start=10 + n, end=400 + n) for n in range(8)),
        *(agent(30 + n, 1, name=f"agent ask {n}" if n % 2 else "nobody", start=30, end=300) for n in range(8)),
    )
    expected = one(records)
    random.Random(seed).shuffle(records)
    assert one(records) == expected


def test_sub_agents_said_to_be_inside_each_other_cost_nothing() -> None:
    run = one(
        [
            agent(1, name="a_agent", start=0, end=100),
            agent(2, name="b_agent", start=0, end=100),
            tool(3, 1, name="ask_b_agent", start=0, end=100),
            tool(4, 2, name="ask_a_agent", start=0, end=100),
        ]
    )
    assert len(run.steps) == 3
    assert all(step.parent_seq is None or step.parent_seq < step.seq for step in run.steps)

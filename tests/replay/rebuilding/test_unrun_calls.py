"""Calls that left no trace: of the last answer a gap, of one before it a remark."""

from fixtures.runs.spans import agent, asking, chat, tool
from spanreplay.replay.rebuilding.completeness import gaps
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.rebuilding.unrun_calls import unrun_calls
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import Record

ASKS = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {"q": "x"}))}
FIRST = chat(2, 1, start=10, attributes=ASKS)
RAN = tool(3, 1, start=20, call="c1", args='{"q": "x"}')
SECOND = chat(4, 1, start=40)


def told(*records: Record) -> tuple[list[str], list[int]]:
    runs = build_runs([agent(1, end=90), *records])
    listed = gaps(runs, records)
    codes = [gap.code for one in listed.values() for gap in one if gap.code == "call-not-run"]
    return codes, [remark.step for remark in unrun_calls(runs, listed)]


def test_a_call_in_the_midst_is_a_remark_and_one_at_the_end_is_a_gap() -> None:
    assert told(FIRST, RAN, SECOND) == ([], [])
    assert told(FIRST, SECOND) == ([], [1])
    assert told(FIRST) == (["call-not-run"], [])


def test_a_remark_says_what_was_asked_for() -> None:
    runs = build_runs([agent(1, end=90), FIRST, SECOND])
    (remark,) = unrun_calls(runs, {})
    assert 'step 1 asked for search(q="x")' in remark.detail
    assert remark.to_json().items() >= {"code": "call-not-run", "step": 1}.items()

"""A fork of a run that others recorded is kept, announced and linked as any."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay import Replayer, build_runs
from spanreplay.replay.model import Run
from spanreplay.replay.reports.verdict import render_verdict
from spanreplay.spans.record import SpanRecord
from spanreplay.store.store import Store
from support.forking import runs_in

TRACE, ROOT, SECOND = "a" * 32, "f" * 16, 10**9


@tool(effect="read")
def look(place: int) -> str:
    raise AssertionError("it was live")


def of_others() -> Run:
    """An agent of two tool calls, in the words of the GenAI conventions."""
    root = SpanRecord(
        trace_id=TRACE,
        span_id=ROOT,
        parent_span_id=None,
        name="invoke_agent looker",
        kind=1,
        start_ns=SECOND,
        end_ns=9 * SECOND,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "looker"},
    )
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    steps = [
        replace(
            root,
            span_id=f"{place:016x}",
            parent_span_id=ROOT,
            name="execute_tool look",
            start_ns=place * 2 * SECOND,
            end_ns=(place * 2 + 1) * SECOND,
            attributes={**told, "gen_ai.tool.call.arguments": f'{{"place": {place}}}', "gen_ai.tool.call.result": f"seen {place}"},
        )
        for place in (1, 2)
    ]
    (run,) = build_runs([root, *steps])
    return run


@pytest.mark.parametrize("around", [nullcontext, lambda: agent_run("looker")], ids=["outside every agent run", "in an agent run"])
@pytest.mark.parametrize("first", [1, 2])
def test_it_is_linked_to_the_run_of_others(around: Callable[[], Any], first: int, tmp_path: Path) -> None:
    run, store = of_others(), tmp_path / "store"

    def agent() -> list[str]:
        with around():
            return [look(1), look(2)]

    at = run.steps[-1].seq if first == 2 else next(step.seq for step in run.steps if step.kind == "tool_call")
    result = Replayer(run, store=store).fork(at=at, faults=["error"]).replay(agent)
    assert str(result.error) == "injected: the tool call look failed"
    ((made, of),) = result.runs.items()
    assert of == run.run_id
    assert f"kept as run {made[:12]}, forked from {of[:12]}" in render_verdict(result.verdict, [run], colour=False)
    (kept,) = [run for run in runs_in(store) if run.run_id == made]
    assert kept.forked_from == run.run_id
    with Store.open(store) as opened:
        links = [link for span in opened.traces(kept.trace_ids) for link in span.links]
    assert {(link.trace_id, link.span_id) for link in links} == {run.root}

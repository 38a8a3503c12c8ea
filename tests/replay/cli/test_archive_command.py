"""``archive``, and archives as a SOURCE."""

from spanreplay.replay.importing import import_records
from spanreplay.spans.record import LogRecord, SpanRecord
from spanreplay.store.store import Store
from support.command_line import CommandLine

START = 1_790_000_000 * 10**9


def trace(number: int) -> str:
    return f"{number:032x}"


def test_commands_take_it_as_a_source(spanreplay: CommandLine) -> None:
    records: list[SpanRecord | LogRecord] = []
    for number in range(1, 9):
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "gen_ai.tool.call.result": "1"}
        root, at = f"{1:016x}", START + number * 10**9
        records.append(SpanRecord(trace_id=trace(number), span_id=root, name="a", start_ns=at, end_ns=at + 9, attributes=agent))
        for n in (2, 3):
            span = f"{n:016x}"
            records.append(
                SpanRecord(
                    trace_id=trace(number),
                    span_id=span,
                    parent_span_id=root,
                    name="t",
                    start_ns=at + n,
                    end_ns=at + n + 1,
                    attributes=tool,
                )
            )
        records.append(LogRecord(time_ns=at, trace_id=trace(number), body="said"))
    import_records(Store.open(spanreplay.store, create=True), records, {trace(3): ["line 17 was cut"]})
    held = spanreplay("hold", trace(2), "--reason", "case")
    assert held.code == 0, held
    done = spanreplay("archive", "old", "--keep", 5, "--prune", "--json").json
    assert (done["runs"], done["spans"], done["logs"], done["pruned"]["runs"]) == (3, 9, 3, 2)
    assert {run["run_id"] for run in spanreplay("runs", "--json").json["runs"]} == {trace(n) for n in (2, 4, 5, 6, 7, 8)}
    shown = spanreplay("replay", f"./old#{trace(3)}", "--json").json["runs"]
    assert [(run["run_id"], run["grade"]) for run in shown] == [(trace(3), "incomplete")]
    assert spanreplay("replay", "./old#last~1", "--json").json["runs"][0]["run_id"] == trace(2)
    assert spanreplay("show", "./old#last~7").code == 2
    assert "spanreplay show ./old shows those that it has" in spanreplay("show", "./old#none").err
    assert len(spanreplay("replay", "./old", "--json").json["runs"]) == 3
    assert spanreplay("import", f"./old#{trace(1)}", "--json").json["imports"][0]["new"] == 4
    last = spanreplay("import", "./old#last", "--store", spanreplay.folder / "of last", "--json").json
    assert [one["new"] for one in last["imports"]] == [4]
    for name, why in (("none", "has no run whose id begins with 'none'"), ("last~7", "has no such run")):
        nothing = spanreplay("import", f"./old#{name}", "--store", spanreplay.folder / "of none")
        assert (nothing.code, why in nothing.err, nothing.out) == (2, True, ""), nothing
    assert spanreplay("import", "old", "--json").json["imports"][0]["new"] == 4
    assert len(spanreplay("runs", "--json").json["runs"]) == 8
    assert spanreplay("archive", "nosuch://x").code == 3

"""``runs``: the list and its filters."""

import shutil
from pathlib import Path

import pytest

from fixtures.runs.spans import agent, chat, own, own_root, tool
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from spanreplay.store.database import Database
from support.command_line import CommandLine

DAY = 86_400 * 10**9
A, B, C = "aa" * 16, "bb" * 16, "cc" * 16


def three() -> list[SpanRecord]:
    conversation = "gen_ai.conversation.id"
    return [
        agent(1, trace=A, start=1 * DAY, end=2 * DAY, name="refunds", attributes={conversation: "s1"}),
        tool(2, 1, trace=A, start=1 * DAY, name="search"),
        agent(1, trace=B, start=10 * DAY, name="planner", status=2, attributes={conversation: "s2", "error.type": "ValueError"}),
        chat(2, 1, trace=B, start=10 * DAY),
        tool(1, trace=C, start=20 * DAY, name="mail"),
    ]


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPANREPLAY_STORE", str(folder / "store"))
        program = CommandLine(patch, folder)
        assert program("import", program.file("t.json", *three())).code == 0
    return folder / "store"


@pytest.fixture
def listed(spanreplay: CommandLine, three_runs: Path) -> CommandLine:
    shutil.copytree(three_runs, spanreplay.store)
    return spanreplay


@pytest.mark.parametrize(
    ("filters", "runs"),
    [
        ([], [C, B, A]),
        (["--agent", "refunds"], [A]),
        (["--agent", "nobody"], []),
        (["--since", "1970-01-11"], [C, B]),
        (["--since", "1970-01-11T00:00:01+00:00"], [C]),
        (["--since", "3w"], []),
        (["--since", "9999-12-31"], []),
        (["--outcome", "error"], [B]),
        (["--grade", "semantic"], [C, B, A]),
        (["--grade", "exact"], []),
        (["--tool", "mail"], [C]),
        (["--session", "s1"], [A]),
        (["--limit", "2"], [C, B]),
        (["--agent", "refunds", "--tool", "mail"], []),
    ],
)
def test_filters(listed: CommandLine, monkeypatch: pytest.MonkeyPatch, filters: list[str], runs: list[str]) -> None:
    monkeypatch.setenv("TZ", "UTC")
    done = listed("runs", "--json", *filters)
    assert done.code == 0, done
    assert [r["run_id"] for r in done.json["runs"]] == runs
    assert all(r["behaviour"].startswith("sha256:") for r in done.json["runs"])
    shown = listed("runs", *filters)
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == [r[:12] for r in runs]
    if not runs:
        assert shown.out == "no run meets the filters\n"


@pytest.mark.parametrize(
    "arguments",
    [["--since", w] for w in ("yesterday", "d", "5y", "²d", "2026-13-01", "", "999999999w")] + [["--outcome", "fine"], ["--grade", "good"]],
)
def test_a_filter_that_means_nothing_is_wrong_use(listed: CommandLine, arguments: list[str]) -> None:
    done = listed("runs", *arguments)
    assert (done.code, done.out) == (2, ""), done
    assert f"--{arguments[0].strip('-')}" in done.err


def test_a_store_without_runs_says_what_to_do(spanreplay: CommandLine) -> None:
    (spanreplay.store / "journal").mkdir(parents=True)
    done = spanreplay("runs")
    assert (done.code, done.out) == (0, "no runs\n")
    assert "Record one with: spanreplay record -- python agent.py" in done.err
    assert spanreplay("runs", "--json").json == {"schema": 1, "runs": []}


def test_a_cut_list_says_so(listed: CommandLine) -> None:
    assert "these are the newest 2; --limit shows more" in listed("runs", "-n", "2").err
    assert listed("runs", "-n", "3").err == ""


def test_verbose_gives_whole_ids(listed: CommandLine) -> None:
    err = listed("runs", "-v").err
    assert all(run in err for run in (A, B, C))
    assert "session s1" in err


def test_a_call_that_may_have_acted_is_pointed_at_in_runs_that_are_not_listed(spanreplay: CommandLine) -> None:
    begun = {a.STEP_OUTCOME: None, a.STEP_EFFECT: "write"}
    spans = [
        span
        for run in (A, B)
        for span in (own_root(1, run=run, trace=run), own(2, 1, run=run, trace=run, seq=2, end=None, attributes=begun))
    ]
    assert spanreplay("import", spanreplay.file("t.json", *spans)).code == 0
    assert "not listed" not in spanreplay("runs").err
    listed = spanreplay("runs", "--limit", "1").err
    assert listed.splitlines()[-1] == "1 step of 1 run that is not listed here began and has no end: it may have acted"
    assert "2 steps of 2 runs that are not listed here began and have no end" in spanreplay("runs", "--agent", "nobody").err


def test_a_run_whose_record_was_changed_fails_alone(listed: CommandLine) -> None:
    listed("import", listed.file("long.json", chat(1, trace="dd" * 16, attributes={"note": "x" * 900}), chat(1, trace="ee" * 16)))
    with Database(listed.store).writing() as connection:
        connection.execute("UPDATE blobs SET text = replace(text, 'xxx', 'yyy') WHERE contains(text, 'xxx')").fetchall()
        connection.execute("INSERT INTO stale SELECT DISTINCT trace_id, 99 FROM spans").fetchall()
    done = listed("runs", "--json")
    assert done.code == 0
    assert [run["run_id"] for run in done.json["runs"] if run["grade"] == "incomplete"] == ["dd" * 16]
    assert f"trace {'dd' * 16}: content sha256:" in done.err
    assert listed("show", "ee" * 16).code == 0
    assert "has been changed" in listed("verify", "dd" * 16).out
    imported = listed("import", listed.store, "--store", listed.folder / "another")
    assert imported.code == 0
    assert "has been changed" in imported.err
    assert listed("prune", "--keep", "1", "--yes").code == 0

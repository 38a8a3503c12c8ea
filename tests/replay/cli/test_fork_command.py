"""``fork``, ``resume`` and ``replay`` with something live, as commands: what is asked wrongly, and what becomes of real processes."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.runs.spans import own_root
from spanreplay.semconv import attributes as a
from spanreplay.store.store import Store
from support.command_line import CommandLine

AGENT = """
import os, signal, sys
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    return {"x": x, "of": os.environ.get("OF", "old")}

@tool(effect="write")
def note(x) -> str:
    with open(os.environ.get("SPANREPLAY_TARGET", "production"), "a") as file:
        file.write(f"{x}\\n")
    if os.environ.get("CRASH"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "noted"

with agent_run("noting", input="go") as run:
    run.output = [look(1), note(int(sys.argv[1])), look(2)]
print(run.output)
"""


PROGRAM = [sys.executable, "agent.py"]


@pytest.fixture
def agent(spanreplay: CommandLine) -> list[str]:
    (spanreplay.folder / "agent.py").write_text(AGENT, encoding="utf-8")
    return PROGRAM


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent, its store with one run in it, and what it wrote."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SPANREPLAY_STORE", str(folder / "store"))
        assert CommandLine(patch, folder)("record", "-q", "--", *PROGRAM, "1").code == 0
    return folder


@pytest.fixture
def ran(spanreplay: CommandLine, recorded: Path) -> CommandLine:
    """The program, in a copy of that folder."""
    shutil.copytree(recorded, spanreplay.folder, dirs_exist_ok=True)
    return spanreplay


SetEnv = Callable[[str, str], None]


@pytest.fixture
def set_(monkeypatch: pytest.MonkeyPatch) -> SetEnv:
    return monkeypatch.setenv


def last(spanreplay: CommandLine) -> dict[str, Any]:
    """The last run, as JSON."""
    run: dict[str, Any] = spanreplay("replay", "last", "--json").json["runs"][0]
    return run


def test_a_command_is_forked_and_acts_only_where_it_is_let(ran: CommandLine, tmp_path: Path) -> None:
    spanreplay, agent = ran, PROGRAM
    before = last(spanreplay)
    closed = spanreplay("fork", "last", "--at", "2", "--", *agent, "2")
    assert closed.code == 4
    assert "to let it act: --allow-effect note --target NAME" in closed.out
    assert (tmp_path / "production").read_text() == "1\n"
    run_id = str(before["run_id"])
    allowed = ["--allow-effect", "note", "--target", "sandbox", "--allow-effect", "nosuch"]
    opened = spanreplay("fork", run_id, "--at", "2", *allowed, "--", *agent, "2")
    assert opened.code == 0
    assert "--allow-effect nosuch: the record has no call of it; it has those of look, note" in opened.err
    assert ((tmp_path / "production").read_text(), (tmp_path / "sandbox").read_text()) == ("1\n", "2\n")
    made = last(spanreplay)
    assert f"kept as run {made['run_id'][:12]}, forked from {run_id[:12]}" in opened.out
    assert (made["forked_from"], made["grade"]) == (run_id, "exact")
    first, second, third = made["steps"]
    assert first["answered_from"] == {"run_id": run_id, "step": 1}
    assert (second["stands_for"], second["target"], third["output"]) == (2, "sandbox", {"result": {"x": 2, "of": "old"}})
    assert links_of(spanreplay) == {run_id}


def links_of(spanreplay: CommandLine) -> set[str]:
    """The runs that the spans of the last run link to, by their ids, where the linked span is that run's own root."""
    with Store.open(spanreplay.store) as store:
        found = [*store.traces(store.traces_of(str(last(spanreplay)["run_id"])))]
        links = [link for span in found for link in span.links]
        linked = [span for link in links for span in store.traces([link.trace_id]) if span.span_id == link.span_id]
    roots = [span for span in linked if span.attributes.get(a.RUN_ROOT) and a.RUN_COMMAND not in span.attributes]
    return {str(span.attributes[a.RUN_ID]) for span in roots}


def test_what_cannot_be_kept_is_not_run(ran: CommandLine, tmp_path: Path) -> None:
    assert ran("export", "last", "-o", "run.json").code == 0
    done = ran("fork", "run.json", "--at", "2", "--allow-effect", "note", "--target", "scratch", "--store", "agent.py", "--", *PROGRAM, "1")
    assert (done.code, done.err.splitlines()[-1].startswith("Error: nothing can be kept: File exists")) == (2, True), done
    assert not (ran.folder / "scratch").exists()


def test_what_nothing_was_executed_of_is_no_run(ran: CommandLine) -> None:
    before = [run["run_id"] for run in ran("runs", "--json").json["runs"]]
    done = ran("fork", "last", "--at", "2", "--", sys.executable, "nosuch.py")
    assert (done.code, "kept as" in done.out, "nothing of it is kept" in done.err) == (1, False, True), done
    assert ran("fork", "last", "--at", "2", "--", "true").code == 125
    assert not list((ran.folder / "store" / "journal").iterdir())
    assert [run["run_id"] for run in ran("runs", "--json").json["runs"]] == before


def test_what_ended_before_any_call_has_nothing_to_resume(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", own_root(attributes={a.RUN_COMMAND: True, a.STEP_OUTCOME: "error"}))
    done = spanreplay("resume", path, "--", *PROGRAM)
    assert (done.code, "before any call was made" in done.err) == (2, True), done


def test_from_the_first_difference_it_is_a_fork(ran: CommandLine, tmp_path: Path) -> None:
    done = ran("replay", "last", "--mode", "from-here", "--", *PROGRAM, "3")
    assert done.code == 4
    assert "difference at step 2: tool_call note" in done.out
    assert "left the record at step 2, tool_call note: live from there" in done.out
    assert "note has the effect write, so it stays closed" in done.out
    assert (tmp_path / "production").read_text() == "1\n"


def test_a_killed_command_is_resumed_as_it_is_decided(spanreplay: CommandLine, agent: list[str], tmp_path: Path, set_: SetEnv) -> None:
    set_("CRASH", "1")
    assert spanreplay("record", "--", *agent, "1").code == 137
    set_("CRASH", "")
    crashed = last(spanreplay)
    assert [step["outcome"] for step in crashed["steps"]] == ["ok", "unknown"]
    asked = spanreplay("resume", "last", "--", *agent, "1")
    assert asked.code == 125
    assert "--decide '2=done:JSON'" in asked.err
    assert asked.out == ""
    wrong = spanreplay("resume", "last", "--decide", "2=done:17", "--", *agent, "1")
    assert (wrong.code, "note is declared to give str, and 17 is none" in wrong.out, "refused: step 2, decided" in wrong.out) == (
        4,
        True,
        True,
    )
    done = spanreplay("resume", "last", "--decide", '2=done:"by hand"', "--", *agent, "1")
    assert (done.code, "came to nothing" in done.err) == (0, True), done
    assert (tmp_path / "production").read_text() == "1\n"
    made = last(spanreplay)
    assert (made["forked_from"], made["outcome"]) == (crashed["run_id"], "ok")
    assert made["output"] == [{"x": 1, "of": "old"}, "by hand", {"x": 2, "of": "old"}]
    ended = spanreplay("resume", "last", "--", *agent, "1")
    assert (ended.code, "spanreplay fork" in ended.err) == (2, True)
    twice = ("resume", str(crashed["run_id"]), "--decide", "2=again")
    told = f"already resumed or forked as run {made['run_id'][:12]} ("
    done = spanreplay(*twice, "--", *agent, "1")
    assert (done.code, told in done.err, (tmp_path / "production").read_text()) == (0, True, "1\n1\n"), done
    refused = spanreplay(*twice, "--", *agent, "1")
    assert (refused.code, "which has acted, or may have: tool_call note; --again does it again" in refused.err) == (2, True), refused


def test_what_is_killed_in_a_fork_is_not_done_and_may_have_acted(ran: CommandLine, tmp_path: Path, set_: SetEnv) -> None:
    set_("CRASH", "1")
    done = ran("fork", "last", "--at", "2", "--allow-effect", "note", "--target", "sandbox", "--", *PROGRAM, "2")
    assert (done.code, (tmp_path / "sandbox").read_text()) == (1, "2\n"), done
    assert "the command itself exited with 137: ended by SIGKILL" in done.err
    assert "step 2, tool_call note: " in done.err
    assert "may have acted" in done.err


def test_an_agent_that_does_not_survive_a_fault_is_said(ran: CommandLine) -> None:
    done = ran("fork", "last", "--fault", "error@2", "--", *PROGRAM, "2")
    assert (done.code, "the agent did not survive the fault: the command itself exited with 1" in done.err) == (1, True), done


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fork", "--", "x"], "--at N, the first live step"),
        (["fork", "--at", "1"], "give the command after --"),
        (["fork", "--at", "1", "--fault", "late", "--", "x"], "a fault is one of timeout, error, malformed, rejected, slow"),
        (["fork", "--fault", "error", "--", "x"], "names no step"),
        (["fork", "--at", "1", "--set", "model", "--", "x"], "a change is KEY=VALUE"),
        (["fork", "--at", "1", "--set", "model=a", "--set", "model=b", "--", "x"], "--set model has more than one value"),
        (["fork", "--at", "1", "--allow-effect", "a", "--target", "", "--", "x"], "--target names no place"),
        (["replay", "--mode", "from-here", "--live", "models", "--", "x"], "leave out --live, --live-read and --only"),
        (["fork", "--at", "99", "--", "x"], "there is no step 99"),
        (["fork", "--at", "1", "--recorded", "nothing", "--", "x"], "the record has no call of nothing"),
        (["fork", "--at", "1", "--allow-host", "//", "--", "x"], "wanted HOST or HOST:PORT"),
        (["replay", "--live", "nothing", "--", "x"], "the record has no call of nothing; it has those of "),
        (["replay", "--only", "99", "--", "x"], "there is no step 99"),
        (["replay", "--set", "model=x", "--", "x"], "are for what is live"),
        (["replay", "--live", "models"], "what is live is executed"),
        (["resume", "--decide", "2=perhaps", "--", "x"], "a decision is STEP=done:JSON"),
        (["resume", "--", "x"], "the run has ended"),
        (["resume", "--mode", "from-here", "--", "x"], "--mode from-here is for replay"),
        (["fork", "--at", "1", "--mode", "from-here", "--", "x"], "--mode from-here is for replay"),
        (["fork", "--at", "1", "--isolate", "net", "--", "x"], "nothing can be live"),
    ],
)
def test_what_is_asked_wrongly_is_said(demo: CommandLine, arguments: list[str], told: str) -> None:
    done = demo(*arguments)
    assert (done.code, told in done.err) == (2, True), done

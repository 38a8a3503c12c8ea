"""Exit codes of ``record`` and ``replay``, and what they say."""

import json
import signal
import sys
from pathlib import Path

import pytest

from acceptance.commands import Desk, Done
from acceptance_replay.conftest import Outside, agent


def test_recording_keeps_the_output_and_replaying_runs_no_tool(desk: Desk, recorded: tuple[Desk, Done], outside: Outside) -> None:
    assert (recorded[1].code, recorded[1].out) == (0, "total 6\n")
    done = desk.replay(agent())
    assert done.code == 0, str(done)
    assert "total 6" in done.out
    assert "0 differences" in done.out
    assert outside.files() == []


@pytest.mark.parametrize("extra", ["asks_for_something_else", "swallows_a_difference", "differs_and_is_gone"])
def test_a_difference_is_1_however_the_command_ends(desk: Desk, extra: str) -> None:
    done = desk.replay(agent(extra))
    assert done.code == 1, str(done)
    assert "difference at step 2: tool_call look\n  arguments.x\n    recorded: 2\n    actual:   9" in done.out
    assert "agent.py:" in done.out


def test_a_difference_in_a_pool_ends_the_command(desk: Desk) -> None:
    done = desk.replay(agent("differs_in_a_pool"))
    assert done.code == 1, str(done)
    assert 'a call that is not in the record: tool_call look\n    actual:   {"x": 9}' in done.out


def test_another_exit_code_of_the_command_is_a_difference(desk: Desk) -> None:
    done = desk.replay(agent("runs_over"))
    assert done.code == 1, str(done)
    assert "LookupError: the agent's own" in done.err
    assert "unreached" not in done.err


@pytest.mark.parametrize(
    ("arguments", "command", "code", "said"),
    [
        (["replay", "last"], ["no-such-program"], 2, "no-such-program"),
        (["replay", "nosuchrun"], ["true"], 2, "no run of"),
        (["replay", "last", "--rerun"], ["true"], 2, "not both"),
        (["replay", "./broken.json"], ["true"], 3, "broken.json"),
        (["replay", "last"], ["true"], 125, "no Python process reported in"),
        (["record"], ["no-such-program"], 2, "no-such-program"),
        (["record"], ["false"], 1, "no Python process reported in"),
    ],
)
def test_codes_of_wrong_use_and_of_what_cannot_be_judged(
    desk: Desk, arguments: list[str], command: list[str], code: int, said: str
) -> None:
    (desk.work / "broken.json").write_text('{"resourceSpans": [')
    store = desk.root / "other" if arguments[0] == "record" else None
    done = desk.spanreplay(*arguments, command=command, store=store)
    assert done.code == code, str(done)
    assert said in done.err + done.out
    assert "Traceback" not in done.err


def test_a_grade_that_is_required_and_not_met_is_125(desk: Desk, tmp_path: Path) -> None:
    assert desk.spanreplay("replay", "last", "--require", "exact").code == 0
    file = tmp_path / "run.json"
    assert desk.spanreplay("export", "last", "-o", file).code == 0
    document = json.loads(file.read_text())
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["attributes"] = [
                    a for a in span["attributes"] if a["key"] not in ("gen_ai.tool.call.result", "spanreplay.step.result")
                ]
    file.write_text(json.dumps(document))
    done = desk.spanreplay("replay", file, "--require", "exact")
    assert done.code == 125, str(done)
    assert "exact is required" in done.err
    judged = desk.replay(agent(), target=file)
    assert judged.code == 125, str(judged)
    assert "the record cannot answer it" in judged.out


def test_the_recorded_command_runs_again_where_it_was_recorded(desk: Desk) -> None:
    done = desk.spanreplay("replay", "last", "--rerun", "--yes")
    assert done.code == 0, str(done)
    assert "recorded command: " in done.err
    assert str(desk.work) in done.err
    assert "0 differences" in done.out
    assert desk.spanreplay("replay", "last", "--rerun").code != 0  # nobody is there to confirm


def test_record_keeps_the_commands_exit_code_and_signal(tmp_path: Path, outside: Outside) -> None:
    desk = Desk.laid_out(tmp_path / "desk", {"OUTSIDE": str(outside.folder), "PORT": str(outside.port)})
    assert desk.record([sys.executable, "-c", "import sys; sys.exit(7)"]).code == 7
    done = desk.record(agent("is_killed"))
    assert done.code == 128 + signal.SIGTERM, str(done)
    assert "kept 1 step of 1 run" in done.err  # what happened before the signal is there
    shown = desk.spanreplay("replay", "last")
    assert shown.code == 0, str(shown)
    for file in outside.folder.iterdir():
        file.unlink()

"""``demo``: shows what it should, and says so when it does not."""

import re

import pytest

from support.command_line import CommandLine


def test_what_it_shows(spanreplay: CommandLine) -> None:
    done = spanreplay("demo")
    assert done.code == 0, done
    for text in (
        "beside 3",
        "no room in Lisbon",
        "0 differences",
        "difference at step 1: model_call scripted-1",
        "cause: the prompt trip-planner has changed, and is called 3 as before",
        "refused: tried to write ",
        "e-mails sent: 1 while recording, 0 while replaying",
    ):
        assert text in done.out
    run = re.match(rf"the run is kept in {spanreplay.store}: spanreplay show (\w+)\n", done.err)
    assert run is not None
    assert "trip-planner" in spanreplay("show", run[1]).out


def test_quiet_and_json(spanreplay: CommandLine) -> None:
    assert spanreplay("demo", "-q").out == "recorded: yes\nreplayed equal: yes\nchanged word found: yes\nemail not sent: yes\n"
    document = spanreplay("demo", "--json").json
    assert set(document["checks"].values()) == {True}
    assert [r["exit_code"] for r in document["replays"]] == [0, 1, 4]


def test_a_demo_that_does_not_show_it_fails(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreplay.cli.demo_agent.TripAgent.deliver", lambda *_: "not sent")
    done = spanreplay("demo", "-q")
    assert done.code == 1
    assert "the demo did not show what it should: recorded, email_not_sent" in done.err

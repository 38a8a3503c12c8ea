"""``show``: a run, a step, the spans."""

import pytest

from fixtures.runs.spans import fixture
from support.command_line import CommandLine


def test_the_run_in_order(demo: CommandLine) -> None:
    lines = demo("show").out.splitlines()
    assert "trip-planner 1 · ok · replays exactly" in lines[0]
    assert [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0].isdigit()] == [str(n) for n in range(1, 10)]


def test_one_step_whole(demo: CommandLine) -> None:
    done = demo("show", "--step", "5")
    assert done.out.startswith("step 5  tool call  book_hotel\n")
    assert "no room in Lisbon for 2 nights" in done.out
    document = demo("show", "--step", "5", "--json").json
    assert (document["schema"], document["step"]["name"], document["step"]["outcome"]) == (1, "book_hotel", "error")
    assert document["run_id"] == demo("runs", "--json").json["runs"][0]["run_id"]


@pytest.mark.parametrize("step", ["10", "999999999999999999999"])
def test_a_step_that_is_not_there(demo: CommandLine, step: str) -> None:
    done = demo("show", "--step", step)
    assert (done.code, done.out) == (2, "")
    assert f"has steps 1 to 9; found --step {step}" in done.err


def test_what_the_command_around_a_run_did_is_told_too(in_command: CommandLine) -> None:
    line = "  its command, not recorded: database opened ck.db; a replay refuses it unless told --allow-write ck.db  (untaped)"
    assert line in in_command("show").out.splitlines()
    (run,) = in_command("show", "--json").json["runs"]
    assert [reason["code"] for reason in run["grade_reasons"]] == ["untaped"]


def test_the_spans_as_a_tree_and_as_json(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", *fixture("forecast.json"))
    done = spanreplay("show", path, "--tree")
    assert done.out.splitlines()[0].startswith("trace ")
    assert len(done.out.splitlines()) == 6
    document = spanreplay("show", path, "--tree", "--json").json
    assert len(document["spans"]) == 5
    ids = {s["span_id"] for s in document["spans"]}
    assert sum(s["parent_span_id"] not in ids for s in document["spans"]) == 1
    assert list(document["spans"][0]) == [
        "trace_id", "span_id", "parent_span_id", "name", "started_ns", "ended_ns", "status", "status_message",
    ]  # fmt: skip


def test_the_tree_of_a_run_has_its_own_traces_only(spanreplay: CommandLine) -> None:
    from fixtures.runs.spans import chat

    path = spanreplay.file("t.json", chat(1, trace="aa" * 16), chat(1, trace="bb" * 16))
    assert [s["trace_id"] for s in spanreplay("show", f"{path}#bb", "--tree", "--json").json["spans"]] == ["bb" * 16]


def test_several_runs_of_a_file_one_after_the_other(spanreplay: CommandLine) -> None:
    from fixtures.runs.spans import chat

    path = spanreplay.file("t.json", chat(1, trace="aa" * 16), chat(1, trace="bb" * 16))
    assert [line for line in spanreplay("show", path).out.splitlines() if line.startswith("run ")] == [
        "run aaaaaaaaaaaa · ok · replays by meaning",
        "run bbbbbbbbbbbb · ok · replays by meaning",
    ]


def test_verbose_tells_what_is_known_of_the_run(demo: CommandLine) -> None:
    err = demo("show", "-v").err
    (run,) = demo("runs", "--json").json["runs"]
    assert run["run_id"] in err
    assert "prompt in use: trip-planner 3\n" in err
    assert "tools in use: find_flight, weather, book_hotel, send_email\n" in err
    assert f"(store) from {demo.store}" in err


def test_quiet_keeps_what_was_asked_for(demo: CommandLine) -> None:
    assert demo("show", "-q").out == demo("show").out


def test_what_tells_equal_runs(demo: CommandLine) -> None:
    (shown,) = demo("show", "--json").json["runs"]
    assert shown["behaviour"].startswith("sha256:")
    assert f"behaviour {shown['behaviour']}" in demo("show", "-v").err
    (line,) = (demo("export", "--format", "messages").json,)
    assert line["behaviour"] == shown["behaviour"]

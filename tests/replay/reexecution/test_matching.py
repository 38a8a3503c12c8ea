"""Finding the recorded step of a call, on runs made by hand."""

from pathlib import Path

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.candidates import Recording
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.matched import Found, Missed
from spanreplay.replay.reexecution.matching import RecordedRun
from support.handmade import run, step


def ask(recorded: RecordedRun, path: str, asked: str) -> tuple[str, int | None]:
    kind, _, name = path.rpartition("/")[2].rpartition("#")[0].partition(":")
    match recorded.match(kind, name, path, comparable(asked)):
        case Found(step=found, by=by):
            recorded.used.add(found.seq)
            if by == "input":
                recorded.claimed(found, path, "here")
            return by, found.seq
        case Missed(kind=missed, step=expected):
            return missed, None if expected is None else expected.seq


T0, T1 = "tool_call:t#0", "tool_call:t#1"


def test_key_order_spaces_and_redactions_of_another_run_do_not_matter() -> None:
    recorded = RecordedRun(run(step(1, T0, '{"b": 1, "a": "[redacted:api_key:aaaaaaaa]"}')))
    assert ask(recorded, T0, '{"a":"[redacted:api_key:bbbbbbbb]","b":1}') == ("path", 1)


def test_numbers_of_another_type_do() -> None:
    assert ask(RecordedRun(run(step(1, T0, '{"x":1}'))), T0, '{"x":1.0}') == ("input", 1)


def test_the_same_input_elsewhere_answers_only_where_tasks_or_threads_are_concerned() -> None:
    recorded = run(step(1, "~w#0/tool_call:t#0", "1"), step(2, "~w#1/tool_call:t#0", "2"))
    found = RecordedRun(recorded)
    assert [ask(found, "~w#0/tool_call:t#0", "2"), ask(found, "~w#1/tool_call:t#0", "1")] == [("input", 2), ("input", 1)]
    plain = run(step(1, "agent:x#0/tool_call:t#0", "1"), step(2, "agent:x#1/tool_call:t#0", "2"))
    assert ask(RecordedRun(plain), "agent:x#0/tool_call:t#0", "2") == ("input", 1)


def _match_by(recorded: Run, path: str, asked: str) -> Found | Missed:
    return RecordedRun(recorded).match("tool_call", "t", path, asked)


def test_a_found_step_says_how_it_was_found() -> None:
    other = _match_by(run(step(1, "~w#0/tool_call:t#0", "1")), "tool_call:t#0", "1")
    assert isinstance(other, Found)
    assert other.by == "input"


def test_steps_of_other_tools_have_no_place_and_answer_in_order() -> None:
    recorded = RecordedRun(run(step(1, None, "1", grade="semantic"), step(2, None, "1", grade="semantic")))
    assert [ask(recorded, T0, "1"), ask(recorded, T1, "1"), ask(recorded, "tool_call:t#2", "1")] == [
        ("input", 1),
        ("input", 2),
        ("already_used", None),
    ]


def test_a_view_only_step_cannot_answer() -> None:
    assert ask(RecordedRun(run(step(1, T0, "1", grade="structure"))), T0, "1") == ("not_replayable", 1)
    assert ask(RecordedRun(run(step(1, T0, "1", outcome="unknown"))), T0, "1") == ("not_replayable", 1)


def test_a_call_that_took_anothers_answer_is_the_one_that_differs() -> None:
    recorded = RecordedRun(run(step(1, "~w#0/tool_call:t#0", "1"), step(2, "~w#1/tool_call:t#0", "2"), step(3, "model_call#0", "{}")))
    assert ask(recorded, "~w#0/tool_call:t#0", "2") == ("input", 2)
    missed = recorded.match("tool_call", "t", "~w#1/tool_call:t#0", "2")
    assert isinstance(missed, Missed)
    assert (missed.kind, missed.step and missed.step.seq, missed.claim and missed.claim.asked) == ("input", 1, "2")


def test_a_cancelled_call_need_not_come_again() -> None:
    recorded = run(step(1, T0, "1", outcome="cancelled"), step(2, "tool_call:u#0", "2"))
    assert ask(RecordedRun(recorded), "tool_call:u#0", "2") == ("path", 2)


def test_steps_inside_a_stubbed_one_are_covered() -> None:
    recorded = RecordedRun(
        run(step(1, T0, "1"), step(2, f"{T0}/io:x#0", "1", parent_seq=1), step(3, f"{T0}/io:x#0/io:y#0", "1", parent_seq=2))
    )
    assert ask(recorded, T0, "1") == ("path", 1)
    assert sorted(recorded.cover(recorded.index.by_seq[1])) == [2, 3]


def test_a_call_more_in_the_middle_is_told_from_a_missing_one_and_a_swap() -> None:
    steps = (step(1, T0, '"a"'), step(2, "model_call#0", "{}"), step(3, T1, '"b"'))
    recorded = RecordedRun(run(*steps))
    assert ask(recorded, T0, '"a"') == ("path", 1)
    extra = recorded.match("tool_call", "t", T1, '"extra"')
    assert isinstance(extra, Missed)
    assert (extra.kind, extra.step, extra.next) == ("never_recorded", None, steps[1])
    again = recorded.match("tool_call", "t", T1, '"a"')
    assert isinstance(again, Missed)
    assert (again.kind, again.nearest, again.next) == ("already_used", (steps[0],), steps[1])
    assert ask(recorded, T1, '"b"') == ("order", 2)
    last = recorded.match("tool_call", "u", "tool_call:u#0", "1")
    assert isinstance(last, Missed)
    assert last.next == steps[1]
    assert ask(RecordedRun(run(*steps)), T0, '"b"') == ("order", 1)
    assert ask(RecordedRun(run(*steps)), "model_call#0", "lacks what step 1 gave") == ("order", 1)
    assert ask(RecordedRun(run(*steps)), T0, '"c"') == ("input", 1)


def test_a_model_call_is_the_same_with_another_model() -> None:
    recorded = run(step(1, "~w#0/model_call#0", '{"model":"m"}', name="m"), step(2, "~w#1/model_call#0", '{"model":"n"}', name="n"))
    found = RecordedRun(recorded)
    assert isinstance(missed := found.match("model_call", "o", "~w#0/model_call#0", '{"model":"o"}'), Missed)
    assert (missed.kind, missed.step) == ("input", recorded.steps[0])
    assert isinstance(taken := found.match("model_call", "n", "~w#0/model_call#0", '{"model":"n"}'), Found)
    assert (taken.by, taken.step) == ("input", recorded.steps[1])


def test_runs_are_found_by_place_and_input_then_input_then_name() -> None:
    runs = [run(run_id=str(i), path=f"agent:a#{i}", typed_input=str(i % 2), started_ns=i) for i in range(4)]
    recording = Recording(runs)

    def found(path: str, asked: str) -> str | None:
        made = recording.agent_run("a", path, asked)
        return None if made is None else made.run.run_id

    assert found("agent:a#3", "1") == "3"
    assert found("agent:a#9", "0") == "0"
    assert found("agent:a#2", "1") == "1"
    assert found("agent:a#2", "9") == "2"
    assert found("agent:a#2", "0") is None


def two_processes(typed_input: str | None = None) -> list[Run]:
    return [
        run(step(1, T0, f'"{i}"', process=f"p{i}"), run_id=f"r{i}", path="agent:a#0", typed_input=typed_input, started_ns=i) for i in (1, 2)
    ]


def _first_call(recording: Recording, asked: str) -> str | None:
    assert recording.several("a", "agent:a#0", None)
    made = recording.agent_run("a", "agent:a#0", None, lambda r: r.fit("tool_call", "t", T0, asked))
    return None if made is None else made.run.run_id


def test_no_two_processes_of_a_replay_take_the_same_run(tmp_path: Path) -> None:
    first, second, third = (Recording(two_processes("1"), claims=Claims(tmp_path)) for _ in range(3))
    taken = [r.agent_run("a", "agent:a#0", "1") for r in (first, second, third)]
    assert [None if r is None else r.run.run_id for r in taken] == ["r1", "r2", None]


def test_runs_of_one_place_and_input_are_told_apart_by_their_first_call(tmp_path: Path) -> None:
    first, second = (Recording(two_processes(), claims=Claims(tmp_path)) for _ in range(2))
    assert [_first_call(first, '"2"'), _first_call(second, '"1"')] == ["r2", "r1"]
    assert [_first_call(Recording(two_processes()), asked) for asked in ('"1"', '"9"')] == ["r1", "r1"]


def test_the_run_that_was_asked_for_is_preferred_to_others_that_fit_as_well() -> None:
    assert [_first_call(Recording(two_processes(), focus=["r2"]), asked) for asked in ('"1"', '"9"')] == ["r1", "r2"]
    assert (found := Recording(two_processes("1"), focus=["r2"]).agent_run("a", "agent:a#5", "7")) is not None
    assert found.run.run_id == "r2"


def test_runs_of_the_same_recorded_process_stay_together() -> None:
    runs = [
        run(step(1, T0, '"x"', process=f"p{i}"), run_id=f"{n}{i}", path=f"agent:{n}#0", agent_name=n, started_ns=i)
        for n in "ab"
        for i in (1, 2)
    ]
    recording = Recording(runs)
    for name, asked in (("a", '"x"'), ("b", '"x"')):
        made = recording.agent_run(name, f"agent:{name}#0", None, lambda r: 0 if r.run.run_id in ("a2", "b1", "b2") else 1)
        assert made is not None
        assert made.run.run_id == f"{name}2", asked


def command(*steps: Step) -> Run:
    return run(*steps, run_id="c", is_command=True, agent_name=None)


def _part(recording: Recording, asked: str, path: str = T0) -> str | None:
    made = recording.command(lambda r: r.fit("tool_call", "t", path, asked))
    return None if made is None else made.process


def test_a_live_process_stands_for_one_recorded_process_of_the_command(tmp_path: Path) -> None:
    recorded = command(
        step(1, T0, '"1"', process="p1"),
        step(2, T1, '"same"', process="p1"),
        step(3, T0, '"2"', process="p2"),
        step(4, T1, '"same"', process="p2"),
    )
    live = [Recording([recorded], claims=Claims(tmp_path)) for _ in range(3)]
    assert [_part(live[0], '"2"'), _part(live[1], '"9"'), _part(live[2], '"1"')] == ["p2", "p1", None]
    part = RecordedRun(recorded, process="p2")
    assert [ask(part, T0, '"2"'), ask(part, T1, '"same"')] == [("path", 3), ("path", 4)]
    assert ask(part, "tool_call:t#2", '"1"') == ("never_recorded", None)


def test_a_process_stands_for_one_that_was_started_at_its_place() -> None:
    child = step(2, f"{T0}/~run#0/{T0}", '"x"', process="p2", parent_seq=1)
    recorded = command(step(1, T0, '"x"', process="p1"), child, step(3, f"~run#0/{T0}", '"x"', process="p3"))
    assert _part(Recording([recorded], place="~run#0"), '"x"', f"~run#0/{T0}") == "p3"
    top = Claims()
    assert [_part(Recording([recorded], claims=top), '"x"') for _ in range(3)] == ["p1", "p3", None]  # never the one inside a tool


def test_steps_of_the_command_and_runs_of_one_process_go_together() -> None:
    runs = [command(step(1, T0, '"x"', process="p1"), step(2, T0, '"x"', process="p2")), *two_processes()]
    recording = Recording(runs)
    assert _first_call(recording, '"2"') == "r2"
    assert _part(recording, '"x"') == "p2"


def test_ten_thousand_identical_calls_take_no_longer_each_than_ten() -> None:
    recorded = RecordedRun(run(*(step(i + 1, f"tool_call:t#{i}", "1") for i in range(10_000))))
    assert all(ask(recorded, f"tool_call:t#{i}", "1") == ("path", i + 1) for i in range(10_000))


def of_workers() -> RecordedRun:
    """Two threads that take from a queue: the first took 3 and 4, the other 5."""
    return RecordedRun(run(step(1, "~w#0/tool_call:t#0", "3"), step(2, "~w#0/tool_call:t#1", "4"), step(3, "~w#1/tool_call:t#0", "5")))


def test_a_worker_may_take_its_second_item_before_another_takes_its_first() -> None:
    found = of_workers()
    assert ask(found, "~w#0/tool_call:t#0", "4") == ("input", 2)
    assert ask(found, "~w#1/tool_call:t#0", "3") == ("input", 1)
    assert ask(found, "~w#0/tool_call:t#1", "5") == ("input", 3)


def test_two_calls_of_one_task_in_turned_order_are_found_beside_others_of_their_kind_too() -> None:
    found = of_workers()
    assert ask(found, "~w#0/tool_call:t#0", "4") == ("input", 2)
    missed = found.match("tool_call", "t", "~w#0/tool_call:t#1", "3")
    assert isinstance(missed, Missed)
    assert (missed.kind, missed.step and missed.step.seq, missed.instead and missed.instead.seq) == ("order", 1, 2)


def test_two_calls_of_the_only_task_in_turned_order_are_found_at_once() -> None:
    found = RecordedRun(run(step(1, "~w#0/tool_call:t#0", "3"), step(2, "~w#0/tool_call:t#1", "4")))
    assert ask(found, "~w#0/tool_call:t#0", "4") == ("order", 1)


def test_a_worker_that_took_nothing_while_it_was_recorded_may_be_faster_than_the_others_now() -> None:
    found = RecordedRun(
        run(*(step(seq, f"~w#{(seq - 1) % 2}/tool_call:t#{(seq - 1) // 2}", str(seq)) for seq in range(1, 7)))  # 1 3 5, and 2 4 6
    )
    assert ask(found, "~w#0/tool_call:t#0", "1") == ("path", 1)
    assert ask(found, "~w#3/tool_call:t#0", "4") == ("input", 4)
    assert ask(found, "~w#0/tool_call:t#1", "5") == ("input", 5)


def test_where_one_worker_did_all_others_that_were_started_may_do_some_of_it_now() -> None:
    def started(parent: str, path: str) -> bool:
        return (parent, path) in (("", "~w#0"), ("", "~w#1"))

    def asked(path: str, text: str) -> tuple[str, int | None]:
        told = found.match("tool_call", "t", path, text, forked=started)
        if isinstance(told, Found):
            found.used.add(told.step.seq)
            found.claimed(told.step, path, None)
        return ("by " + told.by if isinstance(told, Found) else told.kind), None if told.step is None else told.step.seq

    found = RecordedRun(run(*(step(seq, f"~w#0/tool_call:t#{seq - 1}", str(seq)) for seq in range(1, 5))))
    assert asked("~w#0/tool_call:t#0", "2") == ("by input", 2)
    assert asked("~w#1/tool_call:t#0", "1") == ("by input", 1)
    assert asked("~w#0/tool_call:t#1", "4") == ("by input", 4)

    found = RecordedRun(run(*(step(seq, f"~w#0/tool_call:t#{seq - 1}", str(seq)) for seq in range(1, 5))))
    assert asked("~w#0/tool_call:t#0", "2") == ("by input", 2)
    assert asked("~w#0/tool_call:t#1", "1") == ("order", 1)


def test_a_worker_of_items_that_are_all_alike_may_take_one_more_than_it_did() -> None:
    steps = [
        step(2 * worker + number + 1, f"~w#{worker}/tool_call:t#{number}", asked)
        for worker in range(3)
        for number, asked in enumerate(("search", "answer"))
    ]
    recorded = RecordedRun(run(*steps))
    made = [(0, 0, "search"), (0, 1, "answer"), (0, 2, "search"), (0, 3, "answer"), (2, 0, "search"), (2, 1, "answer")]
    assert all(ask(recorded, f"~w#{worker}/tool_call:t#{number}", asked)[0] in ("path", "input") for worker, number, asked in made)
    assert not list(recorded.left(()))
    once_more = RecordedRun(run(*steps))
    assert [ask(once_more, f"~w#0/tool_call:t#{n}", asked)[0] for n, asked in enumerate(("search", "answer", "answer"))] == [
        "path",
        "path",
        "already_used",
    ]

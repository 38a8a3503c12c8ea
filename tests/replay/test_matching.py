"""Finding the recorded step of a call, on runs made by hand."""

from typing import Any

from spanreplay.replay.candidates import Recording
from spanreplay.replay.matching import Found, Missed, RecordedRun, comparable
from spanreplay.replay.model import Run, Step, Versions


def step(seq: int, path: str | None, asked: str, *, end: int | None = None, **changes: Any) -> Step:
    kind, _, name = (path or "tool_call:t#0").rpartition("/")[2].rpartition("#")[0].partition(":")
    given: dict[str, Any] = {
        "seq": seq,
        "kind": kind,
        "name": name,
        "call_id": None,
        "trace_id": "1" * 32,
        "span_id": f"{seq:016x}",
        "parent_seq": None,
        "requested_by": None,
        "attempt": 1,
        "retry_of": None,
        "agent": None,
        "input": None,
        "output": None,
        "outcome": "ok",
        "error": None,
        "usage": {},
        "effect": None,
        "action_id": None,
        "decision": None,
        "target": None,
        "resources": (),
        "versions": {},
        "started_ns": seq,
        "ended_ns": seq + 1,
        "overlaps": (),
        "grade": "exact",
        "reasons": (),
        "dialect": "spanreplay",
        "path": path,
        "process": "p",
        "seq_start": seq * 10,
        "seq_end": seq * 10 + 5 if end is None else end,
        "typed_input": asked,
    }
    return Step(**{**given, **changes})


def run(*steps: Step, **changes: Any) -> Run:
    given: dict[str, Any] = {
        "run_id": "r",
        "trace_ids": (),
        "session_id": None,
        "agent_name": "a",
        "agent_version": None,
        "started_ns": 0,
        "ended_ns": None,
        "outcome": "ok",
        "error": None,
        "grade": "exact",
        "grade_reasons": (),
        "definition": None,
        "input": None,
        "output": None,
        "artifacts": (),
        "versions": Versions(),
        "steps": steps,
        "unclassified_spans": 0,
        "orphan_spans": 0,
    }
    return Run(**{**given, **changes})


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
    assert sorted(recorded.cover(recorded.by_seq[1])) == [2, 3]


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


def test_ten_thousand_identical_calls_take_no_longer_each_than_ten() -> None:
    recorded = RecordedRun(run(*(step(i + 1, f"tool_call:t#{i}", "1") for i in range(10_000))))
    assert all(ask(recorded, f"tool_call:t#{i}", "1") == ("path", i + 1) for i in range(10_000))

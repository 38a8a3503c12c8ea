"""The verdict of a re-execution as text: how to let through what was refused."""

from typing import Any

import pytest

from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.verdict import Verdict
from spanreplay.replay.reports.verdict import render_verdict


def verdict(**fields: Any) -> Verdict:
    given: dict[str, Any] = {
        "differences": (), "refusals": (), "notices": (), "recorded": 1, "matched": 1, "matched_by_input": 0, "covered": 0,
        "order_relaxed": 0, "telemetry_dropped": 0, "processes": 1, "isolation": "level 1", **fields,
    }  # fmt: skip
    return Verdict(**given)


@pytest.mark.parametrize(
    ("action", "target", "options"),
    [
        ("write", "/o/a.txt", "--allow-write /o/a.txt"),
        ("delete", "/o/a to b", "--allow-write '/o/a to b'"),
        ("rename", "/o/a to /o/b", "--allow-write /o/a --allow-write /o/b"),
        ("rename", "/o/a to b to /o/c", None),
        ("link", "/o/b for /o/a", "--allow-write /o/b --allow-write /o/a"),
        ("link", "/o/b", "--allow-write /o/b"),
        ("write", "/proc/7/mem", None),
        ("connect", "example.com:443", None),
    ],
)
def test_the_hint_of_a_refusal_names_every_path_or_none(action: str, target: str, options: str | None) -> None:
    refusal = {"action": action, "target": target, "text": "…"}
    lines = render_verdict(verdict(refusals=(refusal,)), [], colour=False).splitlines()
    hints = [line for line in lines if "--allow-write" in line]
    assert hints == ([f"  to let the agent write it: {options}"] if options else [])


def test_what_was_tried_again_and_again_is_told_once() -> None:
    tried = [("connect", "a:1"), ("write", "/o/a"), ("connect", "a:1"), ("connect", "b:1"), ("write", "/o/a"), ("connect", "a:1")]
    refusals = tuple({"action": action, "target": target, "text": f"tried to {action} {target}"} for action, target in tried)
    lines = render_verdict(verdict(refusals=refusals), [], colour=False).splitlines()
    assert [line for line in lines if "tried" in line or "allow" in line] == [
        "refused: tried to connect a:1 (3 times)",
        "refused: tried to write /o/a (2 times)",
        "  to let the agent write it: --allow-write /o/a",
        "refused: tried to connect b:1",
    ]
    assert "6 actions on the outside refused" in lines


def difference(**fields: Any) -> Difference:
    given: dict[str, Any] = {"kind": "input", "run_id": "r", "step": 1, "name": "tool_call t", "field": "arguments.x", "recorded": "1"}
    return Difference(**{**given, "actual": "2", **fields})


def shown(*differences: Difference, whole: bool = False, **fields: Any) -> list[str]:
    return render_verdict(verdict(differences=differences, **fields), [], colour=False, whole=whole).splitlines()


def test_other_values_and_the_nearest_calls_are_named() -> None:
    near = {"step": 3, "name": "tool_call t", "answered": True, "differs": 2, "field": "arguments.x", "recorded": "1", "actual": "9"}
    same = {"step": 4, "name": "tool_call t", "answered": False, "differs": 0}
    lines = shown(difference(also=tuple(f"arguments.y{i}" for i in range(8)), nearest=(near, same)))
    assert "  also: arguments.y0, arguments.y1, arguments.y2, arguments.y3, arguments.y4, arguments.y5 and 2 more" in lines
    assert "    near: step 3, tool_call t (it has answered a call): arguments.x: recorded 1, actual 9, and 1 more" in lines
    assert "    near: step 4, tool_call t: asked the same" in lines


def test_what_came_in_place_of_a_recorded_call_has_its_own_name() -> None:
    missing = {"kind": "order", "field": None, "recorded": '{"q": "porto"}', "actual": '{"x": 2}', "instead": "step 3, tool_call put"}
    lines = shown(difference(**missing, detail="not made"))
    assert lines[2:5] == ['    recorded: {"q": "porto"}', '    instead:  step 3, tool_call put: {"x": 2}', "  not made"]


def test_a_diff_is_shown_for_long_values_and_all_of_it_on_request() -> None:
    diff = "\n".join(["--- recorded", "+++ actual", "@@ -1 +1 @@", *(f"-line {i}" for i in range(30))])
    long = {"recorded": '"' + "x" * 200 + '"', "diff": diff}
    lines = shown(difference(**long))
    assert "    -line 14" in lines
    assert "    … 15 more lines; -v shows them" in lines
    assert "    -line 29" in shown(difference(**long), whole=True)
    assert not any("@@" in line for line in shown(difference(diff=diff)))
    assert "    -line 29" in shown(difference(diff=diff), whole=True)


def test_what_differs_again_is_one_line_and_one_difference() -> None:
    lines = shown(difference(), difference(step=2, same_as=1), difference(step=5, same_as=1), matched_by_place=3)
    assert "the same again: arguments.x as at step 1, at steps 2, 5" in lines
    assert "1 difference" in lines
    assert lines[0].endswith("; 3 matched by place, though their input differs")


def test_what_was_let_differ_is_named_and_listed_on_request() -> None:
    ignored = ({"run_id": "r", "step": 2, "field": "arguments.note", "recorded": '"a"', "actual": '"b"'},)
    fields: dict[str, Any] = {"ignored": ignored, "matched_by_tolerance": 1, "matched_by_renaming": 2}
    assert "note: let differ: arguments.note" in shown(**fields)
    assert '  step 2, arguments.note: recorded "a", actual "b"' in shown(**fields, whole=True)
    assert "2 matched by renaming" in shown(**fields)[0]
    document = verdict(**fields).to_json()
    assert (document["ignored"], document["steps"]["matched_by_tolerance"], document["versions"]) == (list(ignored), 1, None)


def test_a_fork_counts_what_answered_and_not_what_could_have() -> None:
    left = {"run": "r", "step": 2, "name": "tool_call t"}
    first = render_verdict(verdict(matched=3, left=(left,)), [], colour=False).splitlines()[0]
    assert first == "3 recorded steps answered a call"
    assert render_verdict(verdict(matched=1, left=(left,)), [], colour=False).startswith("1 recorded step answered a call\n")


def test_what_ran_inside_an_answered_tool_behind_the_fork_is_named_by_its_numbers() -> None:
    told = render_verdict(verdict(inside=(("r", 4), ("r", 5))), [], colour=False)
    assert "the tool around it was answered whole: calls (steps 4, 5)" in told


def test_probes_of_libraries_are_one_line_each_named_once() -> None:
    looked = [("process", "uname -p"), ("process", "/usr/bin/gcc -Wl,-t -o /tmp/x"), ("process", "uname -p"), ("lookup", "here\x1b")]
    notices = tuple({"action": action, "target": target} for action, target in looked)
    lines = render_verdict(verdict(notices=notices), [], colour=False).splitlines()
    assert "note: refused, as libraries' probes and no attempts: uname -p, gcc -Wl,-t, lookup here\\e" in lines

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.runs.spans import agent, asking, chat, fixture, own, own_root, said, span, tool, wired
from spanreplay.replay.model import Run
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.reports.json import document
from spanreplay.replay.reports.tables import render_runs, render_table
from spanreplay.replay.reports.text import render_run, render_step, render_tree
from spanreplay.replay.showing import duration, moment, safe, short, size
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import STATUS_ERROR, Record
from spanreplay.store.rows import RunRow

NASTY = "\x1b[2Jx\x07\r\x9b31m\u202egnp.exe\u2066\u200b\ud800\x00"


def one(records: Sequence[Record]) -> Run:
    (run,) = build_runs(records)
    return run


def test_a_run_is_told_in_order() -> None:
    text = render_run(one(fixture("forecast.json")), colour=False)
    assert text.splitlines() == [
        "run 7d1f0e2c9b8a · forecaster · ok · replays by meaning",
        "  2025-10-09 08:53:20.000 UTC · 950 ms · 4 steps · 60 tokens in, 21 out · session conv-7",
        '  input   "Oslo and Lima?"',
        "",
        "  1   model call  m-large  180 ms · 20 tokens in, 12 out",
        '      → asks for get_weather(city="Oslo")',
        '      → asks for get_weather(city="Lima")',
        '  2 ┃ tool call   get_weather(city="Oslo")  200 ms · asked for by 1 · beside 3',
        '      → {"temp": -3}',
        '  3 ┃ tool call   get_weather(city="Lima")  450 ms · asked for by 1 · beside 2  timeout',
        "      ✗ TimeoutError: no answer in 450 ms",
        "  4   model call  m-large  200 ms · 40 tokens in, 9 out",
        '      → "Oslo is cold; Lima did not answer."',
        "",
        '  output  "Oslo is cold; Lima did not answer."',
        "",
        "  4 steps were recorded by other instrumentation (gen_ai): the messages are here, not the exact exchange  (recorded-by-others)",
    ]


def test_attempts_effects_and_mixed_grades_are_marked() -> None:
    records = [
        own_root(1, seq=1),
        own(2, 1, "model_call", seq=3, attributes={**wired(), a.STEP_OUTCOME: "error", a.STEP_ERROR: "{}", a.ERROR_TYPE: "RateLimited"}),
        own(3, 1, "model_call", seq=5, attributes={**wired(), a.STEP_ATTEMPT: 2, a.STEP_RETRY_OF: f"{2:016x}"}),
        own(4, 1, seq=7, attributes={a.STEP_EFFECT: "irreversible", a.STEP_INPUT: '{"to":"a"}', a.STEP_OUTCOME: None}, end=None),
    ]
    text = render_run(one(records), colour=False)
    assert "cut short" in text.splitlines()[0]
    assert "attempt 2 after 1" in text
    assert "✗ RateLimited" in text
    line = next(line for line in text.splitlines() if "irreversible" in line)
    assert "not ended" in line
    assert "[cut short]" in line
    assert 'to="a"' in line


@pytest.mark.parametrize("colour", [False, True])
def test_nothing_of_a_trace_reaches_the_terminal_as_control(colour: bool) -> None:
    records: list[Record] = [
        agent(
            1,
            99,
            name=NASTY,
            end=99,
            attributes={a.GEN_AI_INPUT_MESSAGES: said(NASTY), a.GEN_AI_CONVERSATION_ID: NASTY, a.GEN_AI_AGENT_VERSION: NASTY},
        ),
        tool(
            2,
            1,
            name=NASTY,
            call=NASTY,
            args={NASTY: NASTY},
            result=NASTY,
            status=STATUS_ERROR,
            status_message=NASTY,
            attributes={a.ERROR_TYPE: NASTY},
        ),
        chat(3, 1, model=NASTY, attributes={a.GEN_AI_OUTPUT_MESSAGES: asking((NASTY, NASTY, NASTY), text=NASTY)}),
        own(
            4,
            1,
            "model_call",
            run=None,
            attributes=wired(NASTY, **{a.URL_FULL: NASTY, a.WIRE_RESPONSE_HEADERS: json.dumps([[NASTY, NASTY]])}),
        ),
    ]
    run = one(records)
    row = RunRow(run_id=NASTY, trace_ids=(), agent=NASTY, model=NASTY, outcome=NASTY, grade=NASTY)
    texts = [render_run(run, colour=colour), render_tree(records, colour=colour), render_runs([row], colour=colour)]
    texts += [render_step(step, colour=colour) for step in run.steps]
    texts.append(render_table([NASTY], [[NASTY], [{"k": NASTY}]], colour=colour))
    for text in texts:
        plain = text
        for code in ("0", "1", "2", "31", "32", "33", "36"):  # the only sequences we write ourselves
            plain = plain.replace(f"\x1b[{code}m", "") if colour else plain
        left = [c for c in plain if c != "\n" and safe(c) != c]
        assert not left, left
        text.encode("utf-8")


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_safe_text_is_one_safe_line(text: str) -> None:
    shown = safe(text)
    assert safe(shown) == shown
    assert "\n" not in shown
    assert shown.isprintable() or all(c.isprintable() or not safe(c) != c for c in shown)


def test_long_values_are_shortened_with_their_size() -> None:
    assert short("x" * 5000) == '"' + "x" * 99 + "… (5 kB)"
    assert short({"a": 1}) == '{"a": 1}'
    run = one([tool(1, args=json.dumps({"q": "y" * 9000}), result="z" * 9000)])
    assert max(map(len, render_run(run, colour=False).splitlines())) < 300
    assert "z" * 9000 in render_step(run.steps[0], colour=False), "one step is shown whole"


def test_a_step_is_shown_whole() -> None:
    run = one([own_root(1, seq=1), own(2, 1, "model_call", seq=3, attributes=wired('{"id":\n"r"}'))])
    text = render_step(run.steps[0], colour=False)
    for part in (
        "step 1",
        "replays exactly",
        "POST http://127.0.0.1/v1/chat/completions",
        "200",
        "content-type: application/json",
        '{"model":"m"}',
        "whole",
    ):
        assert part in text


def test_colours_only_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    run = one([tool(1)])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in render_run(run)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in render_run(run)
    assert "\x1b[" not in render_run(run, colour=False)


def test_the_tree_shows_every_span_and_what_is_wrong_with_its_place() -> None:
    records: list[Record] = [
        span(1, 99, name="top", end=50),
        tool(2, 1, start=3),
        span(3, 1, name="first", start=1),
        span(4, 4, name="loop", start=9),
    ]
    lines = render_tree(records, colour=False).splitlines()
    assert [line.split()[0] for line in lines] == ["trace", "top", "first", "execute_tool", "loop"]
    assert "parent 0000000000000063 is not here" in lines[1]
    assert lines[2].startswith("    first")
    assert "tool call, gen_ai" in lines[3]
    assert "its parent is inside it" in lines[4]
    assert render_tree([], colour=False) == "no spans"
    deep: list[Record] = [span(n, n - 1 or None, start=n) for n in range(1, 3000)]
    assert len(render_tree(deep, colour=False).splitlines()) == 3000


def test_the_list_of_runs() -> None:
    rows = [
        RunRow(
            run_id="a" * 32,
            trace_ids=(),
            agent="helper",
            model="m",
            n_steps=12,
            outcome="ok",
            grade="exact",
            ended_ns=10**9,
            input_tokens=3,
        ),
        RunRow(run_id="b" * 32, trace_ids=(), n_steps=3),
    ]
    lines = render_runs(rows, colour=False).splitlines()
    assert lines[0].split() == ["run", "started", "agent", "model", "steps", "outcome", "grade", "took", "tokens"]
    assert "replays exactly" in lines[1]
    assert "3 / –" in lines[1]
    assert "cut short" in lines[2]
    assert lines[1].index("12") + 2 == lines[2].index(" 3 ") + 2, "numbers are aligned to the right"
    assert render_runs([], colour=False) == "no runs"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (500, "0 us"),
        (500_000, "500 us"),
        (1_500_000, "2 ms"),
        (1_500_000_000, "1.50 s"),
        (61 * 10**9, "1 min 1 s"),
        (3601 * 10**9, "1 h 0 min"),
        (-1, "ends before it starts"),
        (None, "not ended"),
    ],
)
def test_durations(ns: int | None, text: str) -> None:
    assert duration(0, ns) == text


def test_sizes_and_times() -> None:
    assert [size(n) for n in (0, 999, 1000, 12_345, 5_000_000)] == ["0 bytes", "999 bytes", "1 kB", "12.3 kB", "5 MB"]
    assert moment(0) == "1970-01-01 00:00:00.000 UTC"
    assert moment(2**70) == f"{2**70} ns"


# ---- JSON ------------------------------------------------------------------------------------------------------------


def test_the_document_is_as_documented() -> None:
    made = document([one(fixture("forecast.json"))], format="otlp-json", spans=5, fidelity=[{"code": "time-us", "detail": "…", "spans": 5}])
    assert list(made) == ["schema", "source", "runs"]
    assert made["source"] == {"format": "otlp-json", "spans": 5, "fidelity": [{"code": "time-us", "detail": "…", "spans": 5}]}
    (run,) = made["runs"]
    assert list(run) == [
        "run_id", "trace_ids", "session_id", "agent", "started_ns", "ended_ns", "outcome", "grade", "grade_reasons", "definition", "input",
        "output", "artifacts", "versions", "steps", "unclassified_spans", "orphan_spans", "behaviour",
    ]  # fmt: skip
    assert list(run["steps"][0]) == [
        "seq", "kind", "name", "call_id", "span_id", "trace_id", "parent_seq", "requested_by", "attempt", "retry_of", "agent", "input",
        "output", "outcome", "error", "usage", "effect", "action_id", "decision", "target", "resources", "versions", "started_ns",
        "ended_ns", "overlaps", "grade", "dialect",
    ]  # fmt: skip
    assert (run["started_ns"], run["steps"][0]["started_ns"]) == ("1760000000000000000", "1760000000010000000")
    assert list(run["steps"][0]["input"]) == ["messages", "system", "tools", "params"]
    assert list(run["steps"][0]["output"]) == ["messages", "finish"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_the_document_is_strict_json(value: Any) -> None:
    made = document([one([tool(1, result={"x": [value]})])], format="f", spans=1)
    assert json.loads(json.dumps(made, allow_nan=False))["runs"][0]["steps"][0]["output"]["result"]["x"][0] in (
        "NaN",
        "Infinity",
        "-Infinity",
    )


def test_what_was_not_recorded_is_a_sentence() -> None:
    untaped = json.dumps([{"what": "database opened", "target": "my ck.db"}, {"what": "connection made", "target": "h:1"}, "odd"])
    text = render_run(one([own_root(1, seq=1, attributes={a.RUN_UNTAPED: untaped})]), colour=False)
    assert text.splitlines()[-3:] == [
        "  not recorded: database opened my ck.db; a replay refuses it unless told --allow-write 'my ck.db'  (untaped)",
        "  not recorded: connection made h:1; a replay refuses it. What stands inside a @tool is answered from the record  (untaped)",
        "  not recorded: odd  (untaped)",
    ]


def test_a_run_without_steps_does_not_replay() -> None:
    run = one([own_root(1, seq=1)])
    assert run.grade == "exact"
    first, *rest = render_run(run, colour=False).splitlines()
    assert first.endswith(" · no steps")
    assert "  no steps" not in rest
    row = RunRow(run_id="r", trace_ids=("t",), outcome="ok", grade="exact", n_steps=0)
    assert "replays exactly" not in render_runs([row], colour=False)
    assert "no steps" in render_runs([row], colour=False)
    assert "replays exactly" in render_runs([dataclasses.replace(row, n_steps=1)], colour=False)


def test_only_counts_that_are_there_are_shown() -> None:
    asked, told = {a.GEN_AI_USAGE_INPUT_TOKENS: 7, a.GEN_AI_USAGE_OUTPUT_TOKENS: -3}, {a.GEN_AI_USAGE_OUTPUT_TOKENS: 5}
    lines = [render_run(build_runs([chat(1, None, attributes=counts)])[0], colour=False) for counts in (asked, told, {**asked, **told})]
    assert " · 7 tokens in\n" in lines[0]
    assert " · 5 tokens out\n" in lines[1]
    assert " · 7 tokens in, 5 out\n" in lines[2]
    assert "-3" not in lines[0], "a negative number is no count"

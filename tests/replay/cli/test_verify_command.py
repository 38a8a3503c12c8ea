"""``verify``: is the record whole?"""

import json
from dataclasses import replace

import pytest

from fixtures.runs.spans import agent, asking, chat, tool
from spanreplay.semconv import attributes as a
from spanreplay.store.store import Store
from support.command_line import CommandLine


def test_a_recorded_run_is_whole(demo: CommandLine) -> None:
    done = demo("verify")
    assert (done.code, done.out.strip().rpartition(": ")[2]) == (0, "whole")
    document = demo("verify", "--json").json
    assert (document["schema"], document["whole"]) == (1, True)
    assert [run["gaps"] for run in document["runs"]] == [[]]


def test_a_cut_value_is_named_with_span_field_limit_and_what_to_change(spanreplay: CommandLine) -> None:
    whole = chat(2, 1)
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 4000}]}])[:2048]
    path = spanreplay.file("t.json", agent(1), replace(whole, attributes={**whole.attributes, a.GEN_AI_INPUT_MESSAGES: text}), tool(3, 1))
    done = spanreplay("verify", path)
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if "(cut)" in line]
    assert whole.span_id in line
    assert f"{a.GEN_AI_INPUT_MESSAGES} stops in the middle of its JSON after 2048 bytes" in line
    assert "distributor.max_attribute_bytes: 0" in done.out
    document = spanreplay("verify", path, "--json").json
    (gap,) = document["runs"][0]["gaps"]
    assert (gap["span_id"], gap["field"], gap["limit"], gap["code"]) == (whole.span_id, a.GEN_AI_INPUT_MESSAGES, 2048, "cut")


def test_names_that_others_gave_stay_in_their_line(spanreplay: CommandLine) -> None:
    whole = chat(2, 1)
    cut = replace(whole, name="a\n" * 2000, attributes={**whole.attributes, a.GEN_AI_INPUT_MESSAGES: '[{"role": "us'})
    done = spanreplay("verify", spanreplay.file("t.json", replace(agent(1), attributes={a.GEN_AI_AGENT_NAME: "b\n" * 2000}), cut))
    assert done.code == 1
    assert max(map(len, done.out.splitlines())) < 500
    assert len(done.out.splitlines()) < 10
    assert "a\\na\\n" in done.out


def test_without_a_run_nothing_is_verified(spanreplay: CommandLine) -> None:
    path = spanreplay.folder / "none.json"
    path.write_text('{"resourceSpans": []}', encoding="utf-8")
    done = spanreplay("verify", path)
    assert (done.code, done.out) == (1, "no runs: there is nothing to verify\n")


def test_a_source_that_was_cut_is_not_whole_although_what_is_left_is(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", agent(1), chat(2, 1))
    text = path.read_text(encoding="utf-8")
    path.write_text(text + text[: len(text) // 2], encoding="utf-8")
    done = spanreplay("verify", path)
    assert done.code == 1
    assert done.out.startswith("the source: ")


def test_content_that_no_record_refers_to_is_noted(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(tool(1), attributes={**tool(1).attributes, "http.body": "body " * 2000})
    assert spanreplay("import", spanreplay.file("t.json", long, tool(2))).code == 0
    assert "note:" not in spanreplay("verify").out
    with Store.open(spanreplay.store)._database.writing() as connection:
        connection.execute("UPDATE spans SET attributes = '{}' WHERE contains(attributes, 'http.body')").fetchall()
    assert "no record refers to" in spanreplay("verify").out
    (remark,) = json.loads(spanreplay("verify", "--json").out)["remarks"]
    assert remark["code"] == "content-unreferred"
    assert remark["bytes"] >= 10_000
    monkeypatch.setattr("spanreplay.replay.rebuilding.unreferred.MOST_SPANS", 1)
    assert json.loads(spanreplay("verify", "--json").out)["remarks"] == []


def test_what_a_store_lacks_is_not_told_as_dropped_where_it_was_recorded(spanreplay: CommandLine) -> None:
    long = replace(tool(1), attributes={**tool(1).attributes, "http.body": "body " * 2000})
    assert spanreplay("import", spanreplay.file("t.json", long)).code == 0
    with Store.open(spanreplay.store)._database.writing() as connection:
        connection.execute("DELETE FROM blobs WHERE bytes > 9000").fetchall()
    done = spanreplay("verify")
    assert (done.code, "(changed-in-store)" in done.out, "dropped" in done.out) == (1, True, False)


def test_results_at_the_end_that_no_model_was_told_are_noted(spanreplay: CommandLine) -> None:
    asks = {a.GEN_AI_OUTPUT_MESSAGES: asking(("c1", "search", {}))}
    path = spanreplay.file("t.json", agent(1, end=100), chat(2, 1, start=10, attributes=asks), tool(3, 1, start=20, call="c1"))
    done = spanreplay("verify", path)
    assert (done.code, "note: run " in done.out) == (0, True)
    assert json.loads(spanreplay("verify", path, "--json").out)["remarks"][0]["code"] == "unread-results"

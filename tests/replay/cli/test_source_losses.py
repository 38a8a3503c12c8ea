"""What a file had lost is part of the runs in it: the same from the file and from the store, until a whole copy arrives."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat, tool
from spanreplay.replay.writers import jaeger_json
from spanreplay.spans import otlp_json
from support.command_line import CommandLine

RECORDS = (
    replace(agent(1), start_ns=100, end_ns=900),
    replace(chat(2, 1), start_ns=200, end_ns=300),
    replace(tool(3, 1), name="a tool", start_ns=400, end_ns=500),
)
OTHER = "b" * 32


def written(*records: Any) -> str:
    return json.dumps(otlp_json.encode(records))


def cut() -> bytes:
    text = written(*RECORDS)
    return text[: text.rindex('{"traceId"') + 40].encode()


def damaged_line() -> bytes:
    return (written(*RECORDS) + '\n{"resourceSpans": nothing}\n').encode()


def refused_span() -> bytes:
    return written(*RECORDS).replace('"400"', '"18446744073709551615"').encode()


def no_utf8() -> bytes:
    return written(*RECORDS).encode().replace(b'"a tool"', b'"a tool \xff"')


def partial() -> bytes:
    return json.dumps({"trace": json.loads(written(*RECORDS)), "status": "PARTIAL", "message": "too large"}).encode()


def verified(command: CommandLine, *arguments: Any) -> tuple[int, list[Any]]:
    done = command("verify", *arguments, "--json")
    return done.code, [(run["whole"], sorted({gap["code"] for gap in run["gaps"]})) for run in done.json["runs"]]


@pytest.mark.parametrize("make", [cut, damaged_line, refused_span, no_utf8, partial])
def test_a_loss_makes_the_run_incomplete_from_the_file_and_from_the_store(make: Any, spanreplay: CommandLine) -> None:
    path = spanreplay.folder / "t.json"
    path.write_bytes(make())
    code, runs = verified(spanreplay, path)
    assert code == 1
    assert [whole for whole, _ in runs] == [False]
    assert "source-loss" in runs[0][1]
    spanreplay("import", path)
    assert verified(spanreplay, "last") == (1, runs)
    (row,) = spanreplay("runs", "--json").json["runs"]
    assert row["grade"] == "incomplete"
    spanreplay("import", path)
    assert verified(spanreplay, "last") == (1, runs), "importing it again changes nothing"


def test_a_whole_copy_makes_the_loss_good(spanreplay: CommandLine) -> None:
    path = spanreplay.folder / "t.json"
    path.write_bytes(cut())
    spanreplay("import", path)
    assert verified(spanreplay, "last")[0] == 1
    less = spanreplay.file("less.json", RECORDS[0])
    spanreplay("import", less)
    assert verified(spanreplay, "last")[0] == 1, "it has fewer spans than the cut one"
    spanreplay("import", spanreplay.file("whole.json", *RECORDS))
    assert verified(spanreplay, "last") == (0, [(True, [])])


def test_another_store_passes_on_what_its_inputs_had_lost(spanreplay: CommandLine, tmp_path: Path) -> None:
    path = spanreplay.folder / "t.json"
    path.write_bytes(cut())
    spanreplay("import", path, "--store", tmp_path / "one")
    spanreplay("import", tmp_path / "one")
    assert verified(spanreplay, "last") == (1, [(False, ["source-loss"])])


def test_a_loss_of_a_known_trace_leaves_the_others_whole(spanreplay: CommandLine) -> None:
    others = [replace(record, trace_id=OTHER) for record in RECORDS]
    path = spanreplay.folder / "t.json"
    path.write_bytes(refused_span() + b"\n" + written(*others).encode())
    document = spanreplay("verify", path, "--json").json
    lost = {run["run_id"]: [gap["code"] for gap in run["gaps"] if gap["code"] == "source-loss"] for run in document["runs"]}
    assert sorted(lost.values()) == [[], ["source-loss"]]
    path.write_bytes(damaged_line() + written(*others).encode())
    document = spanreplay("verify", path, "--json").json
    assert [[gap["code"] for gap in run["gaps"]] for run in document["runs"]] == [["source-loss"]] * 2, "a line may be of any trace"


def test_an_attribute_that_cannot_be_read_is_named_and_not_said_to_be_dropped_before(spanreplay: CommandLine) -> None:
    path = spanreplay.folder / "t.json"
    document = json.loads(written(*RECORDS))
    attributes = document["resourceSpans"][0]["scopeSpans"][0]["spans"][2]["attributes"]
    attributes.append({"key": "app.count", "value": {"intValue": "many"}})
    path.write_text(json.dumps(document), encoding="utf-8")
    spanreplay("import", path)
    for target in (path, "last"):
        (gap,) = spanreplay("verify", target, "--json").json["runs"][0]["gaps"]
        assert gap["code"] == "source-loss"
        assert "the text 'many' in attribute 'app.count'" in gap["detail"]


def test_an_answer_that_says_that_it_lacks_something_is_a_loss(spanreplay: CommandLine) -> None:
    path = spanreplay.folder / "t.json"
    long = [replace(record, start_ns=record.start_ns * 10**6, end_ns=(record.end_ns or 0) * 10**6) for record in RECORDS]
    answer = json.loads(jaeger_json.write(long))
    path.write_text(json.dumps({**answer, "errors": [{"code": 500, "msg": "storage"}]}), encoding="utf-8")
    assert verified(spanreplay, path) == (1, [(False, ["source-loss"])])


@pytest.mark.parametrize(
    ("metas", "missing"),
    [
        ([{"page": 1, "limit": 1, "totalItems": 3, "totalPages": 3}], 2),
        ([{"page": 1, "limit": 1, "totalItems": 2, "totalPages": 2}, {"page": 2, "limit": 1, "totalItems": 2, "totalPages": 2}], 0),
        ([{"limit": 1, "cursor": "next"}], 1),
        ([{"limit": 1, "cursor": "next"}, {"limit": 1, "cursor": None}], 0),
    ],
)
def test_pages_that_langfuse_has_and_the_file_has_not_are_a_loss(metas: list[Any], missing: int, spanreplay: CommandLine) -> None:
    pages = []
    for number, meta in enumerate(metas):
        times = {"startTime": f"2026-01-01T00:00:0{number}.000Z", "endTime": f"2026-01-01T00:00:0{number}.500Z"}
        row = {"id": f"o{number}", "traceId": "t", "parentObservationId": None, "type": "GENERATION", "name": "llm", **times}
        pages.append(json.dumps({"data": [{**row, "input": "q", "output": "a"}], "meta": meta}))
    path = spanreplay.folder / "t.jsonl"
    path.write_text("\n".join(pages), encoding="utf-8")
    told = [e["spans"] for e in spanreplay("verify", path, "--json").json["source"]["fidelity"] if e["code"] == "pages-missing"]
    assert told == ([missing] if missing else [])


def test_a_span_that_a_file_has_twice_with_other_content_is_told(spanreplay: CommandLine) -> None:
    other = replace(RECORDS[2], attributes={**RECORDS[2].attributes, "gen_ai.tool.call.result": '"other"'})
    for records, told in (((*RECORDS, other), True), ((*RECORDS, RECORDS[2]), False)):
        reasons = spanreplay("show", spanreplay.file("t.json", *records), "--json").json["runs"][0]["grade_reasons"]
        assert any(reason["code"] == "other-version" for reason in reasons) == told


@pytest.mark.parametrize("form", ["otlp-json", "otlp-proto", "jaeger", "parquet"])
@pytest.mark.parametrize("make", [cut, no_utf8])
def test_an_export_says_what_was_lost_before_it_was_made(make: Any, form: str, spanreplay: CommandLine) -> None:
    path, out = spanreplay.folder / "t.json", spanreplay.folder / "out"
    path.write_bytes(make())
    said = [gap["detail"] for gap in spanreplay("verify", path, "--json").json["runs"][0]["gaps"] if gap["code"] == "source-loss"]
    spanreplay("import", path)
    assert spanreplay("export", "last", "--format", form, "-o", out).code == 0
    code, runs = verified(spanreplay, out)
    assert (code, runs[0][0]) == (1, False)
    there = [gap["detail"] for gap in spanreplay("verify", out, "--json").json["runs"][0]["gaps"] if gap["code"] == "source-loss"]
    assert there == said
    if form == "jaeger":  # which rounds times
        return
    again = spanreplay("import", out, "--json").json["imports"][0]
    assert (again["new"], again["changed"], again["beside"]) == (0, 0, 0), "the spans are those that were imported"
    spanreplay("export", "last", "--format", form, "-o", spanreplay.folder / "again")
    assert (spanreplay.folder / "again").read_bytes() == out.read_bytes()

"""``import``: nothing lost, nothing twice."""

import json
import shutil
from pathlib import Path

import pytest

from fixtures.runs.spans import chat, tool
from spanreplay.spans import otlp_proto
from support.command_line import CommandLine

TRACE = "ab" * 16


def test_a_second_import_changes_nothing_and_says_so(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1), tool(2, 1))
    assert spanreplay("import", path).out == f"{path} (otlp-json): 2 new, 0 known already\n"
    before = spanreplay("replay", "--json").raw
    done = spanreplay("import", path)
    assert (done.code, done.out) == (0, f"{path} (otlp-json): nothing new, 2 known already\n")
    assert spanreplay("replay", "--json").raw == before


def test_a_span_with_other_content_is_a_change(spanreplay: CommandLine) -> None:
    spanreplay("import", spanreplay.file("t.json", chat(1, content=False)))
    path = spanreplay.file("t.json", chat(1))
    assert spanreplay("import", path).out == f"{path} (otlp-json): 0 new, 0 known already, 1 changed\n"


def test_what_was_recorded_here_outranks_what_is_imported(demo: CommandLine) -> None:
    demo("export", "last", "-o", "run.json")
    assert " 0 new" not in (line := demo("import", "run.json").out)
    assert "nothing new" in line
    changed = demo.folder / "changed.json"
    changed.write_text((demo.folder / "run.json").read_text().replace("no room in Lisbon", "NO ROOM IN LISBON"))
    before = demo("show").out
    done = demo("import", changed)
    number = int(done.out.partition("; ")[2].split(" ")[0])
    assert number > 1
    assert done.out.endswith(f"; {number} differ from what was recorded here; the recorded ones stay, the others are kept beside them\n")
    assert "nothing new" in demo("import", changed).out
    after = demo("show").out
    assert "NO ROOM" not in after
    (reason,) = [line for line in after.splitlines() if "(other-version)" in line]
    assert f"{number} spans of this run were imported with other content as well" in reason
    assert [line for line in after.splitlines() if line != reason] == before.splitlines() or reason not in before
    assert demo("import", changed, "--json").json["imports"][0]["beside"] == 0


def test_a_folder(spanreplay: CommandLine) -> None:
    folder = spanreplay.folder / "traces"
    folder.mkdir()
    spanreplay.file("traces/a.json", chat(1))
    (folder / "b.pb").write_bytes(otlp_proto.encode([chat(1, trace=TRACE)]))
    (folder / "README.txt").write_text("about these traces")
    done = spanreplay("import", "traces", "--json")
    (one,) = done.json["imports"]
    assert done.code == 0
    assert (one["format"], one["new"], one["unreadable_files"], one["rejected"]) == ("otlp-json+otlp-proto", 2, 1, 0)
    assert "README.txt: byte 0: expected a trace" in done.err


def test_standard_input(spanreplay: CommandLine) -> None:
    data = spanreplay.file("t.json", chat(1)).read_bytes()
    assert spanreplay("import", "-", stdin=data).out == "- (otlp-json): 1 new, 0 known already\n"


def test_one_source_that_cannot_be_read_keeps_no_other_out(spanreplay: CommandLine) -> None:
    first, last = spanreplay.file("a.json", chat(1)), spanreplay.file("z.json", chat(1, trace=TRACE))
    (spanreplay.folder / "bad.json").write_text("no trace")
    done = spanreplay("import", first, "bad.json", "missing.json", last)
    assert done.code == 3
    assert done.out.count("1 new") == 2
    errors = done.err.splitlines()
    assert [e.split(":")[1].strip() for e in errors[:2]] == ["bad.json", "missing.json"]
    assert errors[2] == "Error: 2 sources of 4 could not be read; the others were imported"
    assert len(spanreplay("runs", "--json").json["runs"]) == 2
    document = spanreplay("import", first, "bad.json", "--json")
    assert document.code == 3
    assert [i["same"] for i in document.json["imports"]] == [1]
    assert [e["source"] for e in document.json["errors"]] == ["bad.json"]


def test_no_store_is_made_for_nothing(spanreplay: CommandLine) -> None:
    assert spanreplay("import", "missing.json").code == 3
    assert not spanreplay.store.exists()


def test_another_store_is_a_source(demo: CommandLine) -> None:
    shutil.move(demo.store, demo.folder / "theirs")
    done = demo("import", "theirs")
    assert (done.code, done.err) == (0, "")
    assert "nothing new" in demo("import", "theirs").out
    ours, theirs = demo("replay", "--json").json, demo("replay", "--json", "--store", "theirs").json
    assert ours["runs"] == theirs["runs"]


def test_a_damaged_store_is_no_source(spanreplay: CommandLine) -> None:
    (spanreplay.folder / "theirs").mkdir()
    (spanreplay.folder / "theirs" / "runs.duckdb").write_bytes(b"rubbish" * 10_000)
    done = spanreplay("import", "theirs", spanreplay.file("t.json", chat(1)))
    assert done.code == 3
    assert "1 new" in done.out
    assert "not a database that can be read" in done.err


def test_what_is_left_out_is_counted(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1), chat(2))
    document = json.loads(path.read_text())
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "xyz"
    path.write_text(json.dumps(document))
    done = spanreplay("import", path)
    assert (done.code, done.out) == (0, f"{path} (otlp-json): 1 new, 0 known already, 1 left out\n")
    assert "spans[0].spanId: expected" in done.err
    assert spanreplay("import", path, "-q").err == ""


def test_the_store_is_private_and_invisible_to_git(spanreplay: CommandLine) -> None:
    spanreplay("import", spanreplay.file("t.json", chat(1)), "--store", "made/here")
    store = spanreplay.folder / "made" / "here"
    assert store.stat().st_mode & 0o777 == 0o700
    assert (store / ".gitignore").read_text() == "*\n"


def test_the_default_store_is_in_the_working_folder(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANREPLAY_STORE")
    spanreplay("import", spanreplay.file("t.json", chat(1)))
    assert (spanreplay.folder / ".spanreplay" / "runs.duckdb").exists()


def test_what_was_only_rewritten_is_one_short_line_a_kind_and_the_whole_story_with_v(spanreplay: CommandLine) -> None:
    path = Path(__file__).parents[2] / "recordings" / "langsmith" / "runs" / "spans.json"
    told = spanreplay("import", path).err.splitlines()
    assert len(told) == 2
    assert all(len(line) < 140 and "records: " in line for line in told)
    assert told[-1].endswith("(-v or --json: what to change)")
    whole = spanreplay("import", path, "-v").err
    assert "let the SDK send OpenTelemetry" in whole
    fidelity = spanreplay("import", path, "--json").json["imports"][0]["fidelity"]
    assert all(entry["advice"] for entry in fidelity)
    assert [entry["spans"] for entry in fidelity] == [int(line.split()[0]) for line in told]


@pytest.mark.parametrize("empty", ['{"resourceSpans": []}', '{"resourceMetrics": [{"scopeMetrics": []}]}'])
def test_a_folder_in_which_nothing_is_a_trace_is_refused(empty: str, spanreplay: CommandLine) -> None:
    (spanreplay.folder / "traces").mkdir()
    for name in ("a.json", "b.json"):
        (spanreplay.folder / "traces" / name).write_text(empty)
    done = spanreplay("import", "./traces")
    assert done.code == 3
    assert "found 2 files in a readable format with no span or log record" in done.err

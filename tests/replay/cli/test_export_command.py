"""``export``: what comes out goes back in as it was."""

import json
from pathlib import Path

import pytest

from fixtures.runs.spans import chat, fixture
from spanreplay.cli.export_command import WRITERS
from spanreplay.replay.writer import registry
from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import LogRecord
from support.command_line import CommandLine


@pytest.mark.parametrize("form", ["otlp-json", "otlp-proto", "parquet"])
@pytest.mark.parametrize("to", ["file", "stdout"])
def test_out_and_in_again_is_the_same_run(demo: CommandLine, form: str, to: str) -> None:
    path = demo.folder / "out"
    if to == "file":
        done = demo("export", "last", "--format", form, "-o", path)
        assert (done.code, done.raw) == (0, b"")
        assert done.err.startswith(f"{path}: ")
    else:
        path.write_bytes(demo("export", "last", "--format", form).raw)
    runs = demo("replay", "--json").json["runs"]
    assert demo("import", path, "--store", "empty").code == 0
    assert demo("replay", "--json", "--store", "empty").json["runs"] == runs
    assert demo("replay", "--json", "./out").json["runs"] == runs
    again = demo("export", "--store", "empty", "--format", form).raw
    assert again == path.read_bytes(), "a fixed point"


def test_the_runs_asked_for_are_counted_not_those_around_them(in_command: CommandLine) -> None:
    done = in_command("export", "last", "-o", "run.json")
    assert done.err.endswith("4 spans of 1 run\n"), done.err


def test_a_trace_of_others_is_written_as_it_was_read(spanreplay: CommandLine) -> None:
    records = fixture("forecast.json")
    spanreplay.file("t.json", *records)
    done = spanreplay("export", "./t.json")
    assert list(otlp_json.decode(json.loads(done.raw), "out")) == records


def test_log_records_have_no_place_in_protobuf_and_that_is_said(spanreplay: CommandLine) -> None:
    span = chat(1)
    log = LogRecord(trace_id=span.trace_id, span_id=span.span_id, time_ns=1, body="hello")
    path = spanreplay.file("t.json", span, log)
    done = spanreplay("export", path, "--format", "otlp-proto")
    assert list(otlp_proto.decode(done.raw)) == [span]
    assert "1 log record left out: otlp-proto holds spans only" in done.err
    assert spanreplay("export", path).json["resourceLogs"]


def test_every_writer_can_be_asked_for() -> None:
    assert set(WRITERS) == set(registry())


def test_jaegers_own_json_comes_back_as_the_same_steps(spanreplay: CommandLine) -> None:
    spanreplay.file("t.json", *fixture("forecast.json"))
    done = spanreplay("export", "./t.json", "--format", "jaeger", "-o", "jaeger.json")
    assert done.code == 0, done
    before, after = (spanreplay("replay", path, "--json").json["runs"] for path in ("./t.json", "./jaeger.json"))
    told = ("kind", "name", "input", "output", "outcome", "grade", "overlaps", "requested_by")
    assert [[s[key] for key in told] for s in after[0]["steps"]] == [[s[key] for key in told] for s in before[0]["steps"]]
    assert "time-us" in [entry["code"] for entry in spanreplay("replay", "./jaeger.json", "--json").json["source"]["fidelity"]]
    again = spanreplay("export", "./jaeger.json", "--format", "jaeger").raw
    assert again == (spanreplay.folder / "jaeger.json").read_bytes(), "a fixed point"


def test_a_run_as_chat_messages(demo: CommandLine) -> None:
    lines = [json.loads(line) for line in demo("export", "last", "--format", "messages").out.splitlines()]
    assert [message["role"] for message in lines[0]["messages"]][:3] == ["system", "user", "assistant"]
    called = [call["id"] for line in lines for message in line["messages"] for call in message.get("tool_calls", ())]
    given = [message["tool_call_id"] for line in lines for message in line["messages"] if message["role"] == "tool"]
    assert called == given


def test_a_run_without_messages_writes_none_and_says_so(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1, content=False))
    done = spanreplay("export", path, "--format", "messages")
    assert (done.code, done.raw) == (2, b"")
    assert "no model call of 1 run has its messages" in done.err
    assert spanreplay("export", path, "--format", "messages", "-o", "none.jsonl").code == 2
    assert not (spanreplay.folder / "none.jsonl").exists()


def test_chat_messages_hold_nothing_that_a_terminal_would_obey(spanreplay: CommandLine) -> None:
    said = "\x9b2J \u202e \ud800 \x1b[0m grün"
    path = spanreplay.file("t.json", chat(1, attributes={"gen_ai.input.messages": json.dumps([{"role": "user", "content": said}])}))
    done = spanreplay("export", path, "--format", "messages")
    assert json.loads(done.raw)["messages"][0]["content"] == said
    assert b"\\u009b2J \\u202e \\ud800 \\u001b[0m gr\xc3\xbcn" in done.raw


def test_json_describes_the_file(demo: CommandLine) -> None:
    done = demo("export", "-o", "run.json", "--json")
    document = done.json
    assert list(document) == ["schema", "file", "format", "spans", "left_out", "runs"]
    assert (document["file"], document["format"], document["left_out"]) == ("run.json", "otlp-json", 0)
    assert len(document["runs"]) == 1


@pytest.mark.parametrize("path", ["no/such/folder/run.json", "store/run.json/x"])
def test_a_file_that_cannot_be_written(demo: CommandLine, path: str) -> None:
    done = demo("export", "-o", path)
    assert done.code == 2
    assert done.err.startswith(f"Error: {path} cannot be written: ")


def test_a_file_is_written_whole_or_not_at_all(demo: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    (demo.folder / "run.json").write_text("before")

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    done = demo("export", "-o", "run.json")
    assert (done.code, done.err) == (2, "Error: run.json cannot be written: No space left on device\n")
    assert [p.name for p in demo.folder.iterdir() if p.is_file()] == ["run.json"]
    assert (demo.folder / "run.json").read_text() == "before"


def test_binary_is_not_written_to_a_terminal(demo: CommandLine) -> None:
    demo.terminal = True
    done = demo("export", "--format", "otlp-proto")
    assert (done.code, done.raw) == (2, b"")
    assert "give a file with -o" in done.err

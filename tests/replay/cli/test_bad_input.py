"""Bad input through every command that reads: no traceback, exit 3 with the place and what was expected, the rest kept and counted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.runs.spans import chat, tool
from spanreplay.spans import otlp_json, otlp_proto
from support.command_line import CommandLine

SPAN = tool(1, args='{"q": "x"}')


def document(**span: Any) -> dict[str, Any]:
    made = otlp_json.encode([SPAN])
    made["resourceSpans"][0]["scopeSpans"][0]["spans"][0].update(span)
    return made


def text(**span: Any) -> bytes:
    return json.dumps(document(**span)).encode()


def attribute(value: str) -> bytes:
    """A good span with one more attribute, its value as JSON text."""
    return text().replace(
        b'"attributes": [', b'"attributes": [{"key": "extra", "value": ' + value.encode("utf-8", "surrogatepass") + b"}, ", 1
    )


NOTHING_KEPT = {
    "empty": (b"", "byte 0: expected a trace"),
    "white space": (b" \n\n ", "expected"),
    "binary rubbish": (bytes(range(256)) * 20, "byte 0: expected a trace"),
    "text": (b"Dear diary, today nothing was traced.", "something that begins with 'Dear diary"),
    "json of another kind": (b'{"hello": [1, 2, 3]}', "expected"),
    "wrong types": (b'{"resourceSpans": 7}', "resourceSpans"),
    "empty ids": (text(traceId="", spanId=""), "traceId"),
    "not json": (b'{"resourceSpans": [}', "line 1"),
    "utf-16": (text().decode().encode("utf-16"), "iconv"),
    "cut": (text()[:300], "line 1"),
    "deep": (b'{"resourceSpans": ' + b"[" * 100_000, "expected"),
}

KEPT = {
    "a cut line": (text() + b"\n" + text()[:200], 1),
    "a line of 10 MB": (attribute(json.dumps({"stringValue": "x" * 10_000_000})), 0),
    "deep nesting": (attribute('{"arrayValue": {"values": [' * 60 + "]}}" * 60), 0),
    "a line nested too deeply": (text() + b"\n" + attribute('{"arrayValue": {"values": [' * 2000 + "]}}" * 2000), 1),
    "a key twice": (attribute('{"stringValue": "a"}}, {"key": "extra", "value": {"stringValue": "b"}'), 0),
    "a json key twice": (text().replace(b'"name":', b'"name": "first", "name":', 1), 0),
    "lone surrogates": (attribute('{"stringValue": "\\ud800 \\udfff"}'), 0),
    "NaN": (attribute('{"doubleValue": NaN}'), 0),
    "infinity by name": (attribute('{"doubleValue": "-Infinity"}'), 0),
    "ints over 64 bit": (attribute('{"intValue": "99999999999999999999999999"}'), 0),
    "times over 64 bit": (text() + b"\n" + text(spanId="00000000000000aa", startTimeUnixNano="9" * 30), 1),
    "json of another kind in a line": (text() + b'\n{"hello": 1}\n', 1),
}


@pytest.mark.parametrize("name", NOTHING_KEPT)
def test_input_that_nothing_can_be_kept_of(spanreplay: CommandLine, name: str) -> None:
    data, expected = NOTHING_KEPT[name]
    path = spanreplay.folder / "input"
    path.write_bytes(data)
    for command in ("replay", "import"):
        done = spanreplay(command, "./input")
        assert done.code == 3, done
        assert done.out == ""
        assert done.err.startswith("Error: input: ")
        assert expected in done.err
        assert ": expected " in done.err
        assert len(done.err) < 1000
        assert len(done.err.splitlines()) == 1
    done = spanreplay("show", "-", stdin=data)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("Error: standard input: ")


@pytest.mark.parametrize("name", KEPT)
def test_input_that_something_can_be_kept_of(spanreplay: CommandLine, name: str) -> None:
    data, remarks = KEPT[name]
    path = spanreplay.folder / "input"
    path.write_bytes(data)
    done = spanreplay("replay", "./input", "--json")
    assert done.code == 0, done
    assert [run["steps"][0]["name"] for run in done.json["runs"]] == ["search"]
    assert len(done.err.splitlines()) <= 3
    assert bool(done.err) or not remarks
    for arguments in (["show", "./input", "--step", "1"], ["show", "./input", "--tree"]):
        shown = spanreplay(*arguments)
        assert shown.code == 0, shown
        assert len(shown.out) < 100_000
    imported = spanreplay("import", "./input")
    assert imported.code == 0, imported
    assert "1 new" in imported.out
    exported = spanreplay("export", "./input")
    assert exported.code == 0
    assert exported.json["resourceSpans"]
    again = spanreplay("show", "--json")
    assert again.code == 0, again
    assert again.json["runs"][0]["steps"][0]["input"] == {"arguments": {"q": "x"}}


def test_a_step_that_holds_what_json_does_not(spanreplay: CommandLine) -> None:
    odd = tool(
        1, args='{"a": NaN, "b": [Infinity, -Infinity], "c": 123456789012345678901234567890, "d": "\\ud800"}', result="[" * 300 + "]" * 300
    )
    spanreplay("import", spanreplay.file("odd.json", odd))
    for arguments in (["replay", "--json"], ["show", "--step", "1", "--json"], ["show", "--json"]):
        done = spanreplay(*arguments)
        assert done.code == 0, done
        run = done.json["runs"][0] if "runs" in done.json else {"steps": [done.json["step"]]}
        arguments_read = run["steps"][0]["input"]["arguments"]
        assert arguments_read["b"] == ["Infinity", "-Infinity"]
        assert arguments_read["c"] == 123456789012345678901234567890
        assert arguments_read["d"] == "\ud800"
    assert spanreplay("show").code == 0
    assert spanreplay("show", "--step", "1").code == 0


def test_a_folder_without_anything_readable(spanreplay: CommandLine) -> None:
    folder = spanreplay.folder / "traces"
    folder.mkdir()
    for command in ("show", "import"):
        done = spanreplay(command, "./traces")
        assert (done.code, done.out) == (3, ""), done
        assert "expected a folder with at least one trace, found no file in it" in done.err
    (folder / "notes.txt").write_text("nothing")
    assert "1 file, none readable" in spanreplay("show", "./traces").err


def test_a_file_that_may_not_be_read(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spanreplay.file("t.json", SPAN)
    really: Callable[..., Any] = Path.open

    def refuse(self: Path, *arguments: Any, **more: Any) -> Any:
        if self.name == path.name:
            raise PermissionError(13, "Permission denied", str(self))
        return really(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", refuse)
    for command in ("show", "import"):
        done = spanreplay(command, "./t.json")
        assert (done.code, done.out) == (3, ""), done
        assert "Error: t.json: expected a file that may be read, found no permission to read it" in done.err


def test_protobuf_cut_in_the_middle(spanreplay: CommandLine) -> None:
    data = otlp_proto.encode([chat(i + 1) for i in range(20)])
    (spanreplay.folder / "t.pb").write_bytes(data[: len(data) // 2])
    done = spanreplay("import", "t.pb")
    assert done.code == 0, done
    assert "9 new" in done.out
    assert "1 left out" in done.out
    assert "spans[9]: expected a whole message, found the end of the data" in done.err

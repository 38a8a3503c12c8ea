"""What a TARGET may be, the same for every command."""

import json
import shutil
from pathlib import Path

import pytest

from fixtures.runs.spans import chat, span, tool
from spanreplay.cli.target import is_source, split
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord
from support.command_line import CommandLine

OLD, NEW, OTHER = "ab" * 16, "ac" * 16, "cd" * 16


def run_of(trace: str, start: int, name: str = "search") -> SpanRecord:
    return tool(1, trace=trace, start=start * 10**9, name=name)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of three runs, the newest ``OTHER``, and the same runs in a file and a folder."""
    folder = tmp_path_factory.mktemp("three")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPANREPLAY_STORE", str(folder / "store"))
        program = CommandLine(patch, folder)
        path = program.file("three.json", run_of(OLD, 1), run_of(NEW, 2), run_of(OTHER, 3))
        (folder / "traces").mkdir()
        (folder / "traces" / "three").write_bytes(path.read_bytes())
        assert program("import", path).code == 0
    return folder


@pytest.fixture
def three(spanreplay: CommandLine, three_runs: Path) -> CommandLine:
    shutil.copytree(three_runs, spanreplay.folder, dirs_exist_ok=True)
    return spanreplay


def shown(three: CommandLine, target: str, stdin: bytes = b"") -> list[str]:
    done = three("show", target, "--json", stdin=stdin)
    assert done.code == 0, done
    return [run["run_id"] for run in done.json["runs"]]


def test_the_default_is_the_last_run(three: CommandLine) -> None:
    assert [r["run_id"] for r in three("show", "--json").json["runs"]] == [OTHER]


@pytest.mark.parametrize(
    ("target", "runs"),
    [
        ("last", [OTHER]),
        ("last~0", [OTHER]),
        ("last~1", [NEW]),
        ("last~2", [OLD]),
        (OLD, [OLD]),
        ("c", [OTHER]),
        ("ac", [NEW]),
        ("three.json", [OLD, NEW, OTHER]),
        ("./three.json", [OLD, NEW, OTHER]),
        ("three.json#ab", [OLD]),
        ("three.json#last", [OTHER]),
        ("three.json#last~2", [OLD]),
        ("three.json#", [OLD, NEW, OTHER]),
        ("traces", [OLD, NEW, OTHER]),
        ("traces#cd", [OTHER]),
        ("store", [OTHER]),
        ("store#ab", [OLD]),
        ("store#last~1", [NEW]),
    ],
)
def test_every_form(three: CommandLine, target: str, runs: list[str]) -> None:
    assert shown(three, target) == runs


def test_standard_input(three: CommandLine) -> None:
    data = (three.folder / "three.json").read_bytes()
    assert shown(three, "-", data) == [OLD, NEW, OTHER]
    assert shown(three, "-#ac", data) == [NEW]


def test_a_path_that_exists_is_a_source_whatever_its_name(three: CommandLine) -> None:
    data = (three.folder / "three.json").read_bytes()
    for name in ("ab", "with#sign.json", "7"):
        (three.folder / name).write_bytes(data)
        assert shown(three, name) == [OLD, NEW, OTHER]
    assert shown(three, "with#sign.json#ab") == [OLD]


def test_last_is_the_last_run_even_beside_a_file_of_that_name(three: CommandLine) -> None:
    (three.folder / "last").write_bytes((three.folder / "three.json").read_bytes())
    assert shown(three, "last") == [OTHER]
    assert shown(three, "./last") == [OLD, NEW, OTHER]


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("last~3", 2, "has 3 runs; the oldest is last~2"),
        ("last~99999999", 2, "has 3 runs"),
        ("a", 2, "2 runs of {store} have ids that begin with 'a'"),
        ("nonesuch", 2, "no run of {store} has an id that begins with 'nonesuch', and no file has that name"),
        ("last~x", 2, "begins with 'last~x'"),
        ("", 2, "the TARGET is empty"),
        ("three.json#a", 2, "2 runs of three.json have ids that begin with 'a'"),
        ("three.json#zz", 2, "it has abababababab, acacacacacac, cdcdcdcdcdcd"),
        ("three.json#last~3", 2, "three.json has 3 runs; the oldest is last~2"),
        ("store#zz", 2, "begins with 'zz'"),
        ("nonesuch.json", 3, "nonesuch.json: expected a file or folder, found nothing of that name"),
        ("no/such", 3, "found nothing of that name"),
        ("no:such", 3, "found nothing of that name"),
        ("no.such#ab", 3, "no.such: expected a file or folder"),
        ("jaeger+http://127.0.0.1:1/abc", 3, "expected an answer from http://127.0.0.1:1"),
        ("http://127.0.0.1:1/abc", 2, "say which back end is there: jaeger+http://127.0.0.1:1/abc"),
        ("nobody+http://127.0.0.1:1/abc", 3, "a URL of a back end (jaeger+http://"),
        ("http://127.0.0.1/x.json#ab", 2, "say which back end is there"),
        ("a" * 5000 + ".json", 3, "File name too long"),
        ("nul\x00.json", 3, "null"),
    ],
)
def test_what_names_nothing_is_refused_in_one_line(three: CommandLine, target: str, code: int, message: str) -> None:
    done = three("show", target)
    assert (done.code, done.out) == (code, ""), done
    assert message.format(store=three.store) in done.err
    assert done.err.startswith("Error: ")
    assert len(done.err.splitlines()) == 1


def test_a_url_of_nobody_is_not_imported_either(three: CommandLine) -> None:
    done = three("import", "tempo+http://127.0.0.1:1/abc")
    assert done.code == 3
    assert "expected an answer from http://127.0.0.1:1" in done.err


@pytest.mark.parametrize("arguments", [["show", "--step", "1"]])
def test_a_command_for_one_run_says_so_of_several(three: CommandLine, arguments: list[str]) -> None:
    done = three(arguments[0], "three.json", *arguments[1:])
    assert done.code == 2
    assert "this needs one run; the target has 3: abababababab, acacacacacac, cdcdcdcdcdcd" in done.err


def test_a_store_without_runs_says_how_to_record_one(spanreplay: CommandLine) -> None:
    (spanreplay.store / "journal").mkdir(parents=True)
    done = spanreplay("show")
    assert (done.code, done.out) == (2, "")
    assert "has no run yet. Record one with: spanreplay record -- python agent.py" in done.err


def test_what_could_not_be_read_is_said_in_few_lines_and_in_full_when_asked(spanreplay: CommandLine) -> None:
    document = json.loads(spanreplay.file("t.json", chat(1)).read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [{**spans[0], "spanId": ""} for _ in range(20)]
    (spanreplay.folder / "t.json").write_text(json.dumps(document))
    done = spanreplay("show", "t.json")
    assert done.code == 0
    assert done.err.splitlines()[-1] == "and 17 more; -v lists all"
    assert "spans[1].spanId" in done.err
    assert len(done.err.splitlines()) == 4
    assert spanreplay("show", "t.json", "-q").err == ""
    assert sum("left out" in line for line in spanreplay("show", "t.json", "-v").err.splitlines()) == 20


def test_runs_of_the_same_command_stay_together(spanreplay: CommandLine) -> None:
    first = span(1, trace=OLD, attributes={a.RUN_ID: OLD, a.RUN_ROOT: True, a.RUN_COMMAND_ID: "c1", a.STEP_KIND: "agent"})
    second = span(1, trace=NEW, attributes={a.RUN_ID: NEW, a.RUN_ROOT: True, a.RUN_COMMAND_ID: "c1", a.STEP_KIND: "agent"})
    spanreplay("import", spanreplay.file("t.json", first, second))
    done = spanreplay("export", OLD, "-o", "out.json", "--json")
    assert sorted(done.json["runs"]) == [OLD, NEW]
    assert Path("out.json").exists()


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a#b").touch()
    assert [split(t) for t in ("x", "x#1", "a#b", "a#b#1", "-#2", "x#y#1")] == [
        ("x", ""),
        ("x", "1"),
        ("a#b", ""),
        ("a#b", "1"),
        ("-", "2"),
        ("x#y", "1"),
    ]
    assert [t for t in ("last", "abc", "-", "a.b", "a:b", "a/b", "a#b", "last~1", "abc#x.y") if is_source(t)] == [
        "-",
        "a.b",
        "a:b",
        "a/b",
        "a#b",
    ]


def test_ids_of_64_bits_are_told_apart_by_what_is_behind_their_zeros(spanreplay: CommandLine) -> None:
    ids = ["0" * 16 + "4bf92f3577b34da6", "0" * 16 + "9c1d2e3f4a5b6c7d"]
    path = spanreplay.file("t.json", *(chat(1, trace=i) for i in ids))
    assert spanreplay("import", path).code == 0
    listed = spanreplay("runs").out
    assert "4bf92f3577b3" in listed
    assert "9c1d2e3f4a5b" in listed
    for name in ("4bf92f", ids[0][:20]):
        assert spanreplay("show", name, "--json").json["runs"][0]["run_id"] == ids[0]
    assert spanreplay("show", f"{path}#9c1d", "--json").json["runs"][0]["run_id"] == ids[1]

"""What holds for every command, and for none in particular."""

import atexit
import gc
import json
import os
import re
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import click
import pytest

from fixtures.runs.spans import tool
from spanreplay.cli.main import COMMANDS, TAKE_A_COMMAND
from support.command_line import CommandLine

MODULES = Path(import_module("spanreplay.cli.main").__file__ or "").parent


def command(name: str) -> click.Command:
    found = import_module(f"spanreplay.cli.{name.replace('-', '_')}_command").command
    assert isinstance(found, click.Command)
    return found


def test_every_command_is_in_the_table_and_every_entry_is_a_command() -> None:
    assert {path.name.removesuffix("_command.py").replace("_", "-") for path in MODULES.glob("*_command.py")} == set(COMMANDS)
    assert all(command(name).name == name for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_the_common_options(spanreplay: CommandLine, name: str) -> None:
    done = spanreplay(name, "--help")
    assert done.code == 0
    assert re.search(rf"^  spanreplay {name}\b", done.out, re.MULTILINE), "no example"
    options = {option for p in command(name).params if isinstance(p, click.Option) for option in p.opts}
    assert {"--store", "--json", "-q", "--quiet", "-v", "--verbose"} <= options
    assert all(p.help for p in command(name).params if isinstance(p, click.Option)), "an option without help"
    assert spanreplay(name, "-h").out == done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_uses_the_words_of_the_readme_only(spanreplay: CommandLine, name: str) -> None:
    words = {"adapter", "transport", "interceptor", "ledger", "stub", "boundary", "sink", "divergence", "dialect", "provider"}
    assert not words & set(re.findall(r"[a-z]+", spanreplay(name, "--help").out.lower()))


def test_the_list_of_commands_shows_each_with_its_line(spanreplay: CommandLine) -> None:
    words = " ".join(spanreplay("--help").out.split())
    for name, line in COMMANDS.items():
        assert f" {name} {line}" in words


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys\nfrom spanreplay.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "loaded = [m for m in sys.modules if m.endswith('_command') or m.split('.')[0] in ('duckdb', 'rich', 'google', 'opentelemetry')]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_there_at_the_end_is_not_looked_through(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    spanreplay("--help")
    assert registered == [gc.freeze]


def test_the_module_runs_and_tells_its_version() -> None:
    done = subprocess.run([sys.executable, "-m", "spanreplay", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"spanreplay {metadata.version('spanreplay')}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonesuch"],
        ["--nonesuch"],
        ["runs", "--nonesuch"],
        ["runs", "too", "many"],
        ["runs", "--limit", "0"],
        ["show", "--step", "none"],
        ["show", "--step", "1", "--tree"],
        ["import"],
        ["query"],
        ["send"],
        ["record"],
        ["record", "--"],
        ["replay", "--"],
        ["replay", "--rerun", "--", "true"],
        ["export", "--json"],
        ["export", "--format", "csv"],
    ],
)
def test_wrong_use_is_two(spanreplay: CommandLine, arguments: list[str]) -> None:
    done = spanreplay(*arguments)
    assert done.code == 2, done
    assert done.out == ""
    assert "Error: " in done.err


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - TAKE_A_COMMAND))
def test_a_command_that_runs_none_takes_nothing_after_the_dashes(spanreplay: CommandLine, name: str) -> None:
    done = spanreplay(name, "--", "python", "agent.py")
    assert done.code == 2
    assert f"{name} runs no command" in done.err
    assert not spanreplay.store.exists()


def test_everything_after_the_first_dashes_is_the_users_command(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], *_: object, **__: object) -> int:
        ran.append(argv)
        return 7

    monkeypatch.setattr("spanreplay.replay.reexecution.command.run_attached", run)
    words = ["tool", "--json", "--help", "--store", "x", "--", "-v", "--nonesuch", ""]
    done = spanreplay("record", "--", *words)
    assert (done.code, ran) == (7, [words])
    assert done.out == ""


@pytest.mark.parametrize(
    "arguments", [["runs"], ["show"], ["replay"], ["export"], ["send", "--endpoint", "localhost:1"], ["query", "select 1"]]
)
def test_a_store_that_is_not_there_says_what_to_do(spanreplay: CommandLine, arguments: list[str]) -> None:
    done = spanreplay(*arguments)
    assert (done.code, done.out) == (3, "")
    assert f"there is no store at {spanreplay.store}" in done.err
    assert "Record or import something first" in done.err
    assert not spanreplay.store.exists(), "reading makes no store"


@pytest.mark.parametrize("arguments", [["runs"], ["show"], ["import", "t.json"], ["query", "select 1"]])
def test_a_store_that_is_a_file_is_refused(spanreplay: CommandLine, arguments: list[str]) -> None:
    spanreplay.file("t.json", tool(1))
    spanreplay.store.write_text("not a folder")
    done = spanreplay(*arguments)
    assert (done.code, done.out) == (3, ""), done
    assert str(spanreplay.store) in done.err
    assert spanreplay.store.read_text() == "not a folder"


def test_a_damaged_database_is_named(demo: CommandLine) -> None:
    (demo.store / "runs.duckdb").write_bytes(b"this is no database" * 1000)
    for arguments in (["runs"], ["show"], ["import", demo.file("t.json", tool(1))], ["query", "select 1"]):
        done = demo(*arguments)
        assert (done.code, done.out) == (3, ""), done
        assert "runs.duckdb is not a database that can be read" in done.err
        assert len(done.err.splitlines()) == 1


def test_a_store_of_a_newer_version_is_left_alone(demo: CommandLine) -> None:
    import duckdb

    with duckdb.connect(str(demo.store / "runs.duckdb")) as database:
        database.execute("INSERT INTO migrations VALUES (9999, 'later', 0)")
    for arguments in (["runs"], ["import", demo.file("t.json", tool(1))]):
        done = demo(*arguments)
        assert (done.code, done.out) == (3, ""), done
        assert "9999" in done.err


def test_a_damaged_line_of_what_was_recorded_is_counted_in_one_line(demo: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    spare = demo.folder / "spare"
    with monkeypatch.context() as patch:
        patch.setattr("spanreplay.store.store.Store.compact", lambda _: None)  # keep the journal
        patch.setattr("spanreplay.cli.stored._tell", lambda *_: None)
        demo("demo", "--store", spare)
    (journal,) = (spare / "journal").glob("*.journal")
    lines = journal.read_bytes().splitlines(keepends=True)
    spans = [i for i, text in enumerate(lines) if b'"find_flight"' in text]
    damaged = lines[spans[-1]].replace(b"find_flight", b"find_flught")
    journal.write_bytes(b"".join([*lines[: spans[-1]], damaged, *lines[spans[-1] + 1 :]]))
    done = demo("runs", "--store", spare)
    assert done.code == 0
    assert "trip-planner" in done.out
    assert f"{spare}: 1 damaged line of what was recorded left out" in done.err
    assert done.err.count("\n") == 1


# ---- streams ---------------------------------------------------------------------------------------------------------

NASTY = "\x1b[2J\x9b31m\u202egnp.exe\u2066\x07"


@pytest.fixture
def nasty(spanreplay: CommandLine) -> CommandLine:
    span = tool(
        1, name=f"search{NASTY}", args=json.dumps({NASTY: NASTY}), result=json.dumps(NASTY), attributes={"gen_ai.agent.name": NASTY}
    )
    done = spanreplay("import", spanreplay.file("nasty.json", span))
    assert done.code == 0, done
    return spanreplay


NASTY_COMMANDS = [
    ["show", "-v"],
    ["show", "--step", "1"],
    ["show", "--tree"],
    ["replay", "--json"],
    ["runs", "-v"],
    ["runs", "--json"],
    ["query", "from steps"],
    ["query", "from steps", "--format", "json"],
    ["show", "nasty.json"],
    ["query", f'from "{NASTY}"'],
    ["show", f"{NASTY}.json"],
    [f"{NASTY}"],
]


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_in_a_trace_reaches_the_terminal_as_a_control(nasty: CommandLine, terminal: bool) -> None:
    nasty.terminal = terminal
    own_colours = re.compile(r"\x1b\[[0-9;]*m")
    for arguments in NASTY_COMMANDS:
        done = nasty(*arguments)
        for text in (done.out, done.err):
            plain = own_colours.sub("", text) if terminal else text
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain), (arguments, plain)
    assert "gnp.exe" in nasty("show").out


def test_colours_are_for_terminals_that_want_them(demo: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in demo("show").out
    demo.terminal = True
    assert "\x1b[" in demo("show").out
    with monkeypatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        assert "\x1b[" not in demo("show").out
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in demo("show").out


@pytest.mark.parametrize("arguments", [["show"], ["runs"], ["show", "--json"], ["query", "select chr(8594)", "--format", "csv"]])
def test_a_terminal_of_another_encoding_gets_what_it_can_show(demo: CommandLine, arguments: list[str]) -> None:
    demo.encoding = "ascii"
    done = demo(*arguments)
    assert done.code == 0, done
    assert done.raw.isascii()


def test_our_own_signs_have_a_form_in_ascii(demo: CommandLine) -> None:
    demo.encoding = "ascii"
    out = demo("show").out
    assert "-> asks for find_flight" in out
    assert "\\u" not in out


@pytest.mark.parametrize("arguments", [["show"], ["show", "--json"], ["export"]])
def test_a_reader_that_goes_away_changes_no_exit_code(demo: CommandLine, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    line = [sys.executable, "-m", "spanreplay", *arguments]
    try:
        done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_are_no_fault(demo: CommandLine) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        line = ["/bin/sh", "-c", f'"{sys.executable}" -m spanreplay show {closed}']
        done = subprocess.run(line, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort(), RuntimeError("Query interrupted")])
def test_ctrl_c_is_130(demo: CommandLine, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("spanreplay.cli.target.load", interrupted)
    done = demo("show")
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")


def test_a_fault_of_our_own_is_70_and_shows_its_place_only_when_asked(demo: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise LookupError("no such thing")

    monkeypatch.setattr("spanreplay.cli.target.load", broken)
    done = demo("show")
    assert done.code == 70
    assert done.err == "Error: LookupError: no such thing. This is a fault of spanreplay; run again with -v to see where\n"
    with pytest.raises(AssertionError, match="Traceback"):
        demo("show", "-v")


def test_an_error_in_the_input_shows_no_traceback_even_when_asked_for_more(spanreplay: CommandLine) -> None:
    (spanreplay.folder / "t.json").write_bytes(b"no trace")
    assert spanreplay("show", "t.json", "-v").code == 3


# ---- quiet and verbose -----------------------------------------------------------------------------------------------

SAYS = [
    ["show"],
    ["runs"],
    ["replay"],
    ["export", "-o", "run.json"],
    ["query", "select 1"],
    ["demo"],
]


@pytest.mark.parametrize("arguments", SAYS, ids=lambda a: str(a[0]))
def test_verbose_says_more_and_quiet_says_nothing(demo: CommandLine, arguments: list[str]) -> None:
    plain, more, less = demo(*arguments), demo(*arguments, "-v"), demo(*arguments, "-q")
    assert plain.code == more.code == less.code == 0
    assert len(more.err) > len(plain.err)
    assert less.err == ""
    if arguments[0] != "demo":
        assert plain.out == more.out == less.out


@pytest.mark.parametrize("arguments", SAYS, ids=lambda a: str(a[0]))
def test_json_is_one_document_with_its_schema(demo: CommandLine, arguments: list[str]) -> None:
    done = demo(*arguments, "--json")
    assert done.code == 0, done
    assert done.json["schema"] == 1

    def times(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                assert not key.endswith("_ns") or inner is None or isinstance(inner, str), (key, inner)
                times(inner)
        elif isinstance(value, list):
            for inner in value:
                times(inner)

    times(done.json)

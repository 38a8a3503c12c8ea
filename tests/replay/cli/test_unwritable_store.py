"""Commands that only read, on a store that cannot be written: they read what is loaded, and say what is not."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import filelock
import pytest

from fixtures.runs.spans import own, own_root
from spanreplay.cli import stored
from spanreplay.replay.importing import import_records
from spanreplay.store.folder import LOCK
from spanreplay.store.journal import JournalWriter
from spanreplay.store.process import current_process
from spanreplay.store.store import Store
from support.command_line import CommandLine

LOADED, LATER = "a1" * 16, "b2" * 16


@pytest.fixture
def two(spanreplay: CommandLine) -> CommandLine:
    """A run that is loaded, and one that is in a journal only."""
    import_records(Store.open(spanreplay.store, create=True), [own_root(1, run=LOADED), own(2, 1, run=LOADED, seq=2)])
    writer = JournalWriter(spanreplay.store, process=current_process())
    writer.write_span(own_root("cc" * 8, run=LATER), "recorder")
    writer.close()
    return spanreplay


def fails(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def acquire(self: filelock.FileLock) -> None:
        raise OSError(number, os.strerror(number), self.lock_file)

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


@pytest.mark.parametrize(("number", "why"), [(errno.EROFS, "Read-only file system"), (errno.ENOSPC, "No space left")])
def test_what_is_loaded_is_read(number: int, why: str, two: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(monkeypatch, number)
    listed = two("runs", "--json")
    assert [run["run_id"] for run in listed.json["runs"]] == [LOADED]
    assert len(listed.err.splitlines()) == 1
    assert listed.err.startswith("not loaded: ")
    assert "1 process wrote" in listed.err
    assert why in listed.err
    assert two("show", "--json").json["runs"][0]["run_id"] == LOADED
    assert two("query", "select count(*) from runs", "--format", "csv").out.splitlines()[1] == "1"
    assert two("export", "-o", "out.json").code == 0
    assert [two("prune", "--keep", 0, "--yes").code, two("hold", "last", "--reason", "x").code, two("import", "out.json").code] == [3, 3, 3]
    monkeypatch.undo()


def test_a_store_of_which_nothing_is_loaded_is_not_called_empty(spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(spanreplay.store, create=True)
    assert "has no run yet" in spanreplay("runs").err
    writer = JournalWriter(spanreplay.store, process=current_process())
    writer.write_span(own_root("cc" * 8, run=LATER), "recorder")
    writer.close()
    fails(monkeypatch, errno.EROFS)
    listed = spanreplay("runs")
    assert (len(listed.err.splitlines()), listed.err.startswith("not loaded: ")) == (1, True)


def test_nothing_is_said_where_all_is_loaded(two: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    two("runs")
    fails(monkeypatch, errno.EROFS)
    listed = two("runs", "--json")
    assert (len(listed.json["runs"]), listed.err) == (2, "")


def test_a_shell_of_duckdb_that_has_it_open_is_no_obstacle(two: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_HELD_SECONDS", 0.0)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print(1, flush=True); sys.stdin.read()"
    database = two.store / "runs.duckdb"
    with subprocess.Popen([sys.executable, "-c", code, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline()
        listed = two("runs", "--json")
        assert shell.stdin is not None
        shell.stdin.close()
    assert [run["run_id"] for run in listed.json["runs"]] == [LOADED]
    assert "another process holds it" in listed.err
    assert len(two("runs", "--json").json["runs"]) == 2


def test_who_writes_for_long_is_no_obstacle(two: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_LOCKED_SECONDS", 0.0)
    with filelock.FileLock(two.store / LOCK):
        listed = two("runs", "--json")
        assert [run["run_id"] for run in listed.json["runs"]] == [LOADED]
        assert listed.err.startswith("not loaded: ")
        assert "1 process wrote" in listed.err
        assert "has held its lock" in listed.err
        assert two("show", "--json").json["runs"][0]["run_id"] == LOADED
        assert two("query", "select count(*) from runs", "--format", "csv").out.splitlines()[1] == "1"
    assert len(two("runs", "--json").json["runs"]) == 2


def test_a_store_of_an_older_schema_is_refused(two: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from exporter.test_migrations import make_old_store

    make_old_store(tmp_path / "old", 5)
    fails(monkeypatch, errno.EROFS)
    refused = two("runs", "--store", tmp_path / "old")
    assert refused.code == 3
    assert "Read-only" in refused.err


@pytest.mark.parametrize("command", [("demo",), ("serve", "--http-port", 0, "--grpc-port", 0)])
def test_what_is_there_to_record_does_not_begin(
    command: tuple[object, ...], spanreplay: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    done = spanreplay(*command)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("Error: nothing can be kept: Read-only file system")

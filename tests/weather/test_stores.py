"""A store that cannot be written: an agent that has begun never notices, one log line says so, and what was lost is counted.

``record`` is there to record and for nothing else: it does not begin where nothing can be kept.
"""

import ctypes
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.size import FULL
from weather.station import Done, Station, agent, steps

CAP_DAC_OVERRIDE: Final = 1
CAP_DAC_READ_SEARCH: Final = 2
PR_CAPBSET_DROP: Final = 24

_bare: Final[dict[str, Done]] = {}


def bare(station: Station, event: str) -> Done:
    """The agent without recording."""
    if event not in _bare:
        _bare[event] = station.apart("bare").fork(agent("worker", event))
        assert _bare[event].code == 7
    return _bare[event]


def assert_untouched(station: Station, event: str, done: Done) -> None:
    """As without recording; what was wrong with the store was said at once, and at the end of how many records."""
    expected = bare(station, event)
    assert (done.code, done.out) == (expected.code, expected.out), str(done)
    said = [re.sub(r"^\d+ ", "", line).partition(": [Errno")[0] for line in done.complaints]
    assert 1 <= len(said) <= 2 and len(set(said)) == 1, str(done)  # noqa: PT018 — both are one statement
    assert "Traceback" not in done.err


def assert_not_run(done: Done, why: str) -> None:
    """``record`` refused, and said why, before the agent ran."""
    assert (done.code, done.out) == (2, ""), str(done)
    assert done.err.startswith("Error: nothing can be kept: "), str(done)
    assert why in done.err
    assert len(done.err.splitlines()) == 1, str(done)


BY_HAND: Final = [False] if not FULL else [False, True]
"""Whether by ``record``; else by hand."""


def start(station: Station, event: str, by_record: bool) -> Done:
    command = agent("worker", event)
    return station.record(command) if by_record else station.fork(command, {"START": str(station.store)})


# ---- where nothing can be kept -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "deep/er/"], ids=["the store", "a folder above it"])
@pytest.mark.parametrize("by_record", [False, True])
def test_a_file_in_the_way(station: Station, place: str, by_record: bool) -> None:
    if by_record and place and not FULL:
        pytest.skip("at full size only")
    (station.root / "file").write_text("theirs")
    there = station.at(station.root / "file" / place if place else station.root / "file")
    done = start(there, "none", by_record)
    if by_record:
        assert_not_run(done, "Name another folder with --store")
    else:
        assert_untouched(there, "none", done)
    assert (station.root / "file").read_text() == "theirs"


def _without_power() -> None:  # root may write everywhere: this takes that away
    libc = ctypes.CDLL(None)
    for power in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, power, 0, 0, 0)


def test_a_folder_that_may_not_be_written(station: Station) -> None:
    closed = station.root / "closed"
    closed.mkdir(mode=0o500)
    there = station.at(closed / "store")
    done = there.record(agent("worker", "none"), preexec_fn=_without_power)
    assert_not_run(done, "Permission denied")
    assert not list(closed.iterdir())
    (station.root / "there" / "journal").mkdir(parents=True)
    (station.root / "there").chmod(0o500)
    assert_not_run(
        station.at(station.root / "there").record(agent("worker", "none"), preexec_fn=_without_power), "Make the folder writable"
    )


def mounted(path: Path, *options: str) -> Iterator[Path]:
    path.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(path)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the program mount")
    if done.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A file system that is mounted for reading only."""
    yield from mounted(tmp_path / "mounted", "-o", "ro")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for some steps."""
    yield from mounted(tmp_path / "mounted", "-o", "size=128k")


@pytest.mark.parametrize("by_record", BY_HAND)
def test_a_read_only_file_system(station: Station, read_only: Path, by_record: bool) -> None:
    there = station.at(read_only / "store")
    done = start(there, "none", by_record)
    if by_record:
        assert_not_run(done, "Read-only file system")
    else:
        assert_untouched(there, "none", done)


def test_a_disk_that_fills_up(station: Station, small: Path) -> None:
    there = station.at(small / "store")
    done = there.record(agent("worker", "none"))
    assert_untouched(there, "none", done)
    assert "No space left" in done.complaints[0] or "did not fit" in done.complaints[0]
    assert "spanreplay: nothing of this can be shown" in done.err
    subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
    run = there.kept().one()
    assert 0 < len(run.steps) < 35
    assert (run.grade, run.outcome) == ("incomplete", "unknown")


def test_a_working_folder_that_is_gone(station: Station) -> None:
    done = station.at(Path("relative")).fork(agent("lost"))
    assert (done.code, done.out) == (0, "1\nTrue\n"), str(done)
    assert "an absolute SPANREPLAY_STORE helps" in done.err
    assert "Traceback" not in done.err


def test_a_log_handler_that_raises(station: Station) -> None:
    there = station.at(station.root / "file")
    there.store.write_text("theirs")
    done = there.fork(agent("lost", "handler"))
    assert (done.code, done.out, done.err) == (0, "1\nTrue\n", "")


def test_our_exporter_on_a_store_that_is_a_file(station: Station) -> None:
    there = station.at(station.root / "file")
    there.store.write_text("theirs")
    done = there.fork(agent("traveller", station.model.url, "ours", "before"))
    expected = Counter(line["name"] for line in there.their_spans())
    plain = there.fork(agent("traveller", station.model.url, "plain", "before"))
    assert (done.code, done.out) == (plain.code, plain.out), str(done)
    assert len(done.complaints) == 1, str(done)
    assert Counter(line["name"] for line in there.their_spans()) == expected


# ---- where something is kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_record", BY_HAND)
@pytest.mark.parametrize("event", ["folder-deleted", "journal-removed"])
def test_what_was_recorded_is_removed_meanwhile(station: Station, event: str, by_record: bool) -> None:
    done = start(station, event, by_record)
    assert_untouched(station, event, done)
    run = station.kept().one()
    assert len(run.steps) >= 25
    assert run.grade == "incomplete"
    assert run.dropped > 0
    assert run.started_ns > 10**18


def _shown(station: Station) -> dict[str, Any]:
    done = station.spanreplay("runs", "--json")
    assert done.code == 0, str(done)
    (run,) = (run for run in json.loads(done.out)["runs"] if run["n_steps"])
    assert isinstance(run, dict)
    return run


@pytest.mark.parametrize("by_record", [True] if not FULL else [False, True])
def test_no_room_any_more_and_the_run_shows_what_it_lost(station: Station, by_record: bool) -> None:
    done = start(station, "disk-full", by_record)
    assert_untouched(station, "disk-full", done)
    run = station.kept().one()
    assert (run.grade, run.outcome) == ("incomplete", "unknown")
    assert 0 < len(run.steps) < 20
    assert run.dropped >= 2 * (35 - len(run.steps))
    assert ("records could not be kept" in done.err) == by_record
    assert _shown(station)["dropped"] == run.dropped
    assert f"lost {run.dropped} records" in station.spanreplay("show").out


@pytest.mark.parametrize("by_record", BY_HAND)
def test_room_again_and_what_comes_then_is_kept(station: Station, by_record: bool) -> None:
    done = start(station, "disk-full-and-free", by_record)
    assert_untouched(station, "disk-full-and-free", done)
    kept = station.kept()
    run = kept.one()
    assert (run.grade, run.outcome, run.output) == ("incomplete", "ok", 35)
    assert steps(run)[-1] == ("tool_call", "work", "ok")
    assert run.dropped >= 2 * (35 - len(run.steps))
    assert kept.command().dropped == run.dropped  # the same records, of the same process

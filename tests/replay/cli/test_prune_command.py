"""``prune`` and ``hold``: said before it is done, never without being asked, and on record."""

import shutil
from pathlib import Path

import pytest

from fixtures.runs.spans import agent, chat
from spanreplay.cli import prune_command
from spanreplay.cli.prune_command import _bytes, in_words
from spanreplay.replay.importing import import_records
from spanreplay.spans.record import SpanRecord
from spanreplay.store.store import Store
from support.command_line import CommandLine

OLD, NEW = "aa" * 16, "bb" * 16


def of_trace(trace: str, start_ns: int, session: str) -> list[SpanRecord]:
    made = [agent(1, attributes={"gen_ai.conversation.id": session}), chat(2, 1)]
    return [
        SpanRecord(**{**{n: getattr(s, n) for n in s.__slots__}, "trace_id": trace, "start_ns": start_ns, "end_ns": start_ns + 10})
        for s in made
    ]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an old run and a newer one; not to be changed."""
    folder = tmp_path_factory.mktemp("pruned") / "store"
    records = [*of_trace(OLD, 10**18, "conv-1"), *of_trace(NEW, 10**18 + 10**15, "conv-2")]
    import_records(Store.open(folder, create=True), records)
    return folder


@pytest.fixture
def two(spanreplay: CommandLine, filled: Path) -> CommandLine:
    """The program, with those two."""
    shutil.copytree(filled, spanreplay.store)
    return spanreplay


def runs(spanreplay: CommandLine) -> list[str]:
    return [run["run_id"] for run in spanreplay("runs", "--json").json["runs"]]


def test_a_dry_run_says_what_would_go_and_leaves_it(two: CommandLine) -> None:
    said = two("prune", "--keep", 1, "--dry-run")
    assert said.code == 0
    assert OLD[:12] in said.out
    assert NEW[:12] not in said.out
    told = two("prune", "--keep", 1, "--dry-run", "--json").json
    assert [(going["runs"], going["spans"], going["why"]) for going in told["going"]] == [([OLD], 2, "count")]
    assert (told["dry_run"], told["pruned"]) == (True, None)
    assert runs(two) == [NEW, OLD]


def test_nothing_goes_without_being_asked(two: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = two("prune", "--keep", 1)
    assert refused.code == 2
    assert "--yes" in refused.err
    monkeypatch.setattr(prune_command, "_somebody_is_there", lambda: True)
    assert two("prune", "--keep", 1, stdin=b"n\n").code == 130
    assert runs(two) == [NEW, OLD]
    assert two("prune", "--keep", 1, stdin=b"y\n").code == 0
    assert runs(two) == [NEW]


def test_what_was_pruned_is_told_from_what_never_was(two: CommandLine) -> None:
    done = two("prune", "--older-than", "2001-09-15", "--yes")
    assert done.code == 0, done
    assert "pruned 1 run, 2 spans" in done.err
    assert "was pruned from" in two("show", OLD[:8]).err
    assert "was pruned" not in two("show", "cc" * 4).err
    assert two("prune", "--older-than", "2001-09-15", "--yes", "--json").json["pruned"] is None
    assert "nothing is beyond" in two("prune", "--older-than", "2001-09-15", "--yes").out


def test_a_session_goes_whole_and_no_other(two: CommandLine) -> None:
    assert two("prune", "--session", "conv-2", "--yes", "--json").json["pruned"]["runs"] == 1
    assert runs(two) == [OLD]


def test_what_is_on_hold_stays(two: CommandLine) -> None:
    assert "--reason" in two("hold", OLD).err
    assert "not in the store" in two("hold", "./run.json", "--reason", "z").err
    assert two("hold").out.strip() == "nothing is held"
    assert two("hold", OLD[:6], "--reason", "case 17").code == 0
    held = two("hold", "--session", "conv-2", "--reason", "case \x1b[31m18", "--json").json["holds"]
    assert [(hold["run_id"], hold["session_id"]) for hold in held] == [(OLD, None), (None, "conv-2")]
    listed = two("hold").out
    assert "case 17" in listed
    assert "\x1b" not in listed
    kept = two("prune", "--keep", 0, "--yes")
    assert kept.err.count("kept, being on hold") == 2
    assert runs(two) == [NEW, OLD]
    assert two("hold", "--release", held[0]["hold_id"][:8], "--reason", "closed").code == 0
    assert two("hold", "--release", held[0]["hold_id"], "--reason", "closed").code == 2
    assert "closed" in two("hold", "--all").out
    assert two("prune", "--keep", 0, "--yes").code == 0
    assert runs(two) == [NEW]


def test_of_many_runs_the_first_are_listed_and_the_rest_counted(spanreplay: CommandLine) -> None:
    records = [span for number in range(1, 13) for span in of_trace(f"{number:032x}", 10**18 + number, "conv-1")]
    import_records(Store.open(spanreplay.store, create=True), records)
    said = spanreplay("prune", "--keep", 0, "--dry-run").out.splitlines()
    assert len(said) == 1 + 10 + 1
    assert said[-1] == "and 2 more, 12 runs in all; -v lists them"
    assert len(spanreplay("prune", "--keep", 0, "--dry-run", "-v").out.splitlines()) == 13
    assert len(spanreplay("prune", "--keep", 0, "--dry-run", "--json").json["going"]) == 12


def test_what_was_archived_before_is_no_run_that_stayed(two: CommandLine) -> None:
    assert two("archive", "old").code == 0
    assert two("hold", OLD, "--reason", "x").code == 0
    done = two("archive", "old", "--prune").err
    assert "pruned 1 run from" in done
    assert "1 run stayed, being on hold" in done


@pytest.mark.parametrize(
    "arguments",
    [
        ("prune",),
        ("prune", "--older-than", "soon"),
        ("prune", "--max-size", "huge"),
        ("prune", "--keep", "-1"),
        ("hold", "x", "--session", "y", "--reason", "z"),
        ("hold", "--session", "y", "--reason", " "),
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: tuple[str, ...], spanreplay: CommandLine) -> None:
    assert spanreplay(*arguments).code == 2
    assert not spanreplay.store.exists()


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1.5 GB", 1_500_000_000), ("2GiB", 2 << 30), ("10k", 10_000), ("7", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert _bytes(text) == size


def test_sizes_are_told() -> None:
    assert [in_words(number) for number in (0, 999, 1500, -2_000_000, 3 * 10**15)] == ["0 B", "999 B", "1.5 kB", "-2.0 MB", "3000.0 TB"]

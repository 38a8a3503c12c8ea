"""Names of temporary files that a replay makes again."""

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spanreplay.boundary.orders import decoded
from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.shims import randomness
from spanreplay.instrumentation.shims.temporary_names import FOLDER
from spanreplay.replay.reexecution.temporary import recorded_folder
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told


@pytest.fixture(autouse=True)
def _taken_out_again() -> Iterator[None]:
    yield
    randomness.uninstall()


@tool(effect="read")
def ask(what: object) -> str:
    return "answer"


def made(function: Callable[[], Any], seed: str = "2-s") -> Any:
    """What a function gives while it is recorded with this seed."""
    given: list[Any] = []
    with randomness.seeded(seed):
        recorded(lambda: given.append(function()))
    return given[0]


def several(folder: Path) -> list[str]:
    found = [tempfile.mkdtemp(dir=folder)]
    with agent_run("first"), ThreadPoolExecutor(2) as pool:
        found += sorted(pool.map(lambda _: tempfile.mkdtemp(dir=folder), range(4)))
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".txt") as file, tempfile.TemporaryDirectory(dir=folder) as other:
            found += [file.name, other]
    handle, name = tempfile.mkstemp(prefix="agent-", dir=folder)
    os.close(handle)
    return [*map(os.path.basename, found), os.path.basename(name)]


def test_the_same_seed_gives_the_same_names_and_no_caller_shares_one(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    first = made(lambda: several(folders[0]))
    assert made(lambda: several(folders[1])) == first
    assert len({name[-12:] for name in first}) == len(first) == 8
    assert not set(made(lambda: several(folders[2]), "2-t")) & set(first)


def test_a_name_that_is_taken_is_never_given_again_and_the_next_is_the_same_each_time(tmp_path: Path) -> None:
    def agent() -> str:
        return os.path.basename(tempfile.mkdtemp(dir=tmp_path))

    first = [made(agent) for _ in range(3)]
    assert len(set(first)) == 3
    for name in first:
        (tmp_path / name).rmdir()
    assert [made(agent) for _ in range(3)] == first


def test_names_that_another_module_takes_or_does_not_change_none_of_the_programs(tmp_path: Path) -> None:
    library: dict[str, Any] = {"__name__": "library", "tempfile": tempfile}
    exec("def look(folder):\n    tempfile.NamedTemporaryFile(dir=folder).close()\n    tempfile.mkdtemp(dir=folder)", library)

    def agent(folder: Path, *, looks: bool) -> str:
        folder.mkdir()
        if looks:
            library["look"](folder)
        return os.path.basename(tempfile.mkdtemp(dir=folder))

    assert made(lambda: agent(tmp_path / "a", looks=True), "3-s") == made(lambda: agent(tmp_path / "b", looks=False), "3-s")


def test_what_a_tools_body_makes_changes_nothing_outside(tmp_path: Path) -> None:
    def agent(number: int) -> Callable[[], str]:
        body = tool(name="body")(lambda: [tempfile.mkdtemp(dir=tmp_path) for _ in range(number)] and None)

        def run() -> str:
            body()
            name = tempfile.mkdtemp(dir=tmp_path)
            os.rmdir(name)
            return name

        return run

    assert made(agent(0)) == made(agent(3))


def test_outside_of_a_recording_and_without_a_seed_names_are_the_systems(tmp_path: Path) -> None:
    def agent() -> str:
        name = tempfile.mkdtemp(dir=tmp_path)
        os.rmdir(name)
        return name

    with randomness.seeded("2-s"):
        assert len({agent() for _ in range(3)}) == 3
    assert len({made(agent, "old") for _ in range(3)}) == 3


def test_a_sequence_that_cannot_be_read_leaves_names_to_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "_stream", lambda *_: 1 / 0)
    assert Path(made(lambda: tempfile.mkdtemp(dir=tmp_path))).is_dir()


def test_a_difference_that_a_taken_name_makes_says_so(tmp_path: Path) -> None:
    def agent() -> None:
        with agent_run("agent"):
            ask(f"look into {tempfile.mkdtemp(dir=tmp_path)}")

    with randomness.seeded("2-s"):
        tape = recorded(agent)
        (name,) = os.listdir(tmp_path)
        result = replayed(tape, agent)
        (difference,) = result.differences
        assert (difference.kind, difference.cause_kind) == ("input", "name")
        assert f"{name[3:]} was taken" in (difference.cause or "")
        for left in tmp_path.iterdir():
            left.rmdir()
        assert told(replayed(tape, agent)) == []


def test_the_folder_is_kept_once_with_the_steps() -> None:
    def agent() -> None:
        with agent_run("agent"):
            ask(tempfile.gettempdir())
            ask(tempfile.gettempdir())

    with randomness.seeded("2-s"):
        tape = recorded(agent)
    texts = [str(step[names.STEP_ORDER]) for step in tape.steps if names.STEP_ORDER in step]
    assert list(decoded(texts)) == [(FOLDER, [(0, (tempfile.gettempdir(),))])]
    assert recorded_folder(tape.runs()) == tempfile.gettempdir()
    assert recorded_folder([]) is None

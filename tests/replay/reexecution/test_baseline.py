"""A recording in a repository: what it takes to replace it, and that the file keeps why."""

import hashlib
import random
import uuid
from pathlib import Path

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay import Replayer
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.reexecution import baseline
from support.taped import recorded


@tool
def search(city: str) -> str:
    return f"found {city}"


def agent(city: str) -> None:
    with agent_run("finder", input=city) as run:
        run.output = search(city)


def deeper(city: str) -> None:
    def ask() -> str:
        return search(city)

    with agent_run("finder", input=city) as run:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            run.output = pool.submit(ask).result()


def written(path: Path, city: str = "Paris", reason: str | None = None, does: object = agent) -> bool:
    taped = recorded(lambda: does(city))  # type: ignore[operator]
    return baseline.write(path, taped.records(), taped.runs(), reason=reason)


def test_the_same_behaviour_leaves_the_file_alone_and_another_place_does_not(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "a.json"
    assert written(path)
    before = path.read_bytes()
    assert not written(path)
    assert not written(path, reason="no need of one")
    assert path.read_bytes() == before
    assert written(path, does=deeper), "called from elsewhere: not another behaviour, and what a replay looks for"
    assert baseline.decisions(path) == []


def test_another_behaviour_takes_a_reason_which_the_file_keeps(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    written(path, reason="the first")
    before = path.read_bytes()
    with pytest.raises(baseline.BehaviourChanged, match=r'input: was "Paris", now "Oslo"\nstep 1 tool_call search.input.arguments\.city'):
        written(path, "Oslo")
    assert path.read_bytes() == before
    assert written(path, "Oslo", "it moved")
    first, second = baseline.decisions(path)
    assert (first["why"], first["replaces"]) == ("the first", None)
    assert (second["why"], second["replaces"]) == ("it moved", f"sha256:{hashlib.sha256(before).hexdigest()}")
    (run,) = (run for run in baseline.read(path) if run.steps)
    assert run.input == "Oslo"
    assert written(path, "Oslo", does=deeper)
    assert len(baseline.decisions(path)) == 2, "kept, and nothing new was decided"


def test_what_is_no_recording_is_replaced_with_a_reason_only(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{not json")
    with pytest.raises(UnreadableSource):
        written(path)
    assert written(path, reason="it was broken")
    assert [one["why"] for one in baseline.decisions(path)] == ["it was broken"]


def test_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(baseline.NothingRecorded):
        baseline.write(tmp_path / "a.json", [], [])


def test_chance_in_a_recorded_block_is_the_same_in_its_replay_and_goes_on_after_it(tmp_path: Path) -> None:
    def chancy() -> None:
        search(f"{random.random()} {random.choice(range(1000))} {uuid.uuid4()}")

    random.seed(7)
    wanted = random.Random(7).random()
    with baseline.recorded() as made:
        chancy()
    assert random.random() == wanted
    baseline.write(tmp_path / "a.json", made.records, made.runs)
    random.seed(7)
    result = Replayer(baseline.read(tmp_path / "a.json")).replay(chancy)
    assert result.equal, result.differences
    assert random.random() == wanted

"""The unchanged agent replays equal every time, in this process: a replay has nothing that differs from run to run."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from acceptance.agents.many_agents import APIS
from acceptance.agents.toolbox import run
from acceptance.commands import WIRE, runs_of
from spanreplay import recording
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.engine import Replayer
from support.cassette_server import CassetteServer, read_cassette
from support.size import FULL

TIMES = 200 if FULL else 5
WANTED = (
    ("chat", "plain", "chat-chain"),
    ("chat", "async", "chat-chain"),
    ("chat", "stream", "chat-stream"),
    ("chat", "astream", "chat-stream"),
    ("responses", "async", "responses-reasoning"),
    ("responses", "stream", "responses-stream"),
    ("responses", "plain", "responses-refused"),
    ("messages", "async", "messages-parallel"),
    ("messages", "astream", "messages-stream"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded run, and how to run it again."""

    run: Run
    url: str
    line: str


def _recorded(folder: Path) -> dict[tuple[str, str, str], Recorded]:
    """Every agent, recorded once in this process."""
    lines: dict[tuple[str, str, str], tuple[str, str]] = {}
    recording.start(store=folder / "store")
    try:
        with CassetteServer() as server:
            for number, wanted in enumerate(WANTED):
                api, mode, name = wanted
                server.serve(str(number), read_cassette(WIRE / f"{name}.yaml"))
                lines[wanted] = (server.url(str(number)), run(APIS[api][mode], server.url(str(number)), "rivers"))
    finally:
        recording.stop()
    runs = [found for found in runs_of(folder / "store") if found.agent_name == "rivers"]
    return {wanted: Recorded(run=found, url=url, line=line) for (wanted, (url, line)), found in zip(lines.items(), runs, strict=True)}


def test_unchanged_agents_replay_equal_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal, and the very same line printed, :data:`TIMES` times of as many."""
    recorded = _recorded(tmp_path / "record")
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("MARKS", str(marks))
    for wanted, once in recorded.items():
        loop = APIS[wanted[0]][wanted[1]]
        for time in range(TIMES):
            result = Replayer(once.run).replay(run, loop, once.url, "rivers")

            case = f"{wanted}, time {time}"
            assert result.error is None, f"{case}: {result.error!r}"
            assert result.equal, f"{case}: {[d.summary() for d in result.differences]} {result.verdict.refusals}"
            assert result.verdict.matched == result.verdict.recorded == len(once.run.steps), case
            assert result.verdict.order_relaxed == 0, f"{case}: an answer waited for one that could not come"
            assert result.value == once.line, case
    assert list(marks.iterdir()) == []

"""Starting and stopping: as often as one likes, into one store or another, and everything is as it was afterwards."""

import json

from weather.station import Station, agent


def test_stop_leaves_everything_as_it_was(station: Station) -> None:
    folder = station.root / "stores"
    done = station.run(agent("onoff", str(folder)))
    assert (done.code, done.complaints) == (0, []), str(done)
    told = json.loads(done.out)
    assert told["after"] == []
    assert told["environment"]
    patched = {"Client._transport_for_url", "Thread.start", "BaseEventLoop.create_task", "builtins.open", "Popen.__init__"}
    assert not {name for name in patched if not any(found.endswith(name) for found in told["during"])}, told["during"]
    found = {name: station.kept(folder / name) for name in ("warm-a", "warm-b", "again-a", "again-b", "notebook")}
    runs = {name: sorted(run.agent_name or "" for run in kept.agents) for name, kept in found.items()}
    assert runs == {
        "warm-a": ["a"],
        "warm-b": ["b"],
        "again-a": ["a"],
        "again-b": ["b"],
        "notebook": ["cell 0", "cell 1", "cell 2"],
    }
    assert {run.grade for kept in found.values() for run in kept.runs} == {"exact"}
    assert all(kept.command().ended_ns for kept in found.values())
    for kept in found.values():
        kept.assert_nothing_doubled(paths=False)

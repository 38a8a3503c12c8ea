"""Ways to act on the outside, each tried at both levels of the guard: what gets out, and what is named.

The acts are the functions of ``battery/by_*.py``. Each runs in a copy of a process that ``replay -- CMD`` has started, and has a world of
its own, whose every change counts. Packages that are not installed here are tried where ``SPANREPLAY_TEST_SIZE=full`` or
``SPANREPLAY_BATTERY`` is set, in an environment of their own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest

from replay.isolation.battery import registry, witnesses
from spanreplay.replay.isolation import naming
from spanreplay.replay.reexecution.command import replay_command
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.options import Options
from support.environments import environment
from support.handmade import run
from support.size import FULL

BATTERY: Final = Path(__file__).parent / "battery"
DOCS: Final = Path(__file__).parents[3] / "docs" / "isolation.md"
registry.load()

EVERYTHING: Final = FULL or bool(os.environ.get("SPANREPLAY_BATTERY"))

How: TypeAlias = Literal["unguarded", "hook", "auto"]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the acts are those of Linux"),
    pytest.mark.timeout(600),
]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What came of an act."""

    got_out: bool
    raised: str
    named: list[dict[str, Any]]

    @property
    def is_named(self) -> bool:
        """Whether it is in the report, as a refusal or as a call that was never recorded."""
        return any(entry["entry"] in ("refused", "difference") for entry in self.named)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """All acts, one way."""

    acts: Mapping[str, Tried]
    open: list[str]
    """What the process had open when it began."""
    exit_code: int
    isolation: str

    def got_out(self) -> set[str]:
        """Names of the acts that did."""
        return {name for name, tried in self.acts.items() if tried.got_out}


@cache
def python() -> str:
    """The interpreter that has the packages."""
    return str(environment("battery", BATTERY / "requirements.txt") / "bin" / "python") if EVERYTHING else sys.executable


@cache
def possible() -> frozenset[str]:
    """The acts whose packages are installed."""
    code = "import sys; sys.path[0] = sys.argv[1]; from replay.isolation.battery import registry; registry.load(); "
    code += "print(*(name for name, act in registry.ACTS.items() if act.is_possible))"
    return frozenset(
        subprocess.run([python(), "-c", code, str(BATTERY.parents[2])], capture_output=True, text=True, check=True).stdout.split()
    )


class Range:
    """Where acts are tried, each way once."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._done: dict[tuple[How, bool], Trial] = {}

    def __call__(self, how: How, *, before: bool = False) -> Trial:
        """Try all that are possible; those that open something before, or those that do not."""
        if (how, before) not in self._done:
            names = [name for name in possible() if (registry.ACTS[name].before is not None) == before]
            self._done[how, before] = self.only(how, sorted(names), before=before)
        return self._done[how, before]

    def only(self, how: How, acts: Collection[str], *, before: bool = False) -> Trial:
        """Try these, in as many commands as it takes: one that a difference has stopped is ended where an act only waits."""
        trials = [self._once(how, sorted(acts), before=before)]
        found = dict(trials[0].acts)
        while left := sorted(set(acts) - found.keys()):
            trials.append(self._once(how, left, before=before))
            assert trials[-1].acts, left
            found.update(trials[-1].acts)
        code = max((trial.exit_code for trial in trials), key=lambda code: code == 4)
        return Trial(acts=found, open=trials[0].open, exit_code=code, isolation=trials[0].isolation)

    def _once(self, how: How, acts: Collection[str], *, before: bool) -> Trial:
        """In one command: these, or those that it came to."""
        folder = self._folder()
        output = folder / "output"
        with (
            witnesses.worlds(folder / "worlds", {name: registry.ACTS[name].victim for name in acts}) as (worlds, ears),
            output.open("wb") as out,
            (folder / "errors").open("wb") as errors,
        ):
            (folder / "worlds.json").write_text(json.dumps({name: made.told() for name, made in worlds.items()}))
            words = [python(), str(BATTERY / "run.py"), "started", str(folder / "worlds.json")]
            if how == "unguarded" or before:
                words[2] = {"unguarded": "started", "hook": "hook", "auto": "kernel"}[how]
                code, isolation = _directly(words, folder, out, watched=how == "auto"), ""
            else:
                done = replay_command([run()], [], words, options=Options(isolate=how), cwd=folder, output=out, errors=errors)
                code, isolation = done.verdict.exit_code, done.verdict.isolation
            first, *told = [json.loads(line) for line in output.read_text().splitlines() if line.startswith('{"')]
            ears.rest()
            found = {}
            for one in told:
                made, heard = worlds[one["act"]], ears.heard.get(one["act"])
                spoken = heard is not None and (not before or b"said" in heard)
                got_out = spoken or one["confessed"] or witnesses.state(made) != made.before
                found[one["act"]] = Tried(got_out=got_out, raised=one["raised"], named=one["named"])
        errors_told = (folder / "errors").read_text(errors="replace")
        assert set(found) == set(acts) or "a process of the command was stopped" in errors_told, (code, errors_told[-2000:])
        return Trial(acts=found, open=first["open"], exit_code=code, isolation=isolation)


def _directly(words: list[str], folder: Path, out: Any, *, watched: bool) -> int:
    scratch = folder / "scratch"
    for name in ("tmp", "ledgers"):
        (scratch / name).mkdir(parents=True)
    variables = {**os.environ, "TMPDIR": str(scratch)}
    variables.pop("SPANREPLAY_PLAN", None)
    with naming.Watch(scratch, Ledger(scratch / "ledgers" / "kernel.ledger"), variables) if watched else nullcontext():
        return subprocess.run(words, cwd=folder, env=variables, stdout=out, stderr=subprocess.DEVNULL, check=False).returncode


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Range:
    """Where the acts are tried."""
    return Range(lambda: tmp_path_factory.mktemp("battery"))


def listed(title: str) -> set[str]:
    """The acts that a section of the page names."""
    text = DOCS.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"`([a-z0-9_]+)`", text)) & set(registry.ACTS)


def test_the_battery_is_no_small_one() -> None:
    assert len(registry.ACTS) >= 200
    assert len(possible()) >= 150 or not EVERYTHING


def test_nothing_gets_out_at_level_2(tried: Range) -> None:
    trial = tried("auto")
    if "level 2" not in trial.isolation:
        pytest.skip(trial.isolation)
    assert trial.got_out() == set()


def test_what_was_attempted_at_level_2_is_named_and_makes_exit_code_4(tried: Range) -> None:
    trial = tried("auto")
    if "level 2" not in trial.isolation:
        pytest.skip(trial.isolation)
    silent = {name for name, act in trial.acts.items() if not act.is_named}
    assert silent - impossible(tried, silent - listed("What level 2 refuses without a word")) == listed(
        "What level 2 refuses without a word"
    ) & set(trial.acts)
    assert trial.exit_code == 4


def test_what_level_1_cannot_stop_is_what_the_page_says(tried: Range) -> None:
    trial, told = tried("hook"), listed("What level 1 cannot stop") & possible()
    missing = told - trial.got_out()
    assert trial.got_out() | impossible(tried, missing) == told
    assert trial.exit_code == 4


def test_only_what_was_open_before_gets_past_level_2(tried: Range) -> None:
    told = listed("What was open before")
    assert tried("hook", before=True).got_out() == told
    assert tried("auto", before=True).got_out() == told


def test_a_fresh_command_has_nothing_open_of_the_world(tried: Range) -> None:
    for target in tried("auto").open[:]:
        outside = not target.startswith(("pipe:", "socket:", "anon_inode:", "/dev/null", "/dev/urandom", "/dev/pts/", "/proc/"))
        assert not outside or "spanreplay-" in target or target.endswith(("/output", "/errors")), target


def impossible(tried: Range, names: Collection[str]) -> set[str]:
    """Those of the acts that nobody stops and that this machine does not let happen."""
    return set(names) - tried.only("unguarded", sorted(names)).got_out() if names else set()


@pytest.mark.skipif(not FULL, reason="runs at SPANREPLAY_TEST_SIZE=full")
def test_unguarded_they_get_out(tried: Range) -> None:
    trial = tried("unguarded")
    assert len(trial.got_out()) >= len(trial.acts) - 12, sorted(set(trial.acts) - trial.got_out())
    assert tried("unguarded", before=True).got_out() >= listed("What was open before")

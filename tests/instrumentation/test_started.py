"""Processes that an agent starts past ``subprocess``, whose commands are steps, are named while it is recorded, and nothing else is."""

import functools
import multiprocessing
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.instrumentation import agent_run, shims, tool
from spanreplay.instrumentation.probes import only_looks
from spanreplay.instrumentation.shims import started
from support.taped import recorded

TRUE = ["true"]


def named(agent: Callable[[], Any]) -> list[str]:
    """The processes that a recording of ``agent`` names."""

    def whole() -> None:
        with agent_run("a"):
            agent()

    (run,) = recorded(whole).runs()
    assert all(step.kind == "tool_call" for step in run.steps)
    assert {u["what"] for u in run.untaped} <= {started.PROCESS}
    return [u["target"] for u in run.untaped]


def work() -> None:
    """What a child does."""


ENTRANCES: list[tuple[Callable[[], Any], str]] = [
    (lambda: os.spawnlp(os.P_WAIT, "true", "true", "three"), "true three"),
    (lambda: os.waitpid(os.posix_spawnp("true", ["true", "four"], os.environ), 0), "true four"),
]


@pytest.mark.parametrize(("start", "name"), ENTRANCES)
def test_every_entrance_is_named_once(start: Callable[[], Any], name: str) -> None:
    assert named(lambda: (start(), start())) == [name]


@pytest.mark.parametrize("target", [work, functools.partial(work)])
def test_a_worker_is_named_by_what_it_runs(target: Callable[[], None]) -> None:
    def agent() -> None:
        for _ in range(2):
            child = multiprocessing.get_context("fork").Process(target=target)
            child.start()
            child.join()

    assert named(agent) == [f"multiprocessing {__name__}.work"]


def test_a_process_inside_a_tool_belongs_to_the_tool() -> None:
    @tool
    def shell() -> None:
        subprocess.run(TRUE, check=True)

    assert named(shell) == []


def test_a_probe_is_not_named() -> None:
    def agent() -> None:
        platform._Processor.from_subprocess()  # type: ignore[attr-defined]

    assert named(agent) == []


def test_what_a_package_runs_is_named_unless_it_is_a_known_probe_or_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = "import os\ndef run(word):\n    os.spawnlp(os.P_WAIT, 'true', 'true', word)\nrun('import')\ndef f():\n    run('call')\n"
    (folder / "logfire_like.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    def agent() -> None:
        import logfire_like  # type: ignore[import-not-found]

        logfire_like.f()

    assert named(agent) == ["true call"]


def test_a_secret_is_not_named() -> None:
    redactor = Redactor(RedactionPolicy.default())
    redactor.learn("hunter2hunter2")
    text = started.shown(["curl", "-u", "me:hunter2hunter2", "x" * 300], redactor)
    assert "hunter2" not in text
    assert (len(text), text[-1]) == (200, "…")
    for command in (["tool", "--api-key", "abcde123", "x"], "tool --api-key 'abcde123' x", 'tool --api-key abcde123 "x'):
        assert "abcde" not in started.shown(command, redactor)
    assert started.shown("tool 'a b' | c", redactor) == "tool 'a b' | c"
    assert started.shown(7, redactor) == "7"


def test_all_is_put_back() -> None:
    before = (subprocess.Popen.__init__, os.system, os.posix_spawn, multiprocessing.Process.start)
    shims.install()
    assert (subprocess.Popen.__init__, os.system, os.posix_spawn, multiprocessing.Process.start) != before
    shims.uninstall()
    assert (subprocess.Popen.__init__, os.system, os.posix_spawn, multiprocessing.Process.start) == before


def test_the_users_own_code_does_not_only_look() -> None:
    assert not only_looks(sys._getframe())

"""Processes that an agent starts are named while it is recorded, and nothing else is."""

import asyncio
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
    assert {u["what"] for u in run.untaped} <= {started.PROCESS}
    return [u["target"] for u in run.untaped]


def work() -> None:
    """What a child does."""


async def in_a_loop() -> None:
    """Start a process the asynchronous way."""
    child = await asyncio.create_subprocess_exec("true", "loop")
    await child.wait()


ENTRANCES: list[tuple[Callable[[], Any], str]] = [
    (lambda: subprocess.run(["echo", "a b"], stdout=subprocess.DEVNULL, check=True), "echo 'a b'"),
    (lambda: subprocess.Popen(args=[Path("true"), b"x"]).wait(), "true x"),
    (lambda: subprocess.check_output("true |\n true", shell=True), "true | true"),
    (lambda: os.system("true one"), "true one"),
    (lambda: os.popen("true two").close(), "true two"),
    (lambda: os.spawnlp(os.P_WAIT, "true", "true", "three"), "true three"),
    (lambda: os.waitpid(os.posix_spawnp("true", ["true", "four"], os.environ), 0), "true four"),
    (lambda: asyncio.run(in_a_loop()), "true loop"),
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


def test_what_fails_to_start_fails_as_ever_and_is_named_as_a_replay_refuses_it() -> None:
    def agent() -> None:
        with pytest.raises(FileNotFoundError):
            subprocess.run(["/no/such/program"], check=False)
        with pytest.raises(TypeError):
            subprocess.Popen()  # type: ignore[call-overload]

    assert "/no/such/program" in named(agent)


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
    text = "import subprocess\nsubprocess.run(['true', 'import'])\ndef f():\n    subprocess.run(['true', 'call'])\n"
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

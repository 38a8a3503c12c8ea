"""A process that was stopped ends its whole command, where the others wait for what it was to give them."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from spanreplay.replay.reexecution.command import run_attached
from spanreplay.replay.reexecution.descendants import Process, listen, want_a_processor
from spanreplay.replay.reexecution.ending import GRACE_S, QUIET_S, Course, leave_mark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
WAITS, WENT_ON = "the rest waited for it", f"the rest went on for {GRACE_S:g} s"


def there(pid: int, used_s: float = 1.0) -> Process:
    return Process(pid=pid, parent=1, group=1, started=0, used_s=used_s)


def test_a_command_that_only_waits_is_over() -> None:
    course = Course(QUIET_S)
    assert course.is_over(100.0, {7: "whole"}, [there(6), there(7)]) is None
    assert course.is_over(100.1, {7: "whole"}, [there(6)]) is None  # one has ended: something happened
    assert course.is_over(100.1 + QUIET_S / 2, {7: "whole"}, [there(6)]) is None
    assert course.is_over(100.2 + QUIET_S, {7: "whole"}, [there(6)]) == WAITS


def test_who_looks_again_and_again_waits_and_who_works_does_not() -> None:
    waiting, working = Course(QUIET_S), Course(QUIET_S)
    looks = [
        (
            waiting.is_over(tenth / 10, {7: "whole"}, [there(6, tenth / 1000)]),
            working.is_over(tenth / 10, {7: "whole"}, [there(6, tenth / 50)]),
        )
        for tenth in range(11)
    ]
    assert [wait for wait, _ in looks][-1] == WAITS
    assert {work for _, work in looks} == {None}


def test_who_gets_no_processor_does_not_only_wait() -> None:
    course = Course(QUIET_S)
    assert {course.is_over(tenth / 10, {7: "whole"}, [there(6)], busy=True) for tenth in range(11)} == {None}
    assert course.is_over(1.0 + QUIET_S, {7: "whole"}, [there(6)]) == WAITS


def test_who_runs_wants_a_processor_and_who_waits_does_not() -> None:
    mine = threading.get_native_id()
    assert want_a_processor([os.getpid()])
    assert not want_a_processor([0])
    with subprocess.Popen([sys.executable, "-S", "-c", "print('there', flush=True); input()"], stdin=-1, stdout=-1) as waiting:
        assert waiting.stdout is not None
        waiting.stdout.readline()
        while want_a_processor([waiting.pid], but=mine):
            os.sched_yield()
        waiting.communicate(b"\n")


def test_who_never_rests_is_ended_in_the_end() -> None:
    course = Course(QUIET_S)
    said = [course.is_over(float(second), {7: "whole"}, [there(7, float(second))]) for second in range(int(GRACE_S) + 1)]
    assert set(said[:-1]) == {None}
    assert said[-1] == WENT_ON


def test_the_time_without_a_processor_is_not_counted() -> None:
    starved, spinning = Course(QUIET_S), Course(QUIET_S)
    said = [
        (
            starved.is_over(float(second), {7: "whole"}, [there(7, second / 10)], busy=True),
            spinning.is_over(float(second), {7: "whole"}, [there(7, float(second))], busy=True),
        )
        for second in range(int(GRACE_S) + 1)
    ]
    assert said[-1] == (None, WENT_ON)


def test_one_that_was_stopped_alone_has_to_be_gone() -> None:
    course = Course(QUIET_S)
    assert {course.is_over(float(second), {7: "alone"}, [there(6), there(7)]) for second in range(100)} == {None}
    assert course.is_over(100.0, {7: "alone"}, [there(6)]) is None
    assert course.is_over(101.0, {7: "alone"}, [there(6)]) == WAITS


def test_one_that_was_stopped_alone_and_waits_for_ever_is_ended_unless_it_serves() -> None:
    waiting, serving = Course(QUIET_S), Course(QUIET_S)
    said = [
        (
            waiting.is_over(float(second), {7: "alone"}, [there(7)], serves=lambda: False),
            serving.is_over(float(second), {7: "alone"}, [there(7)], serves=lambda: True),
        )
        for second in range(int(GRACE_S) + 1)
    ]
    assert {one for one, _ in said[:-1]} == {None}
    assert said[-1] == (f"it has only waited for {GRACE_S:g} s", None)


def test_who_listens_is_known() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        before = listen([os.getpid()])
        server.listen()
        assert listen([0, os.getpid()])
    assert listen([os.getpid()]) is before


def test_a_mark_is_never_an_error(tmp_path: Path) -> None:
    leave_mark(tmp_path / "no" / "folder", "whole")
    leave_mark(tmp_path, "whole")
    leave_mark(tmp_path, "whole")
    assert [file.name for file in tmp_path.iterdir()] == [f"{os.getpid()}.whole"]


STUCK = """
    import os, signal
    held, end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open("stubborn", "w").write(str(os.getpid()))
            open(f"marks/{os.getpid()}.whole", "w")
        signal.pause()
    os.read(held, 1)
"""


def test_a_stuck_command_ends_with_all_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "marks").mkdir()
    with (tmp_path / "errors").open("wb") as errors:
        code = run_attached([sys.executable, "-S", "-c", textwrap.dedent(STUCK)], dict(os.environ), errors=errors, marks=tmp_path / "marks")
    assert code == 128 + signal.SIGTERM
    said = f"spanreplay: a process of the command was stopped, and all of it is ended: {WAITS}\n"
    assert (tmp_path / "errors").read_text() == said
    state = Path("/proc", (tmp_path / "stubborn").read_text(), "stat")
    assert not state.exists() or b" Z " in state.read_bytes()


def test_a_command_that_ends_by_itself_is_left_alone(tmp_path: Path) -> None:
    code = f"open('{tmp_path}/1.whole', 'w'); raise SystemExit(7)"
    assert run_attached([sys.executable, "-S", "-c", code], dict(os.environ), marks=tmp_path) == 7

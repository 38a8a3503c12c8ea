"""Running the command of a replay or a recording: its streams, exit code and signals are its own."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spanreplay.recording import definition
from spanreplay.replay.reexecution.command import CommandMissing, run_attached, same_surroundings
from support.handmade import run


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", textwrap.dedent(code)]


@pytest.mark.parametrize("code", [0, 1, 7, 125])
def test_the_exit_code_is_the_commands(code: int) -> None:
    assert run_attached(python(f"raise SystemExit({code})"), dict(os.environ)) == code


def test_a_signal_is_told_as_shells_do() -> None:
    assert run_attached(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), dict(os.environ)) == 128 + signal.SIGKILL


@pytest.mark.parametrize("argv", [["no-such-program-anywhere"], ["/"], ["a\0b"]])
def test_a_command_that_cannot_be_run_is_said_by_name(argv: list[str]) -> None:
    with pytest.raises(CommandMissing) as caught:
        run_attached(argv, dict(os.environ))
    assert argv[0] in str(caught.value)


def test_the_command_gets_the_environment_and_folder(tmp_path: Path) -> None:
    code = "import os; open('here', 'w').write(os.environ['MARK'])"
    assert run_attached(python(code), {**os.environ, "MARK": "m"}, tmp_path) == 0
    assert (tmp_path / "here").read_text() == "m"


def test_signal_handlers_are_as_before() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(n) for n in numbers]
    run_attached(python("pass"), dict(os.environ))
    assert [signal.getsignal(n) for n in numbers] == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 9), (signal.SIGINT, 8)])
def test_a_signal_reaches_the_command_which_decides(number: signal.Signals, code: int, tmp_path: Path) -> None:
    command = """
        import signal, sys, time
        def end(n, _): sys.exit(9 if n == signal.SIGTERM else 8)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        print("ready", flush=True)
        time.sleep(60)
    """
    attached = "from spanreplay.replay.reexecution.command import run_attached; import os, sys"
    starter = f"{attached}; sys.exit(run_attached({python(command)!r}, dict(os.environ)))"
    started = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    if number == signal.SIGINT:  # as a terminal does: to the whole group
        os.killpg(started.pid, number)
    else:
        started.send_signal(number)
    assert started.wait(30) == code
    started.stdout.close()


def test_a_program_of_an_extra_that_is_missing_names_the_line_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(CommandMissing, match=r'pip install "spanreplay\[auto\]"'):
        run_attached([str(tmp_path / "opentelemetry-instrument"), "python", "agent.py"], dict(os.environ))


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ({"timezone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"timezone": "Asia/Tokyo", "environment": {"TZ": "UTC"}}, "UTC"),
        ({"timezone": "Europe/Rome"}, None),
        ({"timezone": None}, None),
        ({}, None),
    ],
)
def test_local_time_is_that_of_the_machine_it_was_recorded_on(
    recorded: dict[str, object], wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "localtime"
    here.symlink_to("/usr/share/zoneinfo/Europe/Rome")
    monkeypatch.setattr(definition, "_LOCAL_TIME", str(here))
    assert same_surroundings([run(run_id="c", is_command=True, definition=recorded)]).get("TZ") == wanted
    monkeypatch.setattr(definition, "_LOCAL_TIME", str(tmp_path))
    assert definition.timezone() is None


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize("where", ["below", "orphaned"])
def test_what_has_gone_into_a_session_of_its_own_ends_with_the_command(where: str, tmp_path: Path) -> None:
    """As a worker of ``replay --all`` does: in a process of its own, which adopts them."""
    command = f"""
        import os, signal, time
        if os.fork() == 0:
            os.setsid()
            if {where!r} == "orphaned" and os.fork():
                os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open("pid.new", "w").write(str(os.getpid()))
            os.rename("pid.new", "pid")
        time.sleep(600)
    """
    starter = f"""
        import os, signal, subprocess, sys, threading, time
        from pathlib import Path
        from spanreplay.replay.reexecution.command import Overran, run_attached
        mine = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        def tell():
            while not Path("pid").exists():
                os.sched_yield()
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Thread(target=tell).start()
        code = run_attached({python(command)!r}, dict(os.environ), limit=600)
        there = Path("/proc", Path("pid").read_text())
        ended = not there.exists() or b" Z " in (there / "stat").read_bytes()
        print(code, ended, mine.poll())
        mine.communicate()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(starter)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(128 + signal.SIGTERM), "True", "None"], done

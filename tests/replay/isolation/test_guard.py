"""Acts outside are stopped, counted and named, wherever they are done; the witnesses outside see nothing."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.refusal import Action, OutsideActionRefused, Refusal

BATTERY = """
import ctypes, io, multiprocessing, os, pathlib, shutil, signal, smtplib, socket, sqlite3, subprocess, sys, tempfile, zipfile
import http.client, logging.handlers, urllib.request
import httpx, httpx2

victim = int((outside.parent / "victim").read_text())
touch = ["touch", str(outside / "ran")]
old, link = outside / "old", scratch / "link"

def unix():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(outside / "unix.sock"))

def udp(method):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        if method == "sendto":
            s.sendto(b"x", ("127.0.0.1", port))
        else:
            s.sendmsg([b"x"], [], 0, ("127.0.0.1", port))

def bind(address, family=socket.AF_INET):
    with socket.socket(family) as s:
        s.bind(address)

def connect_ex():
    with socket.socket() as s:
        s.connect_ex(("127.0.0.1", port))

def through_link(name):
    with open(link / name, "w"):
        pass

def spawned():
    multiprocessing.get_context("spawn").Process(target=os.getpid).start()

def forked():
    multiprocessing.get_context("fork").Process(target=os.getpid).start()

url = f"http://127.0.0.1:{port}/"
ACTS = {
    "socket": lambda: socket.create_connection(("127.0.0.1", port)),
    "connect_ex": connect_ex,
    "unix socket": unix,
    "sendto": lambda: udp("sendto"),
    "sendmsg": lambda: udp("sendmsg"),
    "urllib": lambda: urllib.request.urlopen(url, timeout=1),
    "http.client": lambda: http.client.HTTPConnection("127.0.0.1", port).connect(),
    "httpx": lambda: httpx.get(url),
    "httpx2": lambda: httpx2.get(url),
    "smtplib": lambda: smtplib.SMTP("127.0.0.1", port, local_hostname="me"),
    "getaddrinfo": lambda: socket.getaddrinfo("example.invalid", 80),
    "gethostbyname": lambda: socket.gethostbyname("example.invalid"),
    "gethostbyaddr": lambda: socket.gethostbyaddr("10.255.255.1"),
    "bind all": lambda: bind(("", 0)),
    "bind unix": lambda: bind(str(outside / "new.sock"), socket.AF_UNIX),
    "subprocess.run": lambda: subprocess.run(touch),
    "shell": lambda: subprocess.check_output(f"touch {outside}/ran", shell=True),
    "os.system": lambda: os.system(f"touch {outside}/ran"),
    "os.popen": lambda: os.popen(f"touch {outside}/ran"),
    "os.spawnv": lambda: os.spawnvp(os.P_WAIT, "touch", touch),
    "posix_spawn": lambda: os.posix_spawn("/usr/bin/touch", touch, {}),
    "exec": lambda: os.execvp("touch", touch),
    "fork": lambda: os.fork() or os._exit(0),
    "forkpty": lambda: os.forkpty()[0] or os._exit(0),
    "mp spawn": spawned,
    "mp fork": forked,
    "kill": lambda: os.kill(victim, signal.SIGKILL),
    "killpg": lambda: os.killpg(os.getpgid(victim), signal.SIGTERM),
    "pidfd": lambda: signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL),
    "remote_exec": lambda: sys.audit("sys.remote_exec", victim, str(outside / "old")),  # as Python 3.14 announces it
    "open w": lambda: open(outside / "new", "w"),
    "open a": lambda: open(old, "a"),
    "open r+": lambda: open(old, "r+b"),
    "open bytes": lambda: open(os.fsencode(outside / "new"), "xb"),
    "open relative": lambda: open("outside/new", "w"),
    "open dotdot": lambda: open(f"{scratch}/../outside/new", "w"),
    "FileIO": lambda: io.FileIO(str(outside / "new"), "w"),
    "os.open create": lambda: os.open(outside / "new", os.O_CREAT),
    "os.open rdwr": lambda: os.open(old, os.O_RDWR),
    "os.open trunc": lambda: os.open(old, os.O_RDONLY | os.O_TRUNC),
    "link out": lambda: through_link("new"),
    "reopened fd": lambda: open(f"/proc/self/fd/{os.open(old, os.O_RDONLY)}", "w"),
    "write_text": lambda: (outside / "new").write_text("x"),
    "logging": lambda: logging.FileHandler(outside / "new"),
    "zipfile": lambda: zipfile.ZipFile(outside / "new", "w"),
    "copy": lambda: shutil.copy(__import__("agentmod").__file__, outside / "new"),
    "move in": lambda: shutil.move(old, scratch / "old"),
    "move out": lambda: shutil.move(scratch / "mine", outside / "new"),
    "rmtree": lambda: shutil.rmtree(outside),
    "remove": lambda: os.remove(old),
    "remove bytes": lambda: os.unlink(os.fsencode(old)),
    "remove dir_fd": lambda: os.unlink("old", dir_fd=os.open(outside, os.O_RDONLY)),
    "rmdir": lambda: os.rmdir(outside / "empty"),
    "mkdir": lambda: (outside / "new").mkdir(),
    "makedirs": lambda: os.makedirs(outside / "new" / "deep"),
    "mkdir dir_fd": lambda: os.mkdir("new", dir_fd=os.open(outside, os.O_RDONLY)),
    "symlink": lambda: os.symlink("old", outside / "new"),
    "hard link in": lambda: os.link(old, scratch / "second"),
    "chmod": lambda: old.chmod(0o777),
    "fchmod": lambda: os.fchmod(os.open(old, os.O_RDONLY), 0o777),
    "utime": lambda: os.utime(old, (0, 0)),
    "truncate": lambda: os.truncate(old, 0),
    "setxattr": lambda: os.setxattr(old, "user.x", b"1"),
    "mkfifo": lambda: os.mkfifo(outside / "new"),
    "mknod": lambda: os.mknod(outside / "new"),
    "sqlite": lambda: sqlite3.connect(outside / "new"),
    "sqlite uri": lambda: sqlite3.connect(f"file:{outside}/new?mode=rwc", uri=True),
    "tempfile": lambda: tempfile.NamedTemporaryFile(dir=outside),
}

def main():
    (scratch / "mine").write_text("mine")
    link.symlink_to(outside)
    said = {}
    for name, act in ACTS.items():
        before = guard.attempts
        said[name] = [attempt(act), guard.attempts - before]
    return said
"""

ACTS = [line.split('"')[1] for line in BATTERY.splitlines() if line.startswith('    "') and '": ' in line]


def untouched(outside: Path) -> bool:
    old = outside / "old"
    return (
        sorted(path.name for path in outside.iterdir()) == ["empty", "old"]
        and old.read_text() == "old"
        and old.stat().st_mtime > 1000
        and not old.stat().st_mode & 0o111
    )


@pytest.fixture(scope="module", params=["armed", "process"])
def battery(request: pytest.FixtureRequest, run: Any, witness: Any) -> Iterator[Any]:
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
    try:
        ran = run(
            BATTERY,
            mode=request.param,
            files={"agentmod.py": "", "outside/old": "old", "outside/empty/.keep": "", "victim": str(victim.pid)},
        )
        yield ran, victim, witness.visited()
    finally:
        victim.kill()
        victim.communicate()


@pytest.mark.parametrize("act", ACTS)
def test_act_outside_is_refused_and_counted(battery: Any, act: str) -> None:
    assert battery[0].result[act] == ["OutsideActionRefused", 1]


def test_no_witness_saw_anything(battery: Any) -> None:
    ran, victim, visited = battery
    assert len(ran.result) == len(ACTS) > 60
    assert not visited
    assert victim.poll() is None
    (ran.outside / "empty" / ".keep").unlink(missing_ok=True)
    assert untouched(ran.outside)
    assert (ran.scratch / "mine").read_text() == "mine"


def test_without_scratch_nothing_may_be_written(tmp_path: Path) -> None:
    guard = Guard(scratch=None)
    assert guard.environment() == {}
    with guard.armed(), pytest.raises(OutsideActionRefused):
        (tmp_path / "new").write_text("x")
    assert not list(tmp_path.iterdir())
    assert guard.attempts == 1


def test_unguarded_the_same_acts_reach_the_witnesses(run: Any, witness: Any) -> None:
    ran = run(
        """
        import os, socket
        def main():
            (outside / "new").write_text("x")
            return [attempt(socket.create_connection, ("127.0.0.1", port)), os.system(f"touch {outside}/ran")]
        """,
        mode="off",
    )
    assert ran.result == ["ok", 0]
    assert witness.visited()
    assert sorted(path.name for path in ran.outside.iterdir()) == ["new", "ran"]


def test_refusal_says_what_and_where(run: Any) -> None:
    ran = run(
        """
        import socket, subprocess
        def tool():
            try:
                socket.create_connection(("127.0.0.1", port))
            except Exception:
                return "swallowed"
        def main():
            said = []
            for act in (tool, lambda: subprocess.run(["touch", "a b"])):
                try:
                    said.append(act())
                except OutsideActionRefused as refused:
                    said.append(str(refused))
            return said
        """
    )
    first, second = ran.refusals
    assert first == {
        "event": "socket.connect",
        "action": "connect",
        "target": first["target"],
        "fatal": True,
        "where": f"{ran.agent}:5",
        "thread": "MainThread",
    }
    assert first["target"].startswith("127.0.0.1:")
    assert (second["action"], second["target"]) == ("process", "touch 'a b'")
    assert "connect to 127.0.0.1:" in ran.result[0]
    assert f"{ran.agent}:5" in ran.result[0]


def test_lost_exceptions_are_counted(run: Any, witness: Any) -> None:
    ran = run(
        """
        import asyncio, gc, os, socket, threading, weakref
        from concurrent.futures import ThreadPoolExecutor

        def reach(): socket.create_connection(("127.0.0.1", port))
        def write(name): (outside / name).write_text("x")

        class Late:
            def __del__(self): write("del")

        async def aio(name): write(name)

        async def loop():
            loop = asyncio.get_running_loop()
            results = await asyncio.gather(aio("gathered"), asyncio.to_thread(write, "to_thread"), return_exceptions=True)
            forgotten = loop.create_task(aio("task"))
            fired = asyncio.Event()
            def callback():
                fired.set()
                write("callback")
            loop.call_soon(callback)
            await fired.wait()
            try:
                await asyncio.open_connection("127.0.0.1", port)
            except BaseException as error:
                results.append(error)
            try:
                await asyncio.create_subprocess_exec("touch", str(outside / "aio"))
            except BaseException as error:
                results.append(error)
            return [type(r).__name__ for r in results]

        def main():
            thread = threading.Thread(target=reach, name="worker")
            thread.start(); thread.join()
            Late(); gc.collect()
            with ThreadPoolExecutor(1) as pool:
                pooled = type(pool.submit(write, "pool").exception()).__name__
            weak = Late.__new__(Late); weakref.finalize(weak, write, "finalize"); del weak
            try:
                said = asyncio.run(loop())
            except BaseException as error:
                said = [type(error).__name__]
            return [pooled, said]
        """
    )
    assert ran.result[0] == "OutsideActionRefused"
    assert list(ran.outside.iterdir()) == []
    assert not witness.visited()
    targets = {Path(refusal["target"]).name for refusal in ran.refusals}
    assert {"del", "pool", "finalize", "gathered", "to_thread"} <= targets
    assert any(refusal["thread"] == "worker" for refusal in ran.refusals)
    assert ran.attempts == len(ran.refusals)


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.gather(write(), return_exceptions=True)",
        "asyncio.create_task(write()); await asyncio.sleep(0); await asyncio.sleep(0)",
        "asyncio.get_running_loop().call_soon(sync); await asyncio.sleep(0); await asyncio.sleep(0)",
        "await asyncio.open_connection('127.0.0.1', port)",
        "await asyncio.create_subprocess_exec('touch', str(outside / 'x'))",
        "async with asyncio.TaskGroup() as group: group.create_task(write())",
        "await asyncio.get_running_loop().run_in_executor(None, sync)",
        "await asyncio.get_running_loop().getaddrinfo('example.invalid', 1)",
        "await asyncio.wait_for(write(), 5)",
    ],
)
def test_asyncio(run: Any, witness: Any, body: str) -> None:
    ran = run(
        f"""
        import asyncio
        def sync(): (outside / "x").write_text("x")
        async def write(): sync()
        async def agent():
            {body}
        def main():
            try:
                asyncio.run(agent())
            except BaseException as error:
                return type(error).__name__
        """
    )
    assert ran.attempts == 1
    assert list(ran.outside.iterdir()) == []
    assert not witness.visited()


def test_inside_a_running_loop_only_the_armed_task_is_watched(run: Any) -> None:
    ran = run(
        """
        import asyncio, pathlib
        async def replay(ready, done):
            with guard.armed():
                child = asyncio.create_task(write("child"))
                ready.set()
                await done.wait()
                await asyncio.gather(child, asyncio.to_thread((outside / "thread").write_text, "x"), return_exceptions=True)
        async def write(name):
            (outside / name).write_text("x")
        async def request(ready, done):
            await ready.wait()
            await write("request")
            await asyncio.to_thread((outside / "request thread").write_text, "x")
            done.set()
        async def both():
            ready, done = asyncio.Event(), asyncio.Event()
            await asyncio.gather(request(ready, done), replay(ready, done), return_exceptions=True)
        def main():
            try:
                asyncio.run(both())
            except OutsideActionRefused:
                pass
        """,
        mode="off",
    )
    assert "child" in {Path(refusal["target"]).name for refusal in ran.refusals}
    assert not (ran.outside / "child").exists()
    assert sorted(path.name for path in ran.outside.iterdir()) == ["request", "request thread"]


def test_import_makes_a_notice_and_user_code_an_attempt(run: Any) -> None:
    library = """
        import os
        try:
            os.mkdir("outside/library")
            said = "ok"
        except OSError as error:
            said = type(error).__name__
        def later(): os.mkdir("outside/later")
        """
    ran = run(
        """
        def main():
            import vendor
            try:
                import usermodule
            except OutsideActionRefused:
                pass
            return [vendor.said, attempt(vendor.later)]
        """,
        files={
            "site-packages/vendor.py": library,
            "usermodule.py": "import os\nos.mkdir('outside/user')\n",
            "sitecustomize.py": "import sys, os\nsys.path.append(os.path.join(os.path.dirname(__file__), 'site-packages'))\n",
        },
    )
    assert ran.result == ["PermissionError", "OutsideActionRefused"]
    assert [notice["target"] for notice in ran.notices] == [str(ran.outside / "library")]
    assert [refusal["target"] for refusal in ran.refusals] == [str(ran.outside / "user"), str(ran.outside / "later")]
    assert list(ran.outside.iterdir()) == []


def test_refusal_keeps_no_object_of_the_agent_alive(run: Any) -> None:
    ran = run(
        """
        import gc, weakref
        class Held: pass
        def act(held): (outside / "x").write_text("x")
        def main():
            gc.disable()
            held = Held()
            gone = weakref.ref(held)
            said = attempt(act, held)
            del held
            return [said, gone() is None]
        """
    )
    assert ran.result == ["OutsideActionRefused", True]


def test_callback_sees_every_refusal_and_cannot_break_the_replay(run: Any) -> None:
    ran = run(
        """
        from spanreplay.replay.isolation.guard import Guard
        def main():
            seen = []
            def callback(refusal):
                seen.append(refusal.action)
                (outside / "log").write_text("the callback acts itself")
            inner = Guard(scratch=scratch, on_refusal=callback)
            with inner.armed():
                said = attempt((outside / "x").write_text, "x")
            return [said, seen, inner.attempts]
        """,
        mode="off",
    )
    assert ran.result == ["OutsideActionRefused", ["write"], 2]
    assert list(ran.outside.iterdir()) == []


def test_inner_guard_does_not_weaken_the_outer(run: Any) -> None:
    ran = run(
        """
        from spanreplay.replay.isolation.guard import Guard
        def main():
            inner = Guard(scratch=outside)
            with inner.armed():
                said = attempt((outside / "x").write_text, "x")
            return [said, inner.attempts]
        """,
        mode="process",
    )
    assert ran.result == ["OutsideActionRefused", 0]
    assert ran.attempts == 1


def test_disarmed_nothing_is_refused(run: Any) -> None:
    ran = run(
        """
        def main():
            with guard.armed():
                pass
            guard.arm_process(); guard.arm_process(); guard.disarm_process(); guard.disarm_process()
            return attempt((outside / "x").write_text, "x")
        """,
        mode="off",
    )
    assert ran.result == "ok"
    assert ran.refusals == []


def test_nothing_is_installed_before_arming(run: Any) -> None:
    ran = run(
        """
        import sys, threading
        from spanreplay.replay.isolation import hook
        def main():
            before = [hook.is_installed(), threading.Thread.start.__module__]
            with guard.armed():
                return [*before, hook.is_installed()]
        """,
        mode="off",
    )
    assert ran.result == [False, "threading", True]


def test_unreadable_event_is_refused(run: Any) -> None:
    ran = run(
        """
        import sys
        def main():
            return attempt(sys.audit, "os.remove", object())
        """
    )
    assert ran.result == "OutsideActionRefused"
    assert ran.refusals[0]["action"] == "unknown"


def test_scratch_must_exist(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="scratch must be an existing directory"):
        Guard(scratch=tmp_path / "missing")


def test_hosts_that_are_named_are_looked_up_and_connected_to(run: Any, witness: Any) -> None:
    code = """
    import socket
    def main():
        return [attempt(socket.create_connection, (host, port)) for host in ("localhost", "127.0.0.2")]
    """
    ran = run(code, guard=f'{{"allow_connect": [["localhost", {witness.port}]]}}')
    assert ran.result == ["ok", "OutsideActionRefused"]
    assert [refusal["target"] for refusal in ran.refusals] == [f"127.0.0.2:{witness.port}"]
    assert witness.visited()


@pytest.mark.parametrize(
    ("action", "target", "advice"),
    [
        ("connect", "example.com:443", "or, where it asks a model that is live, let it: --allow-host example.com:443."),
        ("lookup", "example.com", "--allow-host example.com."),
        ("connect", "/run/docker.sock", "answers it from the record."),
        ("process", "ls", "answers it from the record."),
        ("write", "/etc/x", "name the path with --allow-write."),
    ],
)
def test_a_refusal_says_what_to_do(action: Action, target: str, advice: str) -> None:
    refusal = Refusal(event="e", action=action, target=target, fatal=True, where="a.py:1", thread="MainThread")
    assert str(OutsideActionRefused(refusal)).endswith(advice)

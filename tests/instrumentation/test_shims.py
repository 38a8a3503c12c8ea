"""Causal paths are the same in every execution, however tasks and threads are scheduled; installing leaves no trace."""

import _thread
import asyncio
import builtins
import contextlib
import contextvars
import functools
import inspect
import io
import itertools
import os
import queue
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel_context

from spanreplay.boundary import scope as scopes
from spanreplay.boundary import session as sessions
from spanreplay.boundary.session import RunContext, Session
from spanreplay.instrumentation import agent_run, prompt, shims, tool
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims import processes
from spanreplay.semconv import attributes as names
from support.taped import SIZE, Tape, recorded, recording, replayed, told

MANY = 100


class Jitter:
    """Another order of things each time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    async def task(self) -> None:
        for _ in range(self._random.randrange(6)):
            await asyncio.sleep(0)

    def thread(self) -> None:
        if self._random.random() < 0.2:
            time.sleep(0)


jitter = Jitter(0)
served = iter(range(10**9))


@tool(effect="read")
async def ask() -> int:
    """Every call is the same, and gets another answer."""
    await jitter.task()
    return next(served)


@tool(effect="read")
def ask_now() -> int:
    jitter.thread()
    return next(served)


async def late() -> int:
    await jitter.task()
    return await ask()


def late_now() -> int:
    jitter.thread()
    return ask_now()


async def create_task() -> list[int]:
    tasks = [asyncio.create_task(late()) for _ in range(MANY)]
    return [await t for t in tasks]


async def gather() -> list[int]:
    return list(await asyncio.gather(*(late() for _ in range(MANY))))


async def task_group() -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(late()) for _ in range(MANY)]
    return [t.result() for t in tasks]


async def wait_for() -> list[int]:
    return list(await asyncio.gather(*(asyncio.wait_for(late(), 60) for _ in range(MANY))))


async def run_in_executor() -> list[int]:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(4) as pool:
        return list(await asyncio.gather(*(loop.run_in_executor(pool, late_now) for _ in range(MANY))))


async def to_thread() -> list[int]:
    return list(await asyncio.gather(*(asyncio.to_thread(late_now) for _ in range(MANY))))


async def given_contexts() -> list[int]:
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(late(), context=contextvars.copy_context()) for _ in range(MANY)]
    return [await t for t in tasks]


async def nested() -> list[list[int]]:
    async def one() -> list[int]:
        await jitter.task()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(late()) for _ in range(3)]
        threads = await asyncio.gather(*(asyncio.to_thread(late_now) for _ in range(2)))
        return [*(t.result() for t in tasks), *threads, await ask()]

    return list(await asyncio.gather(*(one() for _ in range(MANY // 10))))


def submit() -> list[int]:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(late_now) for _ in range(MANY)]
        return [f.result() for f in futures]


def pool_map() -> list[int]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: late_now(), range(MANY)))


def copied_contexts() -> list[int]:
    """Jobs that bring a copied context of their own, as some frameworks make them."""
    contexts = [contextvars.copy_context() for _ in range(MANY)]
    with ThreadPoolExecutor(4) as pool:
        return [f.result() for f in [pool.submit(functools.partial(c.run, late_now)) for c in contexts]]


def thread() -> list[int]:
    got: dict[int, int] = {}
    threads = [threading.Thread(target=lambda i: got.__setitem__(i, late_now()), args=(i,)) for i in range(MANY)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [got[i] for i in range(MANY)]


class Worker(threading.Thread):
    """Overrides ``run``."""

    value = 0

    def run(self) -> None:
        self.value = late_now()


def thread_subclass() -> list[int]:
    workers = [Worker() for _ in range(MANY)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return [w.value for w in workers]


def loops_in_threads() -> list[list[int]]:
    async def some() -> list[int]:
        return list(await asyncio.gather(*(late() for _ in range(3))))

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: asyncio.run(some()), range(MANY // 5)))


def thread_pool() -> list[list[int]]:
    with ThreadPool(4) as pool:
        return [
            pool.map(lambda _: late_now(), range(20)),
            pool.starmap(lambda _a, _b: late_now(), [(i, i) for i in range(20)]),
            list(pool.imap(lambda _: late_now(), iter(range(20)))),
            [r.get() for r in [pool.apply_async(late_now) for _ in range(20)]],
        ]


async def sub_agents() -> list[list[int]]:
    async def one(i: int) -> list[int]:
        async with agent_run("sub", input=i % 2):
            await jitter.task()
            return [await ask(), *(await asyncio.gather(ask(), ask()))]

    async with agent_run("top"):
        return list(await asyncio.gather(*(one(i) for i in range(MANY // 5))))


CASES: list[Callable[[], Any]] = [
    create_task,
    gather,
    task_group,
    wait_for,
    run_in_executor,
    to_thread,
    given_contexts,
    nested,
    submit,
    pool_map,
    copied_contexts,
    thread,
    thread_subclass,
    loops_in_threads,
    thread_pool,
    sub_agents,
]


@pytest.mark.parametrize("agent", CASES, ids=lambda a: a.__name__)
def test_every_call_has_the_same_path_in_every_execution(agent: Callable[[], Any]) -> None:
    global jitter
    first: list[str] = []
    for seed in range(3):
        jitter = Jitter(seed)
        tape = recorded(agent)
        assert len(set(tape.paths)) == len(tape.paths) >= MANY // 2
        first = first or sorted(tape.paths)
        assert sorted(tape.paths) == first


@pytest.mark.parametrize("agent", CASES, ids=lambda a: a.__name__)
def test_identical_calls_at_once_each_get_their_own_answer_back(agent: Callable[[], Any]) -> None:
    global jitter
    results: list[Any] = []
    with recording() as tape:
        made = agent()
        results.append(asyncio.run(_wait(made)) if asyncio.iscoroutine(made) else made)
    for seed in range(1, 2 if SIZE == 10 else 20):
        jitter = Jitter(seed)
        result = replayed(tape, agent)
        assert told(result) == []
        assert result.value == results[0]
        assert result.verdict.matched_by_input == 0


async def _wait(made: Any) -> Any:
    return await made


def test_a_task_that_starts_its_successor_for_ever_does_not_lengthen_its_path_for_ever() -> None:
    async def generation(left: int, kept: list[Any], done: asyncio.Event) -> None:
        if left == 0:
            await ask()
            done.set()
        else:
            kept.append(asyncio.create_task(generation(left - 1, kept, done)))

    async def agent() -> None:
        kept: list[Any] = []
        done = asyncio.Event()
        kept.append(asyncio.create_task(generation(500, kept, done)))
        await done.wait()

    paths = [recorded(agent).paths for _ in range(2)]
    assert paths[0] == paths[1]
    assert len(paths[0][0]) < 2100


# ---- what goes along ------------------------------------------------------------------------------------------------


@pytest.fixture
def on() -> Iterator[Tape]:
    with recording() as tape:
        yield tape


def test_the_opentelemetry_context_and_the_prompt_go_into_threads_and_nothing_else_does(on: Tape) -> None:
    mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="default")
    mine.set("set")
    prompt("p", "1", template="t")
    token = otel_context.attach(otel_context.set_value("key", "value"))

    def look() -> tuple[Any, ...]:
        return (otel_context.get_value("key"), scopes.in_force.get().get(names.GEN_AI_PROMPT_NAME), mine.get())

    got: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        got.append(pool.submit(look).result())
    started = threading.Thread(target=lambda: got.append(look()))
    started.start()
    started.join()
    otel_context.detach(token)
    assert got == [("value", "p", "default")] * 2


def test_a_pool_thread_is_clean_after_its_job(on: Tape) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask_now).result()
        function = inspect.unwrap(ThreadPoolExecutor.submit)  # the guard of an earlier test may be around it too
        look = function(pool, lambda: (scopes._scope.get(), scopes._thread.scope, dict(otel_context.get_current())))
        assert look.result() == (None, None, {})


def test_what_stops_a_replay_comes_out_of_a_pool_that_would_wait_for_ever() -> None:
    @tool(effect="read")
    def echo(x: int) -> int:
        return x

    def agent(x: int) -> Any:
        with ThreadPool(1) as pool:
            return pool.map(echo, [x])

    tape = recorded(agent, 1)
    for guard in (False, True):
        result = replayed(tape, agent, 2, guard=guard)
        assert told(result) == [("input", 1, "tool_call echo", "arguments.x")]
        assert result.error is None


def _ends_below_python(call: Callable[[], Any]) -> bool:
    """Run a call with no frame of Python below it, as an ``atexit`` callback is, or a thread of a library in Rust; whether it ends well."""
    given: list[Any] = []
    ended = _thread.allocate_lock()
    ended.acquire()
    _thread.start_new_thread(given.extend, (itertools.chain(itertools.starmap(call, [()]), itertools.starmap(ended.release, [()])),))
    well = ended.acquire(timeout=5)
    for file in given:
        if isinstance(file, io.IOBase):
            file.close()
    return well


def test_what_no_python_code_has_called_works_as_ever(tmp_path: Path) -> None:
    items: queue.Queue[int] = queue.Queue()
    loop = asyncio.new_event_loop()
    partial = functools.partial
    calls: list[Callable[[], Any]] = [
        *(partial(items.put, 1), items.get_nowait, queue.Queue, threading.Lock, partial(threading.Event().wait, 0.001)),
        *(asyncio.Queue, partial(asyncio.Queue[int]().put_nowait, 1), partial(loop.call_later, 1, loop.time), loop.time),
        *(time.time, time.monotonic, time.perf_counter, random.random, uuid.uuid4),
        *(partial(io.open, tmp_path / "file", "w"), partial(os.system, "true")),
    ]
    with recording(whole_process=True):
        assert [call for call in calls if not _ends_below_python(call)] == []
    loop.close()


def test_a_thread_that_python_has_not_started_may_wake_an_event_loop() -> None:
    async def agent() -> str:
        woken = asyncio.Event()
        _thread.start_new_thread(asyncio.get_running_loop().call_soon_threadsafe, (woken.set,))
        await asyncio.wait_for(woken.wait(), 5)
        return "woken"

    with recording(whole_process=True):
        assert asyncio.run(agent()) == "woken"


# ---- installing -----------------------------------------------------------------------------------------------------


def _patched() -> dict[str, Any]:
    owners: dict[str, tuple[Any, list[str]]] = {
        "loop": (asyncio.BaseEventLoop, ["create_task", "call_later", "call_at", "call_soon_threadsafe"]),
        "lock": (asyncio.Lock, ["__init__", "acquire"]),
        "queue": (asyncio.Queue, ["__init__", "put", "put_nowait"]),
        "semaphore": (asyncio.Semaphore, ["__init__", "acquire"]),
        "pool": (ThreadPoolExecutor, ["submit"]),
        "threads": (ThreadPool, ["apply_async", "_map_async", "imap", "imap_unordered"]),
        "thread": (threading.Thread, ["start", "_bootstrap_inner", "run"]),
        "popen": (subprocess.Popen, ["__init__"]),
        "open": (builtins, ["open"]),
        "io": (io, ["open"]),
        "sqlite": (sqlite3, ["connect"]),
        "dbapi2": (sqlite3.dbapi2, ["connect"]),
        "socket": (socket.socket, ["connect", "connect_ex"]),
        "tempfile": (tempfile, ["mkstemp", "mkdtemp"]),
    }
    return {f"{owner}.{name}": vars(where).get(name) for owner, (where, found) in owners.items() for name in found}


def test_everything_is_as_it_was_after_uninstalling() -> None:
    before = _patched()
    shims.install()
    shims.install()
    changed = {name for name, value in _patched().items() if value is not before[name]}
    shims.uninstall()
    shims.uninstall()
    assert _patched() == before
    left = {name for name, value in before.items() if _is_left(value)}  # where a guard of another test has wrapped it
    assert changed | left == set(before) - {"thread.run"}


def _is_left(function: Any) -> bool:
    while function is not None:
        if "shims" in str(getattr(getattr(function, "__code__", None), "co_filename", "")):
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def test_what_somebody_else_has_wrapped_counts_once_when_installed_again() -> None:
    class Owner:
        def called(self) -> int:
            return 0

    def adding(original: Any) -> Any:
        return lambda self: original(self) + 1

    original = Owner.called
    patches = Patches()
    patches.replace(Owner, "called", adding)
    ours = Owner.called
    Owner.called = lambda self: ours(self) + 10  # type: ignore[method-assign]
    for _ in range(3):
        patches.undo()
        patches.replace(Owner, "called", adding)
        assert Owner().called() == 11
    patches.undo()
    Owner.called = ours  # type: ignore[method-assign]
    patches.replace(Owner, "called", adding)
    patches.undo()
    assert Owner.called is original


def test_what_somebody_else_patched_on_top_stays() -> None:
    shims.install()
    ours: Any = ThreadPoolExecutor.submit
    theirs: Any = functools.wraps(ours)(lambda *args, **kwargs: ours(*args, **kwargs))
    ThreadPoolExecutor.submit = theirs  # type: ignore[method-assign]
    try:
        shims.uninstall()
        assert ThreadPoolExecutor.submit is theirs
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: 5).result() == 5
    finally:
        ThreadPoolExecutor.submit = ours.__wrapped__  # type: ignore[method-assign]


def test_off_nothing_is_forked_and_results_are_the_same() -> None:
    shims.install()
    try:
        assert len(asyncio.run(gather())) == MANY
        assert len(submit()) == MANY
        assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
    finally:
        shims.uninstall()


# ---- child processes ------------------------------------------------------------------------------------------------

SHOW = [sys.executable, "-c", "import os; print('\\n'.join(f'{k}={v}' for k, v in sorted(os.environ.items())))"]


def _environment(**kwargs: Any) -> dict[str, str]:
    text = subprocess.run(SHOW, capture_output=True, check=True, text=True, **kwargs).stdout
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@pytest.mark.parametrize("given", [None, {}, {"A": "1"}, {b"A": b"1"}])
def test_a_child_goes_on_with_the_run_whatever_environment_it_is_given(given: Any) -> None:
    with recording():
        with agent_run("a") as run:
            first = _environment(env=given)
            second = _environment(env=given)
    assert first[processes.RUN_ID] == run.run_id
    command = f"io:{Path(sys.executable).name}"
    assert [e[processes.RUN_PATH] for e in (first, second)] == [f"{command}#0/~process#0", f"{command}#1/~process#0"]
    assert first[processes.TRACEPARENT].startswith("00-")
    if given is not None:
        assert ("A" in first) == bool(given)
        assert "HOME" not in first or given == {"HOME": first["HOME"]}


def test_the_layer_above_completes_a_childs_environment() -> None:
    processes.complete_with(lambda env: {**env, "PYTHONPATH": "site"})
    try:
        with recording():
            assert _environment(env={"A": "1"})["PYTHONPATH"] == "site"

            async def asynchronous() -> bytes:
                child = await asyncio.create_subprocess_exec(*SHOW, env={}, stdout=asyncio.subprocess.PIPE)
                return (await child.communicate())[0]

            assert b"PYTHONPATH=site" in asyncio.run(asynchronous())
        processes.complete_with(lambda env: 1 / 0)  # type: ignore[arg-type, return-value]
        with recording():
            assert "A" in _environment(env={"A": "1"})
    finally:
        processes.complete_with(None)


def test_an_environment_given_by_position_is_completed_too() -> None:
    with recording():
        child = subprocess.Popen(SHOW, -1, None, None, subprocess.PIPE, None, None, True, False, None, {"A": "1"})
        text = child.communicate()[0].decode()
    assert "A=1" in text
    assert processes.RUN_PATH in text


# ---- what is not taped ----------------------------------------------------------------------------------------------


def _untaped(agent: Callable[[], Any]) -> list[tuple[str, str]]:
    def whole() -> None:
        with agent_run("a"):
            made = agent()
            if asyncio.iscoroutine(made):
                raise TypeError

    (run,) = recorded(whole).runs()
    return [(u["what"], u["target"]) for u in run.untaped]


def test_files_databases_and_connections_are_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def agent() -> None:
        for _ in range(2):
            with open("a.txt", "w"), open("a.txt"), Path("b.txt").open("a"), open(tmp_path / "a.txt", "r+"):
                pass
        Path("c.txt").write_text("c")
        for connect in (sqlite3.connect, sqlite3.dbapi2.connect):
            connect("state.db").close()
            connect(":memory:").close()
        with socket.create_connection(("127.0.0.1", port)):
            pass
        with open(os.devnull, "w"):
            pass

    try:
        found = _untaped(agent)
    finally:
        listener.close()
    assert found == [
        ("file written", "a.txt"),
        ("file written", "b.txt"),
        ("file written", "c.txt"),
        ("database opened", "state.db"),
        ("connection made", f"127.0.0.1:{port}"),
    ]


def test_temporary_files_are_not_named_as_a_replay_has_its_own(tmp_path: Path) -> None:
    def agent() -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "deep").mkdir()
            (Path(folder) / "deep" / "x.txt").write_text("x")
        descriptor, name = tempfile.mkstemp()
        os.close(descriptor)
        Path(name).write_text("y")
        Path(name).unlink()
        with tempfile.TemporaryFile("w") as file:
            file.write("z")

    assert _untaped(agent) == []


def test_what_happens_inside_a_step_belongs_to_the_step(tmp_path: Path) -> None:
    @tool
    def save() -> None:
        (tmp_path / "x").write_text("x")

    assert _untaped(save) == []


def test_open_can_be_kept_in_a_class_as_the_builtin_can(tmp_path: Path) -> None:
    with recording():

        class Keeper:
            opener: Any = open

        with Keeper().opener(tmp_path / "x", "w") as file:
            file.write("x")
    assert (tmp_path / "x").read_text() == "x"


def test_a_failing_open_fails_as_ever() -> None:
    with recording(), pytest.raises(FileNotFoundError), open("/no/such/folder/x", "w"):
        pass


def test_the_whole_process_is_watched_while_a_session_is_active(tmp_path: Path) -> None:
    tape = Tape()
    session = Session(mode="record", sink=tape, open_spans=False)
    run = RunContext(run_id="1" * 32, name="c", fallback=True)
    shims.install()
    sessions.activate(session.root(run))
    try:
        (tmp_path / "x").write_text("x")
        with contextlib.closing(sqlite3.connect(tmp_path / "db")):
            pass
    finally:
        sessions.deactivate()
        shims.uninstall()
    assert [what for what, _ in run.untaped] == ["file written", "database opened"]
    assert run.untaped_json() is not None

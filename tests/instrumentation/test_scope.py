"""Paths: one name for one logical call."""

import asyncio
import os
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreplay.boundary import scope as scopes
from spanreplay.boundary.scope import Scope, step_label
from spanreplay.boundary.session import RunContext, Session
from spanreplay.instrumentation import tool
from support.taped import recorded


def root() -> Scope:
    return Session(mode="record", open_spans=False).root(RunContext(run_id="1" * 32, name="r"))


@given(kind=st.sampled_from(["tool_call", "io"]), names=st.lists(st.text(min_size=1), max_size=6), forks=st.lists(st.text(), max_size=4))
def test_no_two_places_have_one_path_whatever_the_names(kind: str, names: list[str], forks: list[str]) -> None:
    top = root()
    scopes = [top, *(top.fork(f) for f in forks), *(top.keyed(f) for f in forks)]
    paths = [scope.place(step_label(kind, name))[0] for scope in scopes for name in names]
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert path.count("/") == (1 if path[0] in "~@" else 0)


def test_numbers_are_given_once_between_threads() -> None:
    top = root()
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: top.next("x"), range(2000)))
    assert sorted(numbers) == list(range(2000))


def test_a_named_scope_is_the_same_from_every_task_of_a_step() -> None:
    top = root()
    deep = top.fork("worker").fork("helper")
    assert deep.keyed("k").path == "@k#0"
    assert top.fork("worker").keyed("k").path == "@k#1"
    inner = top.keyed("outer")
    assert inner.fork("t").keyed("k").path == "@outer#0/@k#0"


def test_a_chain_of_forks_keeps_a_bounded_path_and_no_ancestors_for_ever() -> None:
    def chain() -> list[str]:
        scope, paths = root(), []
        for _ in range(3000):
            scope = scope.fork("generation")
            paths.append(scope.path)
        depth = 0
        parent = scope.parent
        while parent is not None:
            parent, depth = parent.parent, depth + 1
        assert depth < 400
        return paths

    first, second = chain(), chain()
    assert first == second
    assert len(set(first)) == len(first)
    assert max(map(len, first)) < 2100


def test_the_lock_of_what_models_asked_for_does_not_outlive_a_fork() -> None:
    from spanreplay.boundary import asked

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with asked._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if asked._lock.acquire(timeout=1) else 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_callback_of_the_loop_has_no_task_and_a_scope_all_the_same() -> None:
    top = root()
    seen = []

    async def of_a_callers_context() -> None:
        me = asyncio.current_task()
        scopes.of_task[me] = top.fork("mine")
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def callback() -> None:
            seen.append(scopes.current_scope())
            done.set()

        loop.call_soon(callback)
        await done.wait()

    token = scopes.enter(top)
    try:
        asyncio.run(of_a_callers_context())
    finally:
        scopes.leave(token)
    assert seen == [top]


def test_what_is_waited_for_with_a_limit_has_one_place_in_every_python() -> None:
    """A task of its own, or none, as this version of ``asyncio.wait_for`` has it."""

    @tool(effect="read")
    async def ask() -> None:
        pass

    class Later:
        def __await__(self) -> Generator[Any, None, None]:
            return ask().__await__()

    async def twice() -> None:
        await ask()
        await ask()

    async def agent() -> None:
        await asyncio.wait_for(twice(), 60)
        await asyncio.wait_for(twice(), None)
        await asyncio.wait_for(asyncio.create_task(twice()), 60)
        await asyncio.wait_for(Later(), 60)
        await asyncio.gather(*(asyncio.wait_for(twice(), 60) for _ in range(2)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(twice(), 0)
        await asyncio.wait_for(twice(), 60)
        await ask()

    here = "test_what_is_waited_for_with_a_limit_has_one_place_in_every_python.<locals>"
    call, task, waits = "tool_call:ask", f"~{here}.twice", "~wait_for"
    assert recorded(agent).paths == [
        *[f"{task}#0/{call}#{number}" for number in range(2)],
        *[f"{call}#{number}" for number in range(2)],
        *[f"{task}#1/{call}#{number}" for number in range(2)],
        f"~_wrap_awaitable#0/{call}#0",
        *[f"{waits}#{n}/{task}#0/{call}#{number}" for n in range(2) for number in range(2)],
        *[f"{task}#3/{call}#{number}" for number in range(2)],
        f"{call}#2",
    ]

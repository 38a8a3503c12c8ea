"""An agent that hands its work to processes of every kind, and makes the same call in each: ``family.py KIND…``."""

import functools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from spanreplay.instrumentation import agent_run, tool

JOBS = 12


@tool(effect="read")
def ask() -> str:
    """Every call is the same, and gets another answer."""
    return os.urandom(4).hex()


def work(_: int = 0) -> str:
    """Take some time, another each time."""
    time.sleep(os.urandom(1)[0] / 20_000)
    return ask()


def tell(pipe: Any) -> None:
    """In a child of its own."""
    pipe.send([ask(), ask()])
    pipe.close()


def process(method: str) -> list[str]:
    """Two processes of multiprocessing, one after the other."""
    found: list[str] = []
    context: Any = multiprocessing.get_context(method)
    for _ in range(2):
        here, there = context.Pipe()
        child = context.Process(target=tell, args=(there,))
        child.start()
        there.close()
        found += here.recv()
        child.join()
    return found


def executor(method: str) -> list[str]:
    """A pool whose workers take what comes."""
    context: Any = multiprocessing.get_context(method)
    with ProcessPoolExecutor(3, context) as pool:
        return [future.result() for future in [pool.submit(work) for _ in range(JOBS)]] + list(pool.map(work, range(4)))


def pool(method: str) -> list[str]:
    """The other kind of pool."""
    context: Any = multiprocessing.get_context(method)
    with context.Pool(3) as workers:
        return [*workers.map(work, range(JOBS)), workers.apply(work), *workers.imap(work, range(3)), *workers.starmap(work, [(1,), (2,)])]


def copies() -> list[str]:
    """Plain forks."""
    found: list[str] = []
    for _ in range(2):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, json.dumps([ask()]).encode())
            os._exit(0)
        os.close(write)
        found += json.loads(os.read(read, 1000))
        os.close(read)
        os.wait()
    return found


def in_agents() -> list[list[str]]:
    """Agents one after the other, each with a pool of its own."""
    found = []
    for number in range(2):
        with agent_run(f"agent-{number}", input=number):
            found.append([ask(), *executor("fork"), *process("fork")])
    return found


KINDS: dict[str, Callable[[], Any]] = {
    "copies": copies,
    "in-agents": in_agents,
    **{
        f"{kind.__name__}-{method}": functools.partial(kind, method)
        for kind in (process, executor, pool)
        for method in ("fork", "spawn", "forkserver")
    },
}

if __name__ == "__main__":
    for kind in sys.argv[1:]:
        print(json.dumps({kind: KINDS[kind]()}))

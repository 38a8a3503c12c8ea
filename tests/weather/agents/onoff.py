"""Starts and stops recordings in every order, and says whether everything is as it was: ``onoff.py FOLDER``."""

import asyncio
import builtins
import io
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import httpx2
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider

from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool

FOLDER = sys.argv[1]
OWNERS: tuple[Any, ...] = (
    *(httpx, httpx.Client, httpx.AsyncClient, httpx2, httpx2.Client, httpx2.AsyncClient, threading, threading.Thread, ThreadPoolExecutor),
    *(asyncio, asyncio.BaseEventLoop, builtins, io, sqlite3, socket, socket.socket, subprocess, subprocess.Popen, os, sys),
    *(TracerProvider, LoggerProvider, trace),
)
OFTEN = {"_ex_info", "last_value", "last_type", "last_traceback"}


def everything() -> dict[str, Any]:
    """Every attribute of what is patched, by name: the very objects."""
    return {f"{_called(owner)}.{name}": value for owner in OWNERS for name, value in list(vars(owner).items()) if name not in OFTEN}


def _called(owner: Any) -> str:
    return f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else str(owner.__name__)


def changed(before: dict[str, Any]) -> list[str]:
    """What is another object now, or there no more, or new."""
    now = everything()
    return sorted({name for name in {*before, *now} if before.get(name, FOLDER) is not now.get(name, FOLDER)})


@tool(effect="read")
def note(where: str) -> str:
    """A call."""
    return where


def noted(where: str) -> None:
    """A run."""
    with agent_run(where):
        note(where)


async def notebook() -> None:
    """Cells run in tasks of one loop that never ends: started in one, stopped in another."""

    async def cell(number: int) -> None:
        if number == 0:
            recording.start(store=f"{FOLDER}/notebook")
        async with agent_run(f"cell {number}"):
            await asyncio.to_thread(note, f"cell {number}")
        if number == 2:
            recording.stop()

    for number in range(4):
        await asyncio.get_running_loop().create_task(cell(number))


def main() -> None:
    """Everything, in order."""
    provider = TracerProvider()
    warm = {}
    for round_ in ("warm", "again"):  # the first round imports what is imported lazily
        before, environment = everything(), dict(os.environ)
        recording.start(store=f"{FOLDER}/{round_}-a")
        recording.start(store=f"{FOLDER}/{round_}-a")
        noted("a")
        during = changed(before)
        recording.stop()
        recording.stop()
        noted("nowhere")
        recording.start(store=f"{FOLDER}/{round_}-b")
        noted("b")
        recording.stop()
        warm[round_] = {"during": during, "after": changed(before), "environment": dict(os.environ) == environment}
    assert not provider._active_span_processor._span_processors
    asyncio.run(notebook())
    print(json.dumps(warm["again"]))


if __name__ == "__main__":
    main()

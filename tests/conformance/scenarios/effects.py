"""What acts on the outside: once while it is recorded, never in a replay."""

import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

from conformance.driver import OPENAI, THREADS, TOOLS, UNDECLARED
from conformance.scenario import scenario
from conformance.scenarios.loops import says
from conformance.world import MODEL, World

_UNDECLARED = {OPENAI, UNDECLARED}


def _said(world: World, text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    return str(world.openai().chat.completions.create(model=MODEL, messages=messages).choices[0].message.content)


def _write(world: World, text: str) -> str:
    (world.outside / "order.txt").write_text(text, encoding="utf-8")
    return "written"


def _send(world: World, text: str) -> str:
    with socket.create_connection(world.mail, timeout=5) as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(100).decode()


def _post(world: World, text: str) -> str:
    with urllib.request.urlopen("http://{}:{}/pay".format(*world.mail), data=text.encode(), timeout=5) as response:
        return str(response.read().decode())


def _start(world: World, text: str) -> str:
    return f"ended with {subprocess.run(['touch', str(world.outside / text)], check=True).returncode}"


def _as_tool(world: World, act: Callable[[World, str], str]) -> str:
    @world.acting_tool
    def order(text: str) -> str:
        world.mark("order")
        return act(world, text)

    said = _said(world, "What shall I order?")
    return f"{said} {order('apples')}"


@scenario(model=says, requests=1, bodies=1, effects=1, needs={OPENAI, TOOLS})
def tool_writes_a_file(world: World) -> str:
    """A tool writes a file"""
    return _as_tool(world, _write)


@scenario(model=says, requests=1, bodies=1, effects=1, needs={OPENAI, TOOLS})
def tool_sends(world: World) -> str:
    """A tool sends something to a server, by a socket of its own"""
    return _as_tool(world, _send)


@scenario(model=says, requests=1, bodies=1, effects=1, needs={OPENAI, TOOLS})
def tool_starts_a_process(world: World) -> str:
    """A tool runs a command that writes a file"""
    return _as_tool(world, _start)


@scenario(model=says, requests=1, effects=1, needs=_UNDECLARED, expect="contained")
def undeclared_file(world: World) -> str:
    """A function that nobody declared as a tool writes a file"""
    return f"{_said(world, 'Shall I?')} {_write(world, 'apples')}"


@scenario(model=says, requests=1, effects=1, needs=_UNDECLARED, expect="contained")
def undeclared_connection(world: World) -> str:
    """A function that nobody declared sends something by a socket"""
    return f"{_said(world, 'Shall I?')} {_send(world, 'apples')}"


@scenario(model=says, requests=1, effects=1, needs=_UNDECLARED, expect="contained")
def undeclared_request(world: World) -> str:
    """A function that nobody declared posts to a web server that is no model"""
    return f"{_said(world, 'Shall I?')} {_post(world, 'apples')}"


@scenario(model=says, requests=1, effects=1, needs=_UNDECLARED, expect="contained")
def undeclared_process(world: World) -> str:
    """A function that nobody declared runs a command that writes a file"""
    return f"{_said(world, 'Shall I?')} {_start(world, 'apples')}"


@scenario(model=says, requests=1, effects=1, needs={*_UNDECLARED, THREADS}, expect="contained")
def undeclared_in_a_thread(world: World) -> str:
    """A thread that the program starts sends something by a socket"""
    thread = threading.Thread(target=_send, args=(world, "apples"))
    thread.start()
    thread.join()
    return _said(world, "Shall I?")

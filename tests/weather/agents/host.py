"""A web server, ``host.py threads|async``, that answers twenty requests at once, each with a run of its own; prints the answers."""

import asyncio
import json
import os
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from spanreplay.instrumentation import agent_run, tool

REQUESTS = 20
together = threading.Barrier(REQUESTS)


@tool(effect="read")
def fetch(guest: str, course: int) -> str:
    """A plain call."""
    return f"{guest} {course}"


@tool(effect="read")
async def afetch(guest: str, course: int) -> str:
    """An asynchronous call."""
    await asyncio.sleep(0)
    return f"{guest} {course}"


class Handler(BaseHTTPRequestHandler):
    """All guests are served at the same time."""

    def do_GET(self) -> None:
        """One run a request."""
        guest = self.path.strip("/")
        with agent_run("waiter", input=guest) as run:
            together.wait(60)
            courses = [fetch(guest, course) for course in range(3)]
            together.wait(60)
            run.output = courses
        body = json.dumps(courses).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def _ask(address: str, guest: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{address}/guest-{guest}") as answer:
        return str(answer.read().decode())


def _threads() -> list[str]:
    class Server(ThreadingHTTPServer):
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with ThreadPoolExecutor(REQUESTS) as guests:
        answers = list(guests.map(lambda guest: _ask(f"http://127.0.0.1:{server.server_address[1]}", guest), range(REQUESTS)))
    server.shutdown()
    return answers


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    guest = (await reader.readline()).decode().split()[1].strip("/")
    async with agent_run("waiter", input=guest) as run:
        first = await afetch(guest, 0)
        run.output = [first, *await asyncio.gather(afetch(guest, 1), afetch(guest, 2))]
    body = json.dumps(run.output).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


async def _async() -> list[str]:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        return list(await asyncio.gather(*(asyncio.to_thread(_ask, address, guest) for guest in range(REQUESTS))))


if __name__ == "__main__":
    if "START" in os.environ:
        from spanreplay import recording

        recording.start(store=os.environ["START"])
    print(json.dumps(_threads() if sys.argv[1] == "threads" else asyncio.run(_async())))

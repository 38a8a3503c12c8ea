"""docs/clients.md says of each HTTP client that it is recorded or only named: so it is."""

import asyncio
import http.client
import json
import pkgutil
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from recordings.servers import Model
from spanreplay.boundary import boundary
from spanreplay.instrumentation import transports, unreplayable
from spanreplay.instrumentation.shims import untaped
from spanreplay.instrumentation.transports import aiohttp as aiohttp_transport
from spanreplay.instrumentation.transports import httpx as httpx_transport
from spanreplay.instrumentation.transports import httpx2 as httpx2_transport
from spanreplay.instrumentation.transports import urllib3 as urllib3_transport
from support.taped import recording

PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
BODY = json.dumps(ASKED).encode()
JSON = {"content-type": "application/json"}


def rows() -> dict[str, str]:
    """Each client that the table names, and what it is recorded as."""
    cells = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    return {name: as_ for first, as_, *_ in cells for name in re.findall(r"`([^`]+)`", first)}


def with_http_client(url: str) -> None:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port)
    connection.request("POST", where.path, BODY, JSON)
    connection.getresponse().read()
    connection.close()


def with_urllib(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, BODY, JSON)) as answer:
        answer.read()


def with_urllib3(url: str) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("POST", url, body=BODY, headers=JSON)


def with_aiohttp(url: str) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session, session.post(url, json=ASKED) as answer:
            await answer.read()

    asyncio.run(ask())


def with_streams(url: str) -> None:
    async def ask() -> None:
        where = urlsplit(url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        lines = (f"POST {where.path} HTTP/1.1", "host: x", "content-type: application/json", f"content-length: {len(BODY)}", "", "")
        head = "\r\n".join(lines)
        writer.write(head.encode() + BODY)
        await reader.readline()
        writer.close()

    asyncio.run(ask())


CLIENTS: dict[str, Callable[[str], object]] = {
    "httpx": lambda url: httpx.post(url, json=ASKED),
    "httpx2": lambda url: httpx2.post(url, json=ASKED),
    "aiohttp": with_aiohttp,
    "urllib3": with_urllib3,
    "requests": lambda url: requests.post(url, json=ASKED),
    "urllib.request": with_urllib,
    "http.client": with_http_client,
    "asyncio": with_streams,
}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    used = (aiohttp_transport, httpx_transport, httpx2_transport, urllib3_transport)
    for transport in used:
        transport.install()
    yield
    for transport in used:
        transport.uninstall()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_recorded_as_the_page_says(client: str) -> None:
    with Model([{"text": "hello"}]) as server, recording() as tape:
        scope = boundary.here()
        assert scope is not None
        assert scope.run is not None
        CLIENTS[client](f"{server.url}/v1/chat/completions")
        named = [what for what, _ in scope.run.untaped]
    kinds = [step["spanreplay.step.kind"] for step in tape.steps]
    said = rows()[client]
    assert (kinds, named) == ((["model_call"], []) if said == "a step" else ([], [untaped.CONNECTION]))
    assert said == "a step" or untaped.CONNECTION in said


def test_the_page_names_every_transport_and_every_kind_that_is_only_named() -> None:
    page, known = PAGE.read_text(encoding="utf-8"), rows()
    inside = {"google_genai": "httpx", "curl": "pycurl"}
    assert {inside.get(info.name, info.name) for info in pkgutil.iter_modules(transports.__path__)} <= known.keys()
    for what in (untaped.CONNECTION, unreplayable.WEBSOCKET, unreplayable.GRPC, unreplayable.CURL):
        assert f"`{what}`" in page

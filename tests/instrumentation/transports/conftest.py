"""What the transport tests share: both transports installed, a scripted server."""

from collections.abc import Iterator

import pytest

from spanreplay.instrumentation.transports import httpx as httpx_transport
from spanreplay.instrumentation.transports import httpx2 as httpx2_transport
from support.model_server import ModelServer
from support.sdk_agents import close_clients


@pytest.fixture(autouse=True)
def _transports() -> Iterator[None]:
    httpx_transport.install()
    httpx2_transport.install()
    yield
    close_clients()
    httpx2_transport.uninstall()
    httpx_transport.uninstall()


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    """One server for a module's tests."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    """The server, with nothing seen yet."""
    running.requests.clear()
    return running

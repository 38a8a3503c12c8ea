"""libcurl's clients, on modules of the same shape: named while recording, refused in a replay."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.transports import curl as transport
from support.taped import recorded, replayed

URL = 10002


class Curl:
    """Of either library."""

    def setopt(self, option: Any, value: Any) -> None:
        self.option = option, value

    def perform(self) -> str:
        return "sent"

    perform_rb = perform_rs = perform


class Multi:
    def add_handle(self, curl: Any) -> str:
        return f"added {curl.perform.__name__}"


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    made: dict[str, Any] = {name: ModuleType(name) for name in ("curl_cffi.curl", "curl_cffi.aio", "pycurl")}
    made["curl_cffi.curl"].Curl = type("Curl", (), dict(vars(Curl)))
    made["curl_cffi.aio"].AsyncCurl = type("AsyncCurl", (), dict(vars(Multi)))
    made["pycurl"].Curl, made["pycurl"].CurlMulti = Curl, Multi
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    transport.uninstall()
    transport.install()
    assert transport.status() == "active"
    yield made
    transport.uninstall()


@pytest.mark.parametrize(
    ("module", "several"), [("curl_cffi.curl", None), ("pycurl", None), ("curl_cffi.curl", "curl_cffi.aio"), ("pycurl", "pycurl")]
)
def test_a_request_is_named_and_a_replay_refuses_it(modules: dict[str, Any], module: str, several: str | None) -> None:
    def ask() -> str:
        handle = modules[module].Curl()
        handle.setopt(URL, b"http://h/v1?api_key=sk-abcdefghijklmnopqrstuvwx")
        if several is None:
            return str(handle.perform())
        owner = vars(modules[several])
        return str(owner["AsyncCurl" if "AsyncCurl" in owner else "CurlMulti"]().add_handle(handle))

    def agent() -> None:
        with agent_run("a"):
            ask()

    def with_a_tool() -> None:
        with agent_run("a"):
            tool(ask)()

    tape = recorded(agent)
    (run,) = [run for run in tape.runs() if run.agent_name == "a"]
    ((item),) = run.untaped
    assert (item["what"], str(item["target"])[:12]) == ("libcurl request made", "http://h/v1?")
    assert "sk-abc" not in str(item)
    refused = replayed(tape, agent)
    assert not refused.equal
    tape = recorded(with_a_tool)
    assert not [item for run in tape.runs() for item in run.untaped]
    assert replayed(tape, with_a_tool).equal


def test_it_is_as_it_was_when_off_and_when_taken_out(modules: dict[str, Any]) -> None:
    assert modules["pycurl"].Curl().perform() == "sent"
    assert isinstance(modules["pycurl"].Curl(), Curl)
    transport.uninstall()
    assert modules["pycurl"].Curl is Curl
    assert not hasattr(modules["curl_cffi.curl"].Curl.perform, "__wrapped__")

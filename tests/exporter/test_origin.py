"""The resource of this process, by a name that people look for."""

import sys

import pytest

from spanreplay.exporter.origin import process_resource


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (["python", "agent.py", "-m", "x"], "agent"),
        (["python", "-u", "-W", "error", "-Xdev", "/srv/shop/agent.py"], "agent"),
        (["python", "-m", "shop.worker", "agent.py"], "shop.worker"),
        (["/srv/bin/python", "/srv/bin/spanreplay", "demo"], "spanreplay"),
        (["python", "-c", "print()"], "unknown_service"),
        (["python", "-"], "unknown_service"),
        (["python"], "unknown_service"),
        (["python", "-m"], "unknown_service"),
        ([], "unknown_service"),
    ],
)
def test_the_service_is_the_program(monkeypatch: pytest.MonkeyPatch, line: list[str], name: str) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "orig_argv", line)
    assert process_resource().attributes["service.name"] == name
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=test")
    assert process_resource().attributes["service.name"] == "shop"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "till")
    assert process_resource().attributes["service.name"] == "till"

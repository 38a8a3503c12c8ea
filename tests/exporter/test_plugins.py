"""Installing what makes calls pass the Boundary: once, and again as soon as some of it was taken out."""

import pytest

from spanreplay.instrumentation import hooks
from spanreplay.instrumentation.shortcuts import openai as openai_methods
from spanreplay.recording import plugins


def test_what_was_taken_out_by_itself_is_put_back() -> None:
    first = plugins.install("none", shortcuts=True)
    try:
        assert plugins.install("none", shortcuts=True).names() == first.names()
        openai_methods.uninstall()
        assert openai_methods.status() == "off"
        assert plugins.install("none", shortcuts=True).names() == first.names()
        assert openai_methods.status() != "off"
    finally:
        first.uninstall()
    assert openai_methods.status() == "off"
    plugins.install("none", shortcuts=True).uninstall()


def test_shortcuts_that_are_switched_off_are_not_installed_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins.install("none", shortcuts=True).uninstall()
    monkeypatch.setenv("SPANREPLAY_SHORTCUTS", "off")
    made = plugins.install("none", shortcuts=True)
    try:
        assert hooks.known["openai's methods"].status() == "off"
    finally:
        made.uninstall()

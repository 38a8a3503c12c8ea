"""A library is patched when it is imported, and is as before afterwards."""

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation.hooks import Hooks, UnsupportedError, expect
from spanreplay.instrumentation.patching import Patches


def louder(original: Callable[..., str]) -> Callable[..., str]:
    def say(*args: Any, **kwargs: Any) -> str:
        return original(*args, **kwargs) + "!"

    return say


def patch(module: types.ModuleType, patches: Patches) -> None:
    expect(module.Speaker, "say", ["self", "word"])
    patches.replace(module.Speaker, "say", louder)
    patches.rebind(module, "shout", louder)


CORE = """
class Speaker:
    def say(self, word, *, times=1):
        return word * times

def shout(word):
    return word.upper()
"""
SOURCE = {"__init__.py": "", "core.py": CORE, "user.py": "from {0}.core import shout as aloud\n"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"speakers_{abs(hash(tmp_path))}"
    folder = tmp_path / name
    folder.mkdir()
    for file, text in SOURCE.items():
        (folder / file).write_text(text.format(name) if file == "user.py" else text)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for loaded in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[loaded]


def loaded(name: str) -> Any:
    return __import__(name, fromlist=["_"])


def test_a_library_is_patched_as_soon_as_it_is_imported_and_put_back(package: str) -> None:
    hooks = Hooks("speakers", {f"{package}.core": patch})
    assert hooks.status() == "off"
    hooks.install()
    hooks.install()
    assert hooks.status() == "waiting"
    core = loaded(f"{package}.core")
    assert hooks.status() == "active"
    assert (core.Speaker().say("a", times=2), core.shout("a")) == ("aa!", "A!")
    hooks.uninstall()
    hooks.uninstall()
    assert hooks.status() == "off"
    assert (core.Speaker().say("a"), core.shout("a")) == ("a", "A")
    hooks.install()
    assert core.Speaker().say("a") == "a!"
    hooks.uninstall()


def test_names_that_were_imported_before_are_rebound_and_put_back(package: str) -> None:
    user = loaded(f"{package}.user")
    hooks = Hooks("speakers", {f"{package}.core": patch})
    hooks.install()
    assert (hooks.status(), user.aloud("a")) == ("active", "A!")
    hooks.uninstall()
    assert user.aloud("a") == "A"


def test_names_that_were_imported_since_are_rebound_the_next_time(package: str) -> None:
    core = loaded(f"{package}.core")
    hooks = Hooks("speakers", {f"{package}.core": patch})
    for _ in range(2):
        hooks.install()
        hooks.uninstall()
    user = loaded(f"{package}.user")
    hooks.install()
    assert user.aloud("a") == "A!"
    hooks.uninstall()
    user.again = user.aloud
    hooks.install()
    assert (user.again("a"), user.aloud("a")) == ("A!", "A!")
    hooks.uninstall()
    assert (user.again("a"), user.aloud("a"), core.shout("a")) == ("A", "A", "A")
    del sys.modules[user.__name__]
    user = loaded(user.__name__)
    hooks.install()
    assert user.aloud("a") == "A!"
    hooks.uninstall()


def test_what_somebody_else_has_put_on_top_stays(package: str) -> None:
    core = loaded(f"{package}.core")
    hooks = Hooks("speakers", {f"{package}.core": patch})
    hooks.install()
    core.Speaker.say = louder(core.Speaker.say)
    hooks.uninstall()
    assert core.Speaker().say("a") == "a!!"


def test_a_library_that_is_another_now_stays_untouched_and_is_named(package: str, caplog: pytest.LogCaptureFixture) -> None:
    def unknown(module: types.ModuleType, patches: Patches) -> None:
        patches.replace(module.Speaker, "say", louder)
        expect(module.Speaker, "say", ["self", "text"])

    def broken(module: types.ModuleType, patches: Patches) -> None:
        raise ZeroDivisionError

    hooks = Hooks("speakers", {f"{package}.core": unknown, f"{package}.user": broken})
    hooks.install()
    user = loaded(f"{package}.user")
    assert "wanted" in hooks.status()
    assert "ZeroDivisionError" in hooks.status()
    assert loaded(f"{package}.core").Speaker().say("a") == "a"
    assert user.aloud("a") == "A"
    assert "spanreplay cannot observe speakers" in caplog.text
    hooks.uninstall()


def test_a_signature_is_known_by_the_parameters_wanted() -> None:
    class Tools:
        def run(self, tool: str, arguments: str, *, new: int = 0) -> None: ...

    assert expect(Tools, "run", ["self", "tool", "arguments"]) is Tools.run
    with pytest.raises(UnsupportedError, match=r"wanted Tools.run\(self, arguments, tool\), found the parameters \(self, tool, arg"):
        expect(Tools, "run", ["self", "arguments", "tool"])
    with pytest.raises(UnsupportedError, match=r"wanted a function Tools.walk, found none"):
        expect(Tools, "walk", ["self"])

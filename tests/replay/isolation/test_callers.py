"""What the stack says about who acts."""

import sys
import threading
from types import FrameType
from typing import Any

import pytest

from spanreplay.replay.isolation.callers import Caller, read, thread_name, user_line, user_line_of_all

SITE = "/v/lib/python3.11/site-packages/lib.py"
USER = "/app/agent.py"
STD = f"{sys.base_prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/"
IMPORT = "<frozen importlib._bootstrap>"


def stack(*frames: tuple[str, str, str]) -> Caller:
    """Read a made-up stack of (module, function, file), nearest first."""

    class Frame:
        def __init__(self, module: str, function: str, file: str, back: Any) -> None:
            self.f_globals = {"__name__": module}
            self.f_code = type("Code", (), {"co_filename": file, "co_name": function})
            self.f_lineno = 7
            self.f_back = back

    frame: Any = None
    for module, function, file in reversed(frames):
        frame = Frame(module, function, file, frame)
    found: FrameType | None = frame
    return read(found)


OURS = ("spanreplay.replay.isolation.hook", "_hook", "/s/hook.py")
FIND = ("importlib._bootstrap", "_find_and_load", IMPORT)


@pytest.mark.parametrize(
    ("frames", "where", "importing"),
    [
        ([OURS, ("os", "makedirs", "<frozen os>"), ("agent", "tool", USER)], f"{USER}:7", False),
        ([OURS, ("lib", "f", SITE), ("agent", "tool", USER)], f"{USER}:7", False),
        ([("lib", "<module>", SITE), FIND, ("agent", "tool", USER)], f"{USER}:7", True),
        ([("socket", "f", f"{STD}socket.py"), ("lib", "<module>", SITE), FIND, ("agent", "<module>", USER)], f"{USER}:7", True),
        ([("tools", "<module>", "/app/tools.py"), FIND, ("agent", "<module>", USER)], "/app/tools.py:7", False),
        ([("lib", "f", SITE), ("agent", "f", USER), FIND, ("runner", "main", SITE)], f"{USER}:7", False),
        ([OURS, ("lib", "f", SITE), ("os", "f", f"{STD}os.py")], f"{SITE}:7", False),
        (
            [("spanreplay.replay.reexecution.engine", "_run", "/s/engine.py"), ("__main__", "<module>", "/v/bin/spanreplay")],
            "unknown",
            False,
        ),
        ([("os", "f", f"{STD}os.py")], f"{STD}os.py:7", False),
        ([], "unknown", False),
    ],
)
def test_where_and_import(frames: list[tuple[str, str, str]], where: str, importing: bool) -> None:
    caller = stack(*frames)
    assert (caller.where, caller.importing) == (where, importing)


@pytest.mark.parametrize(
    ("frames", "probing"),
    [
        ([("subprocess", "run", f"{STD}subprocess.py"), ("platform", "from_subprocess", f"{STD}platform.py"), ("lib", "f", SITE)], True),
        ([("lib", "f", SITE), ("platform", "processor", f"{STD}platform.py")], False),
        ([("platform", "f", "/app/platform.py")], False),
        ([("uuid", "uuid4", f"{STD}uuid.py"), ("agent", "f", USER)], False),
        ([("uuid", "_get_command_stdout", f"{STD}uuid.py"), ("agent", "f", USER)], True),
    ],
)
def test_probe(frames: list[tuple[str, str, str]], probing: bool) -> None:
    assert stack(*frames).probing is probing


def test_thread_name_makes_no_thread_object() -> None:
    import _thread

    said: list[str] = []
    done = threading.Event()

    def raw() -> None:
        said.append(thread_name())
        said.append(str(threading.get_ident() in threading._active))  # type: ignore[attr-defined]
        done.set()

    _thread.start_new_thread(raw, ())
    assert done.wait(30)
    assert said[0].startswith("thread ")
    assert said[1] == "False"
    assert thread_name() == threading.current_thread().name


def test_where_a_thread_has_no_frame_of_the_user_the_main_thread_tells() -> None:
    found = user_line_of_all(None)
    assert found is not None
    assert found.startswith(f"{__file__}:")
    assert found.endswith(" (where the main thread is)")
    assert user_line_of_all(sys._getframe()) == user_line(sys._getframe())

"""Which code is the program's own: what lies neither in the standard library nor where packages are installed, and is none of ours."""

import os
import sys
import sysconfig
from functools import lru_cache
from types import FrameType
from typing import Final

_OF_PYTHON: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")} | {"<frozen "})
_OTHERS: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")}.union(_OF_PYTHON))
_files: Final[dict[str, bool]] = {}
_MOST: Final = 20_000
"""Files that are known: a program may make code without end."""


def caller(depth: int = 1) -> FrameType:
    """The frame that has called the function that asks; the function's own, which is none of the program's, where no frame of Python has.

    An ``atexit`` callback is called by C code, and so is what a library in Rust calls back from a thread of its own.

    Args:
        depth: 2 for who has called that, and so on.
    """
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return sys._getframe(1)


def is_own(frame: FrameType) -> bool:
    """Whether the code of this frame is the program's own."""
    file = frame.f_code.co_filename
    known = _files.get(file)
    if known is None:
        if len(_files) >= _MOST:
            _files.clear()
        known = _files[file] = is_own_file(file) and not str(frame.f_globals.get("__name__")).startswith("spanreplay.")
    return known


def is_own_file(file: str) -> bool:
    """Whether a file is neither of the standard library nor of an installed package."""
    return not file.startswith(_OTHERS) and "-packages" + os.sep not in file


@lru_cache(maxsize=1024)
def is_of_python(file: str) -> bool:
    """Whether a file is of the standard library, and in no package beside it."""
    return file.startswith(_OF_PYTHON) and "-packages" + os.sep not in file

"""A newer Python than the oldest that is supported, where this machine has one: ``python3 tests/support/newer_python.py`` prints its path.

What lies in ``PATH`` may be a shim of pyenv that starts nothing, so each is tried.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.14", "3.13", "3.12")
HOMES: Final = (".pyenv/versions/{0}.*/bin/python{0}", ".local/share/uv/python/cpython-{0}.*/bin/python{0}")
"""Below the user's home."""


def newer_python() -> str | None:
    """The newest that runs and can make environments; ``None`` where there is none."""
    return next((python for version in VERSIONS for python in candidates(version) if runs(python)), None)


def candidates(version: str) -> Iterator[str]:
    """Where one may be."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    for pattern in HOMES:
        yield from map(str, sorted(Path.home().glob(pattern.format(version))))


def runs(python: str) -> bool:
    """Whether it starts, and has what an environment needs."""
    return subprocess.run([python, "-c", "import ensurepip, ssl, venv"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    found = newer_python()
    sys.exit("there is no newer Python here") if found is None else print(found)

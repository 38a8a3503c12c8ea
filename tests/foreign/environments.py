"""An environment of its own for each case, since frameworks do not agree on versions: made once, kept outside the checkout."""

import os
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def cases() -> list[str]:
    """The cases: every folder here that pins its requirements."""
    return sorted(found.parent.name for found in HERE.glob("*/requirements.txt"))


def environment(case: str) -> Path:
    """The folder of a case's environment, with this checkout installed in it; made where it is not there yet."""
    wanted = (HERE / case / "requirements.txt").read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    key = sha256(wanted + f"{sys.version} {ROOT}".encode()).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spanreplay-tests"
    made = home / f"{case}-{key}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / f"{case}.lock"):
        if not (made / ".ready").exists():
            for old in home.glob(f"{case}-*"):
                shutil.rmtree(old)
            _install(made, HERE / case / "requirements.txt")
            (made / ".ready").touch()
    return made


def _install(folder: Path, requirements: Path) -> None:
    python = folder / "bin" / "python"
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        venv.create(folder, with_pip=True)
        installer = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    else:
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        installer = [uv, "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([*installer, "--requirement", str(requirements), "--editable", str(ROOT)], check=True)

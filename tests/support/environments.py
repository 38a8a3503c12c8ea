"""An environment for each set of requirements, since frameworks do not agree on versions: made once, kept outside the checkout."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parent.parent.parent


def environment(name: str, requirements: Path, *, checkout: bool = True, python: str = sys.executable) -> Path:
    """The folder of an environment, with this checkout installed in it; made where it is not there yet.

    Args:
        name: whose environment it is; one of the same name with other requirements is replaced.
        requirements: a file for pip.
        checkout: with ``False`` without this checkout.
        python: the interpreter; for another one than this, uv is needed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {name: project.get(name) for name in ("version", "dependencies", "scripts", "entry-points")} if checkout else {}
    version = sys.version if python == sys.executable else python
    key = sha256(f"{requirements.read_text(encoding='utf-8')} {installed} {version} {ROOT}".encode()).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spanreplay-tests"
    made = home / f"{name}-{key}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / f"{name}.lock"):
        if not (made / ".ready").exists():
            for old in home.glob(f"{name}-{'[0-9a-f]' * 16}"):
                shutil.rmtree(old)
            _install(made, requirements, ["--editable", str(ROOT)] if checkout else [], python)
            (made / ".ready").touch()
    return made


def _install(folder: Path, requirements: Path, more: list[str], base: str) -> None:
    python = folder / "bin" / "python"
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        assert base == sys.executable, "another interpreter needs uv"
        venv.create(folder, with_pip=True)
        installer = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    else:
        subprocess.run([uv, "venv", "--quiet", "--python", base, str(folder)], check=True)
        installer = [uv, "pip", "install", "--quiet", "--python", str(python)]
    subprocess.run([*installer, "--requirement", str(requirements), *more], check=True)

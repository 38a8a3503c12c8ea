"""A real Collector and a real Jaeger: found in a cache outside the checkout, built with Go where that is asked for.

``python tests/backends/binaries.py`` builds what is not there yet: about 20 minutes of one processor, once. Tests never build; without the
binaries they are skipped. Nothing but the standard library is needed here, so that it can run before anything is installed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
MANIFESTS: Final = {
    "manifest.yaml": "go.opentelemetry.io/collector/cmd/builder@v0.161.0",
    "manifest-files.yaml": "go.opentelemetry.io/collector/cmd/builder@v0.158.0",
}
"""What is in each Collector, and the builder that puts it together."""
JAEGER: Final = "github.com/jaegertracing/jaeger/cmd/jaeger@v1.76.0"
"""Jaeger 2.13; as built here it has the API, not the pages, which its own build packs into it."""
MINUTES: Final = 30
"""A build that takes longer is given up: the tests are then skipped, with a message."""

HOW: Final = "python tests/backends/binaries.py builds it (with Go, about 20 minutes, once)"


def cache() -> Path:
    """The folder of the binaries."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spanreplay-tests" / "backends"


def collector(manifest: str = "manifest.yaml") -> Path:
    """Where the Collector is, or will be: another manifest is another file."""
    lines = (_HERE / manifest).read_text(encoding="utf-8").splitlines()
    return cache() / f"otelcol-{_key(MANIFESTS[manifest] + ''.join(line for line in lines if not line.startswith('#')))}"


def file_collector() -> Path:
    """Where the Collector is, or will be, that reads files."""
    return collector("manifest-files.yaml")


def jaeger() -> Path:
    """Where Jaeger is, or will be."""
    return cache() / f"jaeger-{_key(JAEGER)}"


def _key(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def build_collector(go: str, folder: Path, manifest: str = "manifest.yaml") -> Path:
    """Builds it in an empty folder; returns the binary."""
    shutil.copy(_HERE / manifest, folder / manifest)
    _go(go, folder, "install", MANIFESTS[manifest], GOBIN=str(folder))
    _run([str(folder / "builder"), "--config", manifest], folder)
    return folder / "out" / "otelcol-spanreplay"


def build_file_collector(go: str, folder: Path) -> Path:
    """Builds the one that reads files in an empty folder; returns the binary."""
    return build_collector(go, folder, "manifest-files.yaml")


def build_jaeger(go: str, folder: Path) -> Path:
    """Builds it in an empty folder; returns the binary."""
    _go(go, folder, "mod", "init", "spanreplay.test/jaeger")
    _go(go, folder, "get", "-tool", JAEGER)
    _go(go, folder, "build", "-o", "jaeger", JAEGER.partition("@")[0])
    return folder / "jaeger"


def _go(go: str, folder: Path, *arguments: str, **environment: str) -> None:
    _run([go, *arguments], folder, **environment)


def _run(command: list[str], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "GOFLAGS": "-buildvcs=false", **environment},
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} gave exit code {done.returncode}:\n{done.stderr[-2000:]}")


def main() -> int:
    """Builds what is missing. The exit code is 0 without Go, and 1 where a build failed."""
    go, failed = shutil.which("go"), False
    for name, wanted, build in (
        ("the Collector", collector(), build_collector),
        ("the Collector that reads files", file_collector(), build_file_collector),
        ("Jaeger", jaeger(), build_jaeger),
    ):
        if wanted.exists():
            print(f"{name}: {wanted}")
        elif go is None:
            print(f"{name}: not built, since there is no Go here; the tests with it are skipped")
        else:
            print(f"{name}: building with {go} …", flush=True)
            wanted.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    made = build(go, Path(folder))
                except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                    print(f"{name}: not built: {error}")
                    failed = True
                    continue
                part = wanted.with_suffix(".part")
                shutil.copy(made, part)
                part.replace(wanted)
            print(f"{name}: {wanted}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

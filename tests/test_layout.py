"""Guards of the layout: three roots, one namespace, one wheel."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spanreplay.semconv import attributes

ROOT = Path(__file__).parent.parent
ROOTS = ("instrumentation", "exporter", "replay")
PACKAGES = ("semconv", "content", "boundary", "instrumentation", "spans", "store", "exporter", "receiver", "recording", "replay", "cli")


@pytest.mark.parametrize("root", ROOTS)
def test_the_namespace_has_no_init(root: str) -> None:
    assert not (ROOT / root / "spanreplay" / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(package: str) -> None:
    assert any((ROOT / r / "spanreplay" / package / "py.typed").is_file() for r in ROOTS)


def test_every_module_imports() -> None:
    import spanreplay

    for module in pkgutil.walk_packages(spanreplay.__path__, "spanreplay."):
        if not module.name.endswith("__main__") and "_site" not in module.name:
            importlib.import_module(module.name)


def test_no_attribute_name_is_spelled_twice() -> None:
    known = {v for k, v in vars(attributes).items() if k.isupper() and isinstance(v, str) and "." in v}
    others = re.compile(r"/dialects/(?!spanreplay)")  # a dialect of others spells the names of others
    found = [
        f"{file.relative_to(ROOT)}:{number} {name}"
        for root in ROOTS
        for file in (ROOT / root).rglob("*.py")
        if file.name != "attributes.py" and not others.search(file.as_posix())
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for name in re.findall(r"[\"']([a-z_]+(?:\.[a-z_]+)+)[\"']", line)
        if name in known
    ]
    assert not found


def test_an_agent_that_is_instrumented_loads_neither_duckdb_nor_the_sdk() -> None:
    code = (
        "import sys, spanreplay.instrumentation; print([m for m in ('duckdb', 'opentelemetry.sdk', 'click', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

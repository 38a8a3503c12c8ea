"""What would be recorded in this interpreter."""

import sys
from pathlib import Path

import pytest

from spanreplay.recording import plugins
from spanreplay.recording.examining import examine, from_json, to_json


def distribution(folder: Path, name: str, module: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[opentelemetry_instrumentor]\nit = {module}:Instrumentor\nit2 = {module}:Instrumentor2\n")


def test_instrumentors_that_overwrite_each_other_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    distribution(tmp_path, "loud-instrumentor", "instrumentors.openai_agents")
    assert [(one.ok, "loud-instrumentor 1.0" in one.detail) for one in examine().remarks] == [(True, True)]
    distribution(tmp_path, "quiet-instrumentor", "instrumentors.openai_agents")
    conflict, _ = examine().remarks
    assert (conflict.ok, examine().ok) == (False, False)
    assert "loud-instrumentor 1.0 and quiet-instrumentor 1.0 both install instrumentors.openai_agents" in conflict.detail


def test_each_library_is_examined_and_left_as_it_was() -> None:
    found = examine()
    assert len(found.libraries) == len(plugins.names())
    assert from_json(to_json(found)) == found
    by_name = {one.name: one for one in found.libraries}
    assert (by_name["httpx2"].status, by_name["httpx2"].ok) == ("active", True)
    assert (found.python, by_name["httpx2"].installed is not None) == (sys.executable, True)


def test_a_library_that_fails_to_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pydantic_ai").mkdir()
    (tmp_path / "pydantic_ai" / "__init__.py").write_text("raise RuntimeError('half installed')")
    (broken,) = (one for one in examine().libraries if one.name == "pydantic_ai")
    assert (broken.ok, broken.status) == (False, "cannot be imported: RuntimeError: half installed")

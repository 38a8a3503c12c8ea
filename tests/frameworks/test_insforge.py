"""The platform of the article this project started from: its real MCP server, an npm package, driven by an agent over stdio."""

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from filelock import FileLock

from frameworks.insforge.back_end import back_end
from frameworks.running import HERE, Framework, runs_in
from frameworks.test_contract import WANTED
from support.environments import environment

NODE = shutil.which("node")
NPM = shutil.which("npm")
KEY = "ik_0123456789abcdef0123456789abcdef"

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(WANTED != "all" and "insforge" not in WANTED.split(","), reason="installs @insforge/mcp: SPANREPLAY_FRAMEWORKS=all"),
    pytest.mark.skipif(NODE is None or NPM is None, reason="there is no node here, with which the platform's server runs"),
]


def installed() -> Path:
    """The package's program; installed where it is not there yet."""
    wanted = HERE / "insforge" / "package.json"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spanreplay-tests"
    folder = home / f"insforge-{sha256(wanted.read_bytes()).hexdigest()[:16]}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "insforge.lock"):
        if not (folder / ".ready").exists():
            folder.mkdir(exist_ok=True)
            shutil.copy(wanted, folder)
            subprocess.run(
                [str(NPM), "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=True, capture_output=True
            )
            (folder / ".ready").touch()
    return folder / "node_modules" / "@insforge" / "mcp" / "dist" / "index.js"


def test_an_agent_that_drives_the_platform_is_recorded_and_replayed_without_it(tmp_path: Path) -> None:
    python = environment("framework-mcp-requirements", HERE / "mcp" / "requirements.txt") / "bin" / "python"
    framework = Framework(name="insforge", python=python, folder=tmp_path)
    script = json.loads((HERE / "insforge" / "script.json").read_text(encoding="utf-8"))
    with back_end(KEY) as (url, asked):
        variables = {"SERVER": str(installed()), "API_KEY": KEY, "BACK_END": url}
        recorded = framework.live(script, *framework.spanreplay("record", "--", *framework.agent), NODE=str(NODE), **variables)
    assert recorded.code == 0, recorded.err
    assert [answer["output"] for answer in recorded.answers] == ["The table and the bucket are there."]
    assert {"GET /api/health", "POST /api/usage/mcp", "POST /api/database/advance/rawsql"} <= set(asked)

    path = framework.exported()
    assert KEY not in path.read_text(encoding="utf-8")
    (run,) = [run for run in runs_in(path) if run.steps]
    assert run.grade == "exact", run.grade_reasons
    assert [(step.kind, step.name, step.outcome) for step in run.steps if step.kind != "model_call"] == [
        ("mcp", "connect", "ok"),
        ("mcp", "initialize", "ok"),
        ("mcp", "tools/list", "ok"),
        ("tool_call", "get-backend-metadata", "ok"),
        ("tool_call", "run-raw-sql", "ok"),
        ("tool_call", "create-bucket", "ok"),
        ("tool_call", "get-table-schema", "tool_error"),
        ("tool_call", "get-table-schema", "ok"),
    ]
    for step in run.steps:
        if step.kind == "tool_call":
            assert set(step.versions["tool"]) >= {"name", "version", "schema_digest"}, step.versions
            assert step.effect == "unknown", "the server says nothing of what its tools do, and this counts as a write"
            assert step.requested_by is not None

    before = len(asked)
    nowhere = {**variables, "NODE": str(tmp_path / "no" / "node")}
    for target in ("last", path):
        replayed = framework.run(*framework.spanreplay("replay", target, "--json", "--", *framework.agent), **nowhere)
        told = json.loads(replayed.out)["replay"]
        assert (replayed.code, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.err
        assert replayed.answers == recorded.answers
    assert len(asked) == before

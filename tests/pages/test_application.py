"""docs/examples/application: the life of an application is recorded, and its replay executes none of it."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from hashlib import sha256
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parent.parent.parent / "docs" / "examples" / "application"


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SPANREPLAY_"))}
    return subprocess.run([sys.executable, *command], cwd=folder, env=kept, capture_output=True, text=True, check=False)


def everything_in(folder: Path) -> dict[str, str]:
    """Digest of every file of the work, its commits and its database."""
    files = [*(folder / "work").rglob("*"), folder / "shop.db"]
    return {str(file.relative_to(folder)): sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()}


def test_a_replay_of_the_applications_life_executes_none_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "application"
    shutil.copytree(EXAMPLE, folder)
    assert run(folder, "prepare.py").returncode == 0
    before = everything_in(folder)
    with subprocess.Popen([sys.executable, "stand_ins.py", "0"], cwd=folder, stdout=subprocess.PIPE, text=True) as stand_ins:
        assert stand_ins.stdout is not None
        url = stand_ins.stdout.readline().strip()
        recorded = run(folder, "-m", "spanreplay", "record", "--", sys.executable, "agent.py", url)
        with urllib.request.urlopen(f"{url}/state") as state:
            reached = json.load(state)
        stand_ins.terminate()
    assert recorded.returncode == 0, recorded.stderr
    assert reached == {"settings": {"require_email_verification": True}, "deployed": ["1.0", "2.0"]}
    after = everything_in(folder)
    assert after != before

    shown = json.loads(run(folder, "-m", "spanreplay", "show", "--json").stdout)
    (found,) = shown["runs"]
    steps: list[dict[str, Any]] = found["steps"]
    assert found["grade"] == "exact", found["grade_reasons"]
    assert [(step["kind"], step["name"], step["effect"]) for step in steps if step["kind"] != "model_call"] == [
        ("io", "skill house-rules", "read"),
        ("io", "git", "unknown"),
        ("tool_call", "read_file", "read"),
        ("tool_call", "run_tests", "read"),
        ("tool_call", "edit_file", "write"),
        ("tool_call", "run_tests", "read"),
        ("tool_call", "commit", "write"),
        ("tool_call", "migrate", "write"),
        ("tool_call", "set_auth", "write"),
        ("decision", "deploy", None),
        ("tool_call", "deploy", "irreversible"),
        ("io", "git", "unknown"),
    ]
    assert [skill["name"] for skill in found["versions"]["skills"]] == ["house-rules"]
    assert [(prompt["name"], prompt["version"]) for prompt in found["versions"]["prompt"]] == [("builder", "3")]

    replayed = run(folder, "-m", "spanreplay", "replay", "last", "--json", "--", sys.executable, "agent.py", url)
    told = json.loads(replayed.stdout)["replay"]
    assert (replayed.returncode, told["equal"], told["differences"], told["refusals"]) == (0, True, [], []), replayed.stderr
    assert everything_in(folder) == after

"""``checkout``: what it lays out, and what it says where it cannot."""

import json
import sys
from pathlib import Path

import pytest

from fixtures.runs.spans import tool
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.recording.code import code_of
from spanreplay.semconv import attributes as names
from spanreplay.spans.record import Resource, Scope, SpanRecord
from support.command_line import CommandLine
from support.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.made(tmp_path / "r", {"agent.py": "1\n"})
    made.write({"agent.py": "2\n"})
    return made


def command(repository: Repository) -> SpanRecord:
    code = code_of(repository.folder, Redactor(RedactionPolicy.default()))
    assert code is not None
    packages = {"dependencies": {"packages": ["a==1"], "lock": {"file": "uv.lock", "digest": "sha256:1"}}}
    definition = {"argv": ["python", "agent.py"], "cwd": str(repository.folder), "versions": packages}
    return SpanRecord(
        trace_id="c" * 32,
        span_id="1" * 16,
        parent_span_id=None,
        name="command agent.py",
        kind=1,
        start_ns=1,
        end_ns=2,
        attributes={
            names.RUN_ID: "c0ffee" * 4,
            names.RUN_ROOT: True,
            names.RUN_COMMAND: True,
            names.RUN_NAME: "agent.py",
            names.RUN_DEFINITION: json.dumps(definition),
            names.RUN_CODE: json.dumps({**code.to_json(), "left_out": ["large.bin"]}),
        },
        resource=Resource(),
        scope=Scope(name=names.SCOPE_NAME),
    )


def test_it_says_what_it_laid_out_and_what_is_missing(spanreplay: CommandLine, repository: Repository, tmp_path: Path) -> None:
    file = spanreplay.file("run.json", command(repository))
    done = spanreplay("checkout", file, tmp_path / "out", "--repository", repository.folder)
    assert done.code == 0, done
    assert done.out == f"{tmp_path / 'out'}: commit {repository.head[:12]} and 1 uncommitted change\n  M agent.py\n"
    assert "not in the record, as too large: large.bin" in done.err
    assert "uv.lock is not there as it was when the run was recorded; requirements.recorded.txt has the packages" in done.err
    assert f"its command: cd {tmp_path / 'out'} && python agent.py" in done.err
    assert (tmp_path / "out" / "agent.py").read_text() == "2\n"
    as_json = spanreplay("checkout", file, tmp_path / "other", "--repository", repository.folder, "--without-diff", "--json")
    assert as_json.json["files"] == []
    assert as_json.json["commit"] == repository.head


def test_it_says_why_it_cannot(spanreplay: CommandLine, repository: Repository, tmp_path: Path) -> None:
    bare = spanreplay("checkout", spanreplay.file("tool.json", tool(1)), tmp_path / "out")
    assert bare.code == 2
    assert "does not say which code it ran" in bare.err
    file = spanreplay.file("run.json", command(repository))
    lost = spanreplay("checkout", file, tmp_path / "out")
    assert lost.code == 2
    assert "name a repository that has it with --repository" in lost.err
    full = spanreplay("checkout", file, repository.folder)
    assert (full.code, "is not empty" in full.err) == (2, True)


def test_record_says_what_it_could_not_keep_of_the_code(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.folder)
    (repository.folder / "large.bin").write_bytes(bytes(2**21))
    done = CommandLine(monkeypatch, repository.folder)("record", "--store", "../store", "--", sys.executable, "-c", "pass")
    assert done.code == 0
    assert "not kept of the uncommitted changes, as too large: large.bin" in done.err
    capfd.readouterr()

"""``replay --all`` and ``--bisect``: real processes."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fixtures.runs.spans import chat
from support import nursery
from support.command_line import CommandLine
from support.size import FULL

AGENT = """
import sys
from spanreplay.instrumentation import agent_run, tool

@tool(effect="read")
def look(x):
    return {"x": x}

for name in sys.argv[1:]:
    with agent_run("looker", input=name) as run:
        run.output = look(name)
print("found", run.output)
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return nursery.spanreplay(*arguments[:1], "--store", folder / "store", *arguments[1:], folder=folder)


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an agent, and two recorded commands: of one run, and of two."""
    folder = tmp_path_factory.mktemp("looked")
    (folder / "agent.py").write_text(AGENT)
    for words in (["tea"], ["milk", "salt"]):
        done = run(folder, "record", "--", sys.executable, "agent.py", *words)
        assert done.returncode == 0, done
    return folder


def test_every_recorded_command_is_executed_again(looked: Path) -> None:
    done = run(looked, "replay", "--all", "--rerun", "--yes", "--junit", "out/all.xml", "-j", "2")
    assert done.returncode == 0, done
    assert done.stdout.endswith("\n\n2 of 2 equal\n")
    assert sorted(line.split()[0] for line in done.stdout.splitlines()[:2]) == ["equal", "equal"]
    root = ET.parse(looked / "out" / "all.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "0")
    behaviours = {p.get("name"): p.get("value") for p in root.iter("property") if "behaviour" in str(p.get("name"))}
    assert len(behaviours) == 3
    assert all(str(value).startswith("sha256:") for value in behaviours.values())
    assert next(root.iter("system-out")).text == "found {'x': 'tea'}\n"


@pytest.mark.skipif(not FULL, reason="takes the full size: three more processes")
def test_a_command_with_the_input_of_each_run_takes_each_run_by_itself(looked: Path) -> None:
    done = run(looked, "replay", "--all", "-q", "--", sys.executable, "agent.py", "{input}")
    assert (done.returncode, done.stdout) == (0, "\n3 of 3 equal\n"), done


def test_one_command_for_every_recorded_command_and_what_differs(looked: Path) -> None:
    done = run(looked, "replay", "--all", "--json", "--github", "--", sys.executable, "agent.py", "tea")
    assert done.returncode == 1, done
    found = json.loads(done.stdout)
    assert found["counts"] == {"equal": 1, "different": 1, "refused": 0, "cannot judge": 0}
    equal, different = found["results"]
    assert (equal["result"], equal["replay"]["steps"]["matched"], different["exit_code"]) == ("equal", 1, 1)
    (cause,) = found["causes"]
    assert cause["what"] == "agent looker: input differs"
    (annotation,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert annotation.startswith("::error file=agent.py,line=10,title=looker")


def test_a_source_and_nothing_that_meets_the_filters(looked: Path, spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1))
    none = spanreplay("replay", "--all", path, "--agent", "nobody", "--", "true")
    assert (none.code, none.out) == (125, "")
    assert "meets the filters" in none.err
    assert spanreplay("replay", "--all", path, "--", "no-such-program").code == 125
    refused = spanreplay("replay", "--all", path, "--rerun", "--yes")
    assert "--rerun takes runs of your own store only" in refused.out
    assert spanreplay("replay", "--all", path, "--rerun").code == 2


HANGS = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("it hangs", flush=True)
time.sleep(600)
"""


def test_a_run_that_does_not_end_cannot_be_judged(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1))
    done = spanreplay("replay", "--all", path, "--limit", "3", "-v", "--", sys.executable, "-c", HANGS.replace("SIG_IGN", "SIG_DFL"))
    assert (done.code, "cannot judge" in done.out, "no end after 3 s" in done.out) == (125, True, True), done
    assert "it hangs" in done.err
    assert spanreplay("replay", path, "--limit", "1", "--", "true").code == 2


def test_what_was_judged_is_summed_up_when_it_is_told_to_end(looked: Path) -> None:
    (looked / "hangs.py").write_text(f"import sys\nif sys.argv[1] != 'tea':\n    exec({HANGS!r})\nexec({AGENT!r})\n")
    line = ["replay", "--all", "--junit", "cut.xml", "-j", "1", "--", sys.executable, "hangs.py", "{input}"]
    words = [sys.executable, "-m", "spanreplay", line[0], "--store", "store", *line[1:]]
    with subprocess.Popen(words, cwd=looked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("equal")
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert (process.returncode, "1 of 2 equal, 1 cannot judge" in rest, "2 of 3 were not judged" in rest) == (143, True, True), rest
    assert ET.parse(looked / "cut.xml").getroot().get("errors") == "1"


def test_a_recording_that_cannot_be_read_is_not_judged_and_counts(spanreplay: CommandLine) -> None:
    folder = spanreplay.folder / "runs"
    folder.mkdir()
    (folder / "good.json").write_bytes(Path(spanreplay.file("good.json", chat(1))).read_bytes())
    (folder / "torn.json").write_text("{")
    (folder / "README.md").write_text("# Recordings")
    (spanreplay.folder / "checks.py").write_text("def fine(run): ...\n")
    for arguments, suffix in ((["replay", "--all", "runs", "-j", "1"], ["--", "no-such-program"]), (["evaluate", "--all", "runs"], [])):
        line = [*arguments, *(["--check", "checks.py:fine"] if arguments[0] == "evaluate" else []), "--json", "--junit", "out.xml", *suffix]
        done = spanreplay(*line)
        told = str(done.json)
        assert (done.code, "torn.json" in told, "README.md" in told) == (125, True, False), done
        names = [case.get("name", "") for case in ET.parse(spanreplay.folder / "out.xml").iter("testcase")]
        assert [name.endswith("torn.json") for name in names] == [False, True]
    assert spanreplay("evaluate", "runs", "--check", "checks.py:fine").code == 125


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--all"], "--all re-executes"),
        (["--all", "last", "--", "true"], "names one run"),
        (["--junit", "j.xml"], "judge a re-execution"),
        (["--agent", "a", "--", "true"], "go with --all"),
        (["--all", "--bisect", "--", "true"], "are for one run"),
    ],
)
def test_options_that_would_do_nothing(spanreplay: CommandLine, demo: CommandLine, arguments: list[str], says: str) -> None:
    done = spanreplay("replay", *arguments)
    assert (done.code, says in done.err) == (128 if "--bisect" in arguments else 2, True), done


# ---- git bisect ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ([sys.executable, "agent.py", "tea"], 0),
        ([sys.executable, "agent.py", "coffee"], 1),
        ([sys.executable, "-c", "import no_such_module"], 125),
        *([(["true"], 125), (["no-such-program"], 128)] if FULL else []),
    ],
)
def test_exit_codes_for_bisect(looked: Path, command: list[str], code: int) -> None:
    done = run(looked, "replay", "last~2", "--bisect", "--", *command)
    assert done.returncode == code, done


def test_the_junit_of_one_run(looked: Path) -> None:
    done = run(looked, "replay", "last~2", "--junit", "one.xml", "--github", "--", sys.executable, "agent.py", "coffee")
    root = ET.parse(looked / "one.xml").getroot()
    (case,) = root.iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert "coffee" in str(failure.get("message"))
    assert [str(p.get("name")).rpartition(" ")[2] for p in root.iter("property")] == ["run", "behaviour", "where"]
    assert "::error file=agent.py,line=10," in done.stdout

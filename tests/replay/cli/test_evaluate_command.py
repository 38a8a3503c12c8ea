"""``evaluate``: recorded runs judged by a function, nothing executed."""

from xml.etree import ElementTree as ET

from fixtures.runs.spans import chat, fixture
from support.command_line import CommandLine

CHECKS = """
def booked(steps):
    assert any(step.name == "send_email" for step in steps), "no e-mail"

def failures(run):
    return 1 - sum(step.outcome != "ok" for step in run.steps) / len(run.steps)
"""


def test_the_last_run(demo: CommandLine) -> None:
    (demo.folder / "checks.py").write_text(CHECKS)
    done = demo("evaluate", "--check", "checks.py:booked", "--check", "checks.py:failures", "--at-least", "0.9")
    assert (done.code, done.out.splitlines()[-1]) == (1, "1 of 2 passed, 1 failed"), done
    assert "score 0.888889, wanted 0.9 at least" in done.out
    assert demo("evaluate", "last", "-q", "--check", "checks.py:booked").out == "1 of 1 passed\n"


def test_every_run_of_a_store_and_of_a_source(demo: CommandLine) -> None:
    (demo.folder / "checks.py").write_text(CHECKS)
    done = demo("evaluate", "--all", "--check", "checks.py:booked", "--json", "--github", "--junit", "out.xml")
    assert (done.code, done.json["counts"]) == (0, {"passed": 1, "failed": 0, "error": 0})
    (row,) = done.json["results"]
    assert (row["agent"], row["check"], row["result"]) == ("trip-planner", "booked", "passed")
    assert row["behaviour"].startswith("sha256:")
    assert ET.parse(demo.folder / "out.xml").getroot().get("tests") == "1"
    path = demo.file("t.json", *fixture("forecast.json"))
    done = demo("evaluate", "--all", path, "--check", "checks.py:booked", "--github")
    assert (done.code, "no e-mail" in done.out) == (1, True)
    assert "::error file=checks.py,line=3,title=booked run" in done.out
    assert demo("evaluate", "--all", "--agent", "nobody", "--check", "checks.py:booked").code == 125


def test_wrong_use(spanreplay: CommandLine) -> None:
    path = spanreplay.file("t.json", chat(1))
    assert spanreplay("evaluate", path).code == 2
    assert "there is no file" in spanreplay("evaluate", path, "--check", "none.py:f").err
    done = spanreplay("evaluate", path, "--check", "none.py:f", "--agent", "a")
    assert (done.code, "go with --all" in done.err) == (2, True)
    (spanreplay.folder / "checks.py").write_text("async def f(run):\n    return True\n")
    done = spanreplay("evaluate", path, "--check", "checks.py:f")
    assert (done.code, "f of checks.py is an async def" in done.err) == (2, True)
    for score in ("nan", "inf", "-0.1", "1.5"):
        done = spanreplay("evaluate", path, "--check", "checks.py:f", f"--at-least={score}")
        assert (done.code, "wanted a score from 0 to 1" in done.err) == (2, True)

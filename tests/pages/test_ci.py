"""What the page about tests and CI shows is what the programs print, and its recipe for git finds the commit."""

import os
import re
import subprocess
import sys
from pathlib import Path

from pages.console import ROOT, File, parts, run, steady
from support.nursery import folder_of_commands

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def test_the_page_about_ci_shows_what_its_commands_print(tmp_path: Path) -> None:
    assert len(list(parts(PAGE))) == 17
    for command, output in run(PAGE, tmp_path, folder_of_commands()):
        assert steady(output) == steady(command.shown), f"$ {command.line}\n{output}"


def test_the_recipe_for_bisect_finds_the_commit(tmp_path: Path) -> None:
    (recipe,) = re.findall(r"^```sh\n(git bisect .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    agent = next(part.text for part in parts(PAGE) if isinstance(part, File) and part.name == "agent.py")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPANREPLAY_", "GIT_"))} | GIT
    environment["PATH"] = os.pathsep.join(map(str, [folder_of_commands(), Path(sys.executable).parent, environment["PATH"]]))

    def shell(line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def commit(text: str, message: str) -> str:
        (tmp_path / "agent.py").write_text(text)
        return shell(f"git add agent.py; git commit -qm '{message}'; git rev-parse HEAD").strip()

    shell("git init -q")
    commit(agent, "the agent")
    shell("git tag v1; spanreplay record -q -- python agent.py 4711")
    commit("import no_such_module\n" + agent, "it cannot start")
    commit(agent + "\n# nothing\n", "it starts again")
    guilty = commit(agent.replace('f"Order {order} was', 'f"Your order {order} was'), "another e-mail")
    commit("# later\n" + agent.replace('f"Order {order} was', 'f"Your order {order} was'), "later")
    said = shell(recipe)
    assert f"{guilty} is the first bad commit" in said, said
    assert shell("git status --porcelain") == "", "the store is ignored by git"

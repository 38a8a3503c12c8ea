"""In a real repository one thing changes, and exactly that is named; two change, and it is the one that reached the field."""

import http.server
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from acceptance.commands import Desk
from support.loopback import LoopbackServer
from support.repository import Repository
from support.size import FULL

AGENT = """\
import inspect
import os
import sys
from pathlib import Path

import greeter
import httpx

from spanreplay.instrumentation import agent_run, prompt, skill
from tools import order_status

HERE = Path(__file__).parent
VERSION, _, TEMPLATE = (HERE / "prompt.txt").read_text().partition("\\n")


def ask(question: str) -> str:
    prompt("support", VERSION, template=TEMPLATE)
    refunds = skill("refunds", HERE / "skills" / "refunds")
    tone = os.environ.get("TONE", "formal")
    body = {
        "model": os.environ.get("OPENAI_MODEL", "m-1"),
        "temperature": 0,
        "messages": [
            {"role": "system", "content": TEMPLATE},
            {"role": "user", "content": f"{greeter.greeting()}, answer in a {tone} tone. {question}"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "order_status", "description": inspect.getdoc(order_status), "parameters": {}}}
        ],
    }
    if "--with-skill" in sys.argv:
        body["messages"].append({"role": "user", "content": refunds.text})
    answer = httpx.post(f"{os.environ['MODEL_URL']}/v1/chat/completions", json=body).json()
    return answer["choices"][0]["message"]["content"]


with agent_run("support") as run:
    order_status("4711")
    print(ask("Where is the order?"))
"""
TOOLS = '''\
from spanreplay.instrumentation import tool


@tool(effect="read")
def order_status(order: str) -> str:
    """Look up an order by its number."""
    return "lost"
'''
FILES = {
    "agent.py": AGENT,
    "tools.py": TOOLS,
    "prompt.txt": "3\nYou are a careful support agent.\n",
    "skills/refunds/SKILL.md": "---\nname: refunds\ndescription: how to refund\n---\nRefund within 30 days.\n",
    ".gitignore": "__pycache__\n",
}


@dataclass(frozen=True)
class Scene:
    """A repository that was recorded, and the packages beside it."""

    desk: Desk
    repository: Repository

    def release(self, version: str, greeting: str) -> None:
        """Install a version of the package that the agent depends on."""
        place = self.desk.root / "packages"
        for old in place.glob("*.dist-info"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        (place / f"greeter-{version}.dist-info").mkdir(parents=True)
        (place / f"greeter-{version}.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: greeter\nVersion: {version}\n")
        (place / f"greeter-{version}.dist-info" / "RECORD").write_text(f"greeter.py,,\ngreeter-{version}.dist-info/METADATA,,\n")
        (place / "greeter.py").write_text(f"def greeting():\n    return {greeting!r}\n")

    def replayed(self, variables: dict[str, str]) -> dict[str, Any]:
        """Execute the agent again."""
        desk = replace(self.desk, environment={**self.desk.environment, **variables})
        done = desk.replay([sys.executable, "agent.py"], "--json")
        assert done.out, str(done)
        found: dict[str, Any] = json.loads(done.out)["replay"]
        return {**found, "err": done.err}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A recording of the agent."""
    desk = Desk.laid_out(tmp_path_factory.mktemp("causes"))
    repository = Repository.made(desk.work, FILES)
    made = Scene(desk, repository)
    made.release("1.0", "Good day")

    class Model(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(
                {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m-1",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It is lost."}}],
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    packages = str(desk.root / "packages")
    desk.environment.update({"PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_GLOBAL": "/dev/null"})
    with LoopbackServer(Model) as server:
        desk.environment["MODEL_URL"] = server.url
        done = desk.record([sys.executable, "agent.py"])
    assert done.out == "It is lost.\n", str(done)
    return made


Change = Callable[[Scene, dict[str, str]], None]


def edits(name: str, old: str, new: str) -> Change:
    def change(scene: Scene, _: dict[str, str]) -> None:
        text = (scene.desk.work / name).read_text()
        assert old in text
        scene.repository.write({name: text.replace(old, new)})

    return change


def commits(change: Change) -> Change:
    def committed(scene: Scene, variables: dict[str, str]) -> None:
        change(scene, variables)
        scene.repository.commit()

    return committed


def sets(name: str, value: str) -> Change:
    return lambda _, variables: variables.update({name: value})


def releases(version: str, greeting: str) -> Change:
    return lambda scene, _: scene.release(version, greeting)


PROMPT = edits("prompt.txt", "3\nYou are a careful", "4\nYou are a generous")
SKILL = edits("skills/refunds/SKILL.md", "30 days", "14 days")
DOCSTRING = edits("tools.py", "by its number", "by number or name")
CODE = edits("agent.py", "Where is the order?", "When will the order come?")
UPPER = edits("agent.py", "answer in a {tone} tone", "answer in a {tone.upper()} tone")
PLAIN = edits("agent.py", "HERE = Path(__file__).parent", "HERE = Path(__file__).resolve().parent")
DEPENDENCY = releases("1.1", "Good morning")
SAME_TEXT = releases("1.1", "Good day")
TONE = sets("TONE", "cheerful")
USER = ("model_call m-1", "messages[1].content")

CASES: list[tuple[str, tuple[Change, ...], str, tuple[str, str], str]] = [
    ("prompt", (PROMPT,), "prompt", ("model_call m-1", "messages[0].content"),
     "the prompt support has changed: 3 → 4: the code has changed, not committed, prompt.txt:2"),
    ("variable", (TONE,), "variable", USER, "the environment variable TONE has another value (it was not set)"),
    ("dependency", (DEPENDENCY,), "dependency", USER, "the dependency greeter has changed: 1.0 → 1.1"),
    ("two, one of them seen", (commits(PLAIN), TONE), "variable", USER, "the environment variable TONE has another value (it was not set)"),
    ("a setting, in the code", (SAME_TEXT, edits("agent.py", '"temperature": 0', '"temperature": 1')), "setting",
     ("model_call m-1", "temperature"), ": temperature 0 → 1: the code has changed, not committed, agent.py:22"),
    ("two, none of them seen", (UPPER, SAME_TEXT), "untold", USER, "none of them is seen in what differs: "),
    ("skill", (SKILL,), "skill", ("io skill refunds", "output.digest"),
     "the skill refunds has changed since the run was recorded: the code has changed, not committed, skills/refunds/SKILL.md:5"),
    ("tool docstring", (DOCSTRING,), "tool", ("model_call m-1", "tools[0].function.description"),
     "the schema of tool order_status has changed since the run was recorded: the code has changed, not committed, tools.py:6"),
    ("uncommitted code", (CODE,), "diff", USER, "the code has changed, not committed, agent.py:39"),
    ("commit", (commits(CODE),), "commit", USER, "agent.py:39"),
    ("model by a variable", (sets("OPENAI_MODEL", "m-2"),), "variable", ("model_call m-1", "model"),
     "the environment variable OPENAI_MODEL has another value: not set → m-2"),
    ("two that both reached it", (TONE, edits("agent.py", '"formal"', '"cheerful"')), "untold", USER, "it cannot be told which of these"),
    ("only one, and it is not seen", (UPPER,), "diff", USER, "the code has changed, not committed; nothing else that is kept has changed"),
]  # fmt: skip
QUICK = ("prompt", "dependency", "two, one of them seen")


@pytest.mark.parametrize(
    ("changes", "kind", "where", "said"),
    [pytest.param(*case[1:], id=case[0]) for case in CASES if FULL or case[0] in QUICK],
)
def test_what_changed_is_named_and_nothing_else(
    scene: Scene, changes: tuple[Change, ...], kind: str, where: tuple[str, str], said: str
) -> None:
    variables: dict[str, str] = {}
    head = scene.repository.head
    try:
        for change in changes:
            change(scene, variables)
        told = scene.replayed(variables)
    finally:
        scene.repository.git("reset", "-q", "--hard", head)
        scene.release("1.0", "Good day")
    first = told["differences"][0]
    assert (first["cause_kind"], (first["name"], first["field"])) == (kind, where), first
    assert said in first["cause"], first
    if kind != "untold":
        assert first["cause"].endswith(said), first


def test_nothing_has_changed_and_it_is_said_before_the_first_step(scene: Scene) -> None:
    told = scene.replayed({})
    assert told["equal"], told
    assert told["versions"]["changed"] == []
    assert "versions as recorded: code, packages, Python, machine, variables, arguments, working folder" in told["err"]

"""The life of an application, in the hands of an agent: it edits code, tests and commits it, migrates a database, changes the sign-in,
and deploys. Every act on the outside is a step of its run.

`python agent.py URL`, in the folder that `prepare.py` has filled; the URL is that of the stand-ins.
"""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from spanreplay.instrumentation import agent_run, prompt, record_decision, skill, tool

URL = sys.argv[1]
WORK = Path("work")
AUTHOR = ["-c", "user.name=Builder", "-c", "user.email=builder@example.com"]
TASK = "Make orders of ten items cost a tenth less, and bring it live. Users must verify their e-mail from now on."
SYSTEM = prompt("builder", "3", template="You maintain a shop. {rules}")


@tool(effect="read")
def read_file(path: str) -> str:
    """Read a file of the shop."""
    return (WORK / path).read_text()


@tool(effect="write")
def edit_file(path: str, old: str, new: str) -> str:
    """Replace a passage of a file."""
    text = (WORK / path).read_text()
    (WORK / path).write_text(text.replace(old, new))
    return f"{text.count(old)} passages replaced"


@tool(effect="read")
def run_tests() -> str:
    """Run the shop's tests."""
    done = subprocess.run([sys.executable, "-B", "-m", "unittest"], cwd=WORK, capture_output=True, text=True)
    return "passed" if done.returncode == 0 else "failed: " + done.stderr.splitlines()[-1]


@tool(effect="write")
def commit(message: str) -> str:
    """Commit all changes."""
    subprocess.run(["git", *AUTHOR, "commit", "--quiet", "--all", "--message", message], cwd=WORK, check=True)
    return revision()


@tool(effect="write")
def migrate(statement: str) -> str:
    """Change the database."""
    with sqlite3.connect("shop.db") as database:
        database.execute(statement)
    database.close()
    return "done"


@tool(effect="write")
def set_auth(setting: str, value: bool) -> Any:
    """Change how users sign in."""
    return httpx.post(f"{URL}/auth/settings", json={setting: value}).raise_for_status().json()


@tool(effect="irreversible", idempotency_key="deploy-{version}")
def deploy(version: str) -> Any:
    """Bring the last commit live."""
    return httpx.post(f"{URL}/deployments", json={"version": version, "commit": revision()}).raise_for_status().json()


def revision() -> str:
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=WORK, text=True).strip()


TOOLS = {function.__name__: function for function in (read_file, edit_file, run_tests, commit, migrate, set_auth, deploy)}


def main() -> str:
    with agent_run("builder", input=TASK, version="1.4") as run:
        rules = skill("house-rules", Path(__file__).parent / "house-rules")
        before = revision()  # a command of the agent's own code, and so a step of its own
        messages: list[Any] = [{"role": "system", "content": SYSTEM.format(rules=rules.text)}, {"role": "user", "content": TASK}]
        model = OpenAI(base_url=f"{URL}/v1", api_key="not-needed")
        while True:
            said = model.chat.completions.create(model="gpt-5-mini", messages=messages).choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                run.output = {"said": said.content, "from": before, "to": revision()}
                return str(said.content)
            for call in said.tool_calls:
                arguments = json.loads(call.function.arguments)
                if call.function.name == "deploy":
                    record_decision("deploy", "allow", by="ana@example.com", policy="the tests pass", arguments=arguments, call_id=call.id)
                result = TOOLS[call.function.name](**arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


if __name__ == "__main__":
    print(main())

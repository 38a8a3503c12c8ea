"""Writes docs/frameworks.md from what the contract of tests/frameworks has seen: ``PYTHONPATH=tests python -m pages.frameworks``."""

import ast
import json
from pathlib import Path
from typing import Any, Final

from spanreplay.replay.model import GRADE_WORDS

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = ROOT / "docs" / "frameworks.md"
_CASES: Final = ROOT / "tests" / "frameworks"

_HEAD: Final = """# Agent frameworks

Written by `PYTHONPATH=tests python -m pages.frameworks`. A row is here only if its test ran: a real agent of the framework, with four tool
calls at once of which two are the same, a tool that fails, and a second agent where the framework has them, was recorded with

    spanreplay record -- python agent.py

and run again with no model server and no tool body, from the store and from an exported file:

    spanreplay replay last -- python agent.py

Nothing of the agent's code is changed. `spanreplay doctor -- python agent.py` says what is observed in the Python that runs yours.

A client of MCP has no agent of its own: a loop over a model's SDK asks for the tools of its server.

Of an agent that a web server serves (`spanreplay record -- uvicorn app:app`) each request is a run of its own, also of several at once.
Start the replay in the same way and ask it the same, in whatever order. An application that is asked inside the process, as by the
`TestClient` of FastAPI, runs in a replay as the rest of the program does.

An agent of each to try, without a key: [examples](examples/README.md). Beside these: [commands](commands.md),
[skills and prompts](skills.md), [HTTP clients](clients.md).

| framework | newest seen | oldest seen | run as | agents in agents | a run comes back as |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    seen = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_CASES.glob("*/passed.json"))}
    rows = [f"| {' | '.join(_row(name, told))} |\n" for name, told in seen.items() if "requirements" in told]
    return _HEAD + "".join(rows) + "".join(_section(name) for name in seen)


def _title(name: str) -> str:
    text = ROOT / "docs" / "frameworks" / f"{name}.md"
    return text.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") if text.exists() else name


def _row(name: str, told: dict[str, Any]) -> list[str]:
    newest = told["requirements"]
    oldest = told.get("oldest")
    linked = f"[{_title(name)}](frameworks/{name}.md)" if (ROOT / "docs" / "frameworks" / f"{name}.md").exists() else name
    return [
        linked,
        newest["pins"][0].replace("==", " "),
        "—" if oldest is None else oldest["pins"][0].replace("==", " "),
        ", ".join(newest["modes"]),
        "yes" if newest["nested"] else "no",
        GRADE_WORDS[newest["grade"]],
    ]


def _section(name: str) -> str:
    cases = [path for path in sorted((_CASES / name).glob("*.json")) if path.with_suffix(".py").exists()]
    if not cases:
        return ""
    told = [ast.get_docstring(ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))) or path.stem for path in cases]
    return f"\n## {_title(name)}, also seen\n\n" + "".join(f"- {text.splitlines()[0]}\n" for text in told)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

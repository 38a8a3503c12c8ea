"""What explains a difference: a prompt, a skill, the instructions of an agent, and the files that they stand in."""

import difflib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, skill
from spanreplay.replay.reexecution.causes import Causes
from spanreplay.replay.reexecution.changed_texts import skill_texts
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.versions_now import Change, Comparison
from support.asking import REQUEST, ask
from support.taped import recorded, replayed


def test_the_instructions_of_an_agent_are_named_where_their_words_differ() -> None:
    def agent(instructions: str, framework: str = "1") -> None:
        with agent_run("helper", definition={"framework": framework, "instructions": instructions}):
            ask({**REQUEST, "messages": [{"role": "user", "content": f"{instructions} Hello"}]})

    tape = recorded(agent, "Be careful.")
    assert replayed(tape, agent, "Be careful.", "2").equal
    (difference,) = replayed(tape, agent, "Be generous.", "2").differences
    assert (difference.field, difference.cause_kind) == ("messages[0].content", "instructions")
    assert difference.cause == "the instructions of the agent helper have changed since the run was recorded"


FILES = {
    "agent.py": 'PROMPT = "Help politely."\nUSER = "Answer in a tone."\n',
    "release.txt": "Release alpha.\n",
    "other.txt": "nothing\n",
    "settings.json": '{"temperature": 0.5, "top_p": 0.5}\n',
    "skills/refunds/SKILL.md": "---\nname: refunds\ndescription: d\n---\nRefund within 14 days.\nAsk first.\n",
}
SKILL = {"skills/refunds/SKILL.md": ("14 days", "30 days")}
POLITE = {"agent.py": ("politely", "briefly")}
"""Two changes of the files: by its file, what becomes what."""


@pytest.mark.parametrize(
    ("edits", "variable", "field", "before", "after", "kind", "named"),
    [
        (SKILL, None, "messages[2].content", "Refund within 14 days.", "Refund within 30 days.", "skill", ["refunds/SKILL.md:5"]),
        ({**SKILL, **POLITE}, None, "messages[0].content", "Help politely.", "Help briefly.", "prompt", ["prompt p", "agent.py:1"]),
        (
            {**SKILL, "release.txt": ("alpha", "omega")},
            None,
            "messages[1].content",
            "Release alpha.",
            "Release omega.",
            "diff",
            ["release.txt:1"],
        ),
        (
            {**SKILL, "agent.py": ("Answer in", "Reply in")},
            None,
            "messages[1].content",
            "Answer in a tone.",
            "Reply in a tone.",
            "diff",
            ["agent.py:2"],
        ),
        (
            {**SKILL, **POLITE},
            None,
            "messages[0].content",
            "Help politely.\nRefund within 14 days.",
            "Help briefly.\nRefund within 30 days.",
            "prompt",
            ["each of these has made a part", "prompt p", "agent.py:1", "skill refunds", "refunds/SKILL.md:5"],
        ),
        (
            {"skills/refunds/SKILL.md": ("14 days", "briefly"), **POLITE},
            None,
            "messages[0].content",
            "Help politely.",
            "Help briefly.",
            "prompt",
            ["prompt p", "agent.py:1"],
        ),
        (
            {"skills/refunds/SKILL.md": ("Ask first.\n", ""), **POLITE},
            None,
            "messages[2].content",
            "days.\nAsk first.",
            "days.",
            "skill",
            ["SKILL.md"],
        ),
        (
            {**POLITE, "release.txt": ("Release alpha", "briefly")},
            "briefly",
            "messages[1].content",
            "Release alpha.",
            "briefly.",
            "untold",
            ["words that differ stand in each of them", "variable V", "release.txt:1"],
        ),
        (
            {**POLITE, "release.txt": ("Release alpha", "briefly")},
            "briefly",
            "messages[1].content",
            "A formal tone.",
            "A briefly tone.",
            "untold",
            ["variable V", "prompt p", "agent.py:1", "release.txt:1"],
        ),
        (
            {"release.txt": ("alpha", "quietly"), "other.txt": ("nothing", "quietly")},
            None,
            "messages[1].content",
            "Go out.",
            "Go quietly.",
            "untold",
            ["release.txt:1", "other.txt:1"],
        ),
        (
            {"settings.json": ('temperature": 0.5', 'temperature": 0.9')},
            "zzz",
            "temperature",
            0.5,
            0.9,
            "setting",
            ["0.5 → 0.9", "settings.json:1"],
        ),
        (
            {"settings.json": ('temperature": 0.5', 'temperature": 0.9')},
            "0.9",
            "temperature",
            0.5,
            0.9,
            "untold",
            ["variable V", "settings.json:1"],
        ),
        ({"agent.py": ("USER", "LIMIT = 6\nUSER")}, "zzz", "arguments.limit", 5, 6, "diff", ["agent.py:2"]),
    ],
)
def test_of_several_changes_those_that_have_the_words_are_named(
    edits: dict[str, tuple[str, str]],
    variable: str | None,
    field: str,
    before: Any,
    after: Any,
    kind: str,
    named: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = {name: text.replace(*edits.get(name, ("", ""))) for name, text in FILES.items()}
    changed = [name for name in FILES if new[name] != FILES[name]]
    diff = "".join(_diff(name, FILES[name], new[name]) for name in changed)
    code = {"root": str(tmp_path), "commit": "a" * 40, "diff": ""}
    (run, *_) = recorded(ask, REQUEST).runs()
    command = replace(run, code=code)
    known = [Change(kind="diff", name="diff")]
    if variable is not None:
        monkeypatch.setenv("V", variable)
        known.append(Change(kind="variable", name="V"))
    versions: list[dict[str, Any]] = []
    told = []
    if "skills/refunds/SKILL.md" in changed:
        versions.append({"kind": "skill", "name": "refunds", "recorded": "a", "actual": "b"})
        was, now = ({"texts": {"SKILL.md": side["skills/refunds/SKILL.md"]}} for side in (FILES, new))
        skills = {"skill": skill_texts(was, now, str(tmp_path / "skills" / "refunds"))}
        told.append(Difference(kind="output", run_id="r", step=1, name="io skill refunds", field="output.digest", evidence=skills))
    if "politely" in edits.get("agent.py", ()):
        versions.append({"kind": "prompt", "name": "p", "recorded": "7", "actual": "7", "templates": ["Help politely.", "Help briefly."]})
    removed, added = fragments(before, after)
    evidence = {"added": added, "removed": removed, "changed": versions, "keys": field.split(".")}
    name = "tool_call t" if field.startswith("arguments") else "model_call m"
    shown = [json.dumps(side) for side in (before, after)]
    difference = Difference(kind="input", run_id="r", step=2, name=name, field=field, recorded=shown[0], actual=shown[1], evidence=evidence)
    comparison = Comparison(changed=tuple(known), code={**code, "diff": diff})
    causes = Causes([], comparison, command, differences=[*told, difference])
    found = causes.explain(difference)
    every = ["prompt p", "skill refunds", "variable V", "agent.py", "release.txt", "other.txt", "settings.json", "SKILL.md"]
    assert found.cause_kind == kind, found.cause
    assert all(part in str(found.cause) for part in named), found.cause
    assert [part for part in every if part in str(found.cause) and not any(part in one for one in named)] == (
        ["skill refunds"] if kind == "skill" else []
    )
    for one in told:
        said = causes.explain(one)
        assert said.cause_kind == "skill"
        assert "refunds/SKILL.md" in str(said.cause)
        assert "agent.py" not in str(said.cause)


def _diff(name: str, was: str, now: str) -> str:
    lines = difflib.unified_diff(was.splitlines(), now.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=0)
    return f"diff --git a/{name} b/{name}\n" + "".join(f"{line}\n" for line in lines)


def test_a_changed_file_that_a_prompt_stands_in_is_told_with_the_prompt(tmp_path: Path) -> None:
    file = tmp_path / "agent.py"
    file.write_text('PROMPT = "Help briefly."\n')
    prompt = {"kind": "prompt", "name": "p", "recorded": "7", "actual": "7", "templates": ["Help politely.", "Help briefly."]}
    evidence = {"added": ["briefly"], "removed": ["politely"], "changed": [prompt]}
    difference = Difference(kind="input", run_id="r", step=2, name="model_call m", field="messages[0].content", evidence=evidence)
    found = Causes([], Comparison(changed=(Change(kind="file", name=str(file)),))).explain(difference)
    assert found.cause == f"the prompt p has changed, and is called 7 as before: the file {file} has changed"


def test_a_skill_that_is_declared_and_opened_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "s" / "SKILL.md"
    file.parent.mkdir()

    def agent() -> None:
        with agent_run("a", input="q"):
            skill("s", file.parent)
            skill("s", file.parent)

    file.write_text("---\nname: s\ndescription: d\n---\nBe kind.\n")
    tape = recorded(agent)
    file.write_text("---\nname: s\ndescription: d\n---\nBe harsh.\n")
    result = replayed(tape, agent)
    assert [one.same_as for one in result.differences] == [None, 1]
    assert "\n1 difference\n" in str(result)

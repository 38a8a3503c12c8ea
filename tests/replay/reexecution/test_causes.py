"""What explains a difference."""

import difflib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run, prompt, skill
from spanreplay.instrumentation.providers import openai_chat
from spanreplay.replay.reexecution.causes import NONE, Causes
from spanreplay.replay.reexecution.changed_texts import skill_texts
from spanreplay.replay.reexecution.evidence import fragments
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.versions_now import Change, Comparison
from support.taped import recorded, replayed

REQUEST: dict[str, Any] = {
    "model": "m1",
    "temperature": 0,
    "messages": [{"role": "system", "content": "Be careful."}, {"role": "user", "content": "Hello"}],
    "tools": [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}
    ],
}


def ask(request: dict[str, Any]) -> None:
    scope = boundary.here()
    assert scope is not None
    prompt("greeter", "3", template="t")
    call = Call(
        kind="model_call",
        name=str(request["model"]),
        input=codec.encode({"body": request}),
        attributes=openai_chat.PROVIDER.request(request).attributes,
    )
    boundary.call(scope, call, lambda: None)


def _edited(path: list[Any], value: Any) -> dict[str, Any]:
    import copy

    made = copy.deepcopy(REQUEST)
    place: Any = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "field", "cause"),
    [
        (
            ["messages", 0, "content"],
            "Be generous.",
            "messages[0].content",
            "the instructions have changed, and the prompt greeter 3 is as it was",
        ),
        (["messages", 1, "content"], "Bye", "messages[1].content", NONE),
        (
            ["tools", 0, "function", "parameters", "properties", "x", "type"],
            "string",
            "tools[0].function.parameters.properties.x.type",
            "the schema of tool look has changed since the run was recorded",
        ),
        (["temperature"], 1, "temperature", "the model settings have changed: temperature 0 → 1"),
    ],
)
def test_one_changed_value_of_a_model_call_is_found_and_explained(path: list[Any], value: Any, field: str, cause: str) -> None:
    tape = recorded(ask, REQUEST)
    assert replayed(tape, ask, REQUEST).equal
    result = replayed(tape, ask, _edited(path, value))
    (difference,) = result.differences
    assert (difference.kind, difference.step, difference.field, difference.cause) == ("input", 1, field, cause)
    assert result.verdict.exit_code == 1


def test_what_is_no_input_has_no_cause_and_a_cause_stays() -> None:
    causes = Causes([])
    other = Difference(kind="order", run_id=None, step=1, name="tool_call t")
    assert causes.explain(other) is other
    given = replace(other, kind="input", field="x", cause="known")
    assert causes.explain(given) is given
    assert causes.explain(replace(other, kind="input", field="arguments.x")).cause == NONE


NOT_HELD = "what a replay does not hold (chance, time, state that a tool changed): replay --check-determinism 3 looks for it"
UNTOLD = "it cannot be told which of these it was, none of them is seen in what differs: "
VERSIONS: list[tuple[list[Change], dict[str, Any], str, str]] = [
    ([], {}, "none", f"no version that is kept has changed, so it comes from {NOT_HELD}"),
    (
        [Change(kind="dependency", name="a", recorded="1", actual="2", modules=("a",)), Change(kind="dependency", name="b", actual="2")],
        {"packages": ["a"]},
        "dependency",
        "the dependency a has changed: 1 → 2",
    ),
    (
        [Change(kind="dependency", name="a", recorded="1", actual="2", modules=("a",)), Change(kind="argv", name="arguments", actual="x")],
        {"packages": ["a"]},
        "untold",
        f"{UNTOLD}the dependency a has changed: 1 → 2; the arguments none → x",
    ),
    (
        [Change(kind="argv", name="arguments", recorded="agent.py --for Ana", actual="agent.py --for Bob")],
        {"added": ["Bob"], "removed": ["Ana"]},
        "argv",
        "the arguments agent.py --for Ana → agent.py --for Bob",
    ),
    (
        [Change(kind="image", name="image", recorded="a", actual="b")],
        {},
        "image",
        "the container's image a → b; nothing else that is kept has changed",
    ),
    (
        [Change(kind="python", name="", recorded="3.11.7", actual="3.12.1"), Change(kind="cwd", name="", recorded="/a", actual="/b")],
        {"added": ["made by Python 3.12.1"]},
        "python",
        "Python 3.11.7 → 3.12.1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "evidence", "kind", "cause"), VERSIONS, ids=lambda v: v if isinstance(v, str) and " " not in v else "")
def test_the_change_that_reached_a_difference_is_named(changed: list[Change], evidence: dict[str, Any], kind: str, cause: str) -> None:
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x", evidence=evidence)
    found = Causes([], Comparison(changed=tuple(changed))).explain(difference)
    assert (found.cause_kind, found.cause) == (kind, cause)


@pytest.mark.parametrize(
    ("text", "changes", "recorded", "actual", "kind", "named"),
    [
        ("greetings of department seven", ["variable", "dependency"], "hello bob", "greetings of department seven evelina", "untold", 2),
        ("greetings of department seven", ["variable", "dependency"], "hello bob", "greetings of department seven bob", "dependency", 1),
        ("something else", ["variable", "dependency"], "hello bob", "hello evelina", "variable", 1),
        ("two", ["commit", "dependency"], "one", "two", "dependency", 1),
        ("two", ["commit", "dependency"], "say one now", "say two now", "dependency", 1),
    ],
)
def test_all_that_reached_a_difference_is_known_before_one_is_named(
    text: str, changes: list[str], recorded: str, actual: str, kind: str, named: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHO", "evelina")
    (tmp_path / "dep.py").write_text(f'def greet():\n    return "{text}"\n')
    known: dict[str, Change] = {
        "variable": Change(kind="variable", name="WHO"),
        "dependency": Change(kind="dependency", name="dep", recorded="1", actual="2", modules=("dep",), places=(str(tmp_path / "dep.py"),)),
        "commit": Change(kind="commit", name="commit", recorded="a", actual="b"),
    }
    removed, added = fragments(recorded, actual)
    evidence = {"added": added, "removed": removed}
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x", evidence=evidence)
    found = Causes([], Comparison(changed=tuple(known[name] for name in changes))).explain(difference)
    told = str(found.cause)
    assert (found.cause_kind, ("variable WHO" in told) + ("dependency dep" in told)) == (kind, named), told
    assert kind != "untold" or "words that differ stand in each of them" in told


def test_the_instructions_of_an_agent_are_named_where_their_words_differ() -> None:
    def agent(instructions: str, framework: str = "1") -> None:
        with agent_run("helper", definition={"framework": framework, "instructions": instructions}):
            ask({**REQUEST, "messages": [{"role": "user", "content": f"{instructions} Hello"}]})

    tape = recorded(agent, "Be careful.")
    assert replayed(tape, agent, "Be careful.", "2").equal
    (difference,) = replayed(tape, agent, "Be generous.", "2").differences
    assert (difference.field, difference.cause_kind) == ("messages[0].content", "instructions")
    assert difference.cause == "the instructions of the agent helper have changed since the run was recorded"


def test_words_that_differ_are_whole_and_short_ones_have_company() -> None:
    assert fragments("Be formal, please.", "Be informal, please.") == (["formal"], ["informal"])
    assert fragments("Refund within 30 days.", "Refund within 14 days.") == (["within 30 days"], ["within 14 days"])
    assert fragments("one\ntwo\nthree", "one\nthree") == (["two"], [])
    assert fragments({"a": "same", "b": [1]}, {"a": "same", "b": ["new text"]}) == (["1"], ["new text"])
    assert fragments("x" * 5000, "y" * 5000)[0] == ["x" * 300]


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


def test_the_same_tools_in_another_order_are_told_as_that() -> None:
    look, find = REQUEST["tools"][0], {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
    tape = recorded(ask, _edited(["tools"], [look, find]))
    difference = replayed(tape, ask, _edited(["tools"], [find, look])).differences[0]
    assert difference.cause == "the same tools are offered in another order than when the run was recorded"
    difference = replayed(tape, ask, _edited(["tools"], [find])).differences[0]
    assert "order than" not in (difference.cause or "")


@pytest.mark.parametrize(
    ("comparison", "cause"),
    [
        (Comparison(equal=("agent.py",), unknown=("code",), same_files=True), f"it comes from a file that is not kept, or from {NOT_HELD}"),
        (Comparison(unknown=("code",)), NONE),
        (Comparison(unknown=("dependencies",), same_files=True), NONE),
    ],
)
def test_where_nothing_that_is_kept_has_changed_that_is_said(comparison: Comparison, cause: str) -> None:
    difference = Difference(kind="input", run_id="r", step=1, name="tool_call t", field="arguments.x")
    assert (Causes([], comparison).explain(difference).cause or "").endswith(cause)
    assert Comparison.of(comparison.entry()) == comparison

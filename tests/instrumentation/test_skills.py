"""Skills: each one that is loaded is known with all its files, and named by the model calls that follow."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import in_force
from spanreplay.instrumentation import agent_run, prompt, skill, tool
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

TEXT = "---\nname: refunds\ndescription: How to refund.\n---\n\nAsk first.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skills" / "refunding"
    (made / "scripts").mkdir(parents=True)
    (made / "SKILL.md").write_text(TEXT)
    (made / "scripts" / "refund.py").write_text("print('refund')\n")
    (made / "logo.png").write_bytes(b"\xff\x00")
    return made


@pytest.fixture(autouse=True)
def nothing_in_force() -> Iterator[None]:
    token = in_force.set(MappingProxyType({}))
    yield
    in_force.reset(token)


def model() -> None:
    scope = boundary.here()
    assert scope is not None
    boundary.call(scope, Call(kind="model_call", name="m"), lambda: None)


def test_a_skill_is_a_step_with_all_its_files(folder: Path) -> None:
    (step,) = recorded(lambda: skill("refunds", folder)).steps
    assert (step[names.STEP_KIND], step[names.STEP_NAME], step[names.STEP_EFFECT]) == ("io", "skill refunds", "read")
    assert (step[names.GEN_AI_SKILL_NAME], step[names.GEN_AI_SKILL_SOURCE_URI]) == ("refunds", folder.as_posix())
    result = json.loads(step[names.STEP_RESULT])
    assert set(result["files"]) == {"SKILL.md", "scripts/refund.py", "logo.png"}
    assert result["texts"] == {"SKILL.md": TEXT, "scripts/refund.py": "print('refund')\n"}
    assert result["digest"] == step[names.SKILL_DIGEST]


def test_model_calls_that_follow_name_the_skills(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "SKILL.md").write_text("no front matter")

    def agent() -> None:
        model()
        skill("refunds", folder)
        skill("other", other / "SKILL.md")
        skill("refunds", folder)
        prompt("p", "1", template="t").format()
        model()

    tape = recorded(agent)
    first, *_, last = [step for step in tape.steps if step[names.STEP_KIND] == "model_call"]
    assert names.SKILLS not in first
    assert [known["name"] for known in json.loads(last[names.SKILLS])] == ["other", "refunds"]
    assert last[names.GEN_AI_PROMPT_NAME] == "p"
    (run,) = tape.runs()
    assert {known["name"] for known in run.versions.skills} == {"other", "refunds"}


def test_a_skill_that_a_program_opens_itself_is_noticed(folder: Path) -> None:
    seen: list[str] = []

    def agent() -> None:
        with agent_run("a"):
            seen.append((folder / "SKILL.md").read_text())
            with open(folder / "SKILL.md") as file:
                seen.append(file.read())

    tape = recorded(agent)
    assert seen == [TEXT, TEXT]
    assert [step[names.STEP_NAME] for step in tape.steps] == ["a", "skill refunds", "skill refunds"]
    assert replayed(tape, agent).equal


def test_inside_a_tool_the_tool_says_which_skill_it_read(folder: Path) -> None:
    @tool
    def load() -> str:
        return (folder / "SKILL.md").read_text()

    (step,) = recorded(load).steps
    assert (step[names.STEP_NAME], step[names.GEN_AI_SKILL_NAME]) == ("load", "refunds")


def test_a_changed_file_of_a_skill_is_a_difference(folder: Path) -> None:
    def agent() -> None:
        skill("refunds", folder)

    tape = recorded(agent)
    assert replayed(tape, agent).equal
    (folder / "scripts" / "refund.py").write_text("print('no')\n")
    assert told(replayed(tape, agent)) == [("output", 1, "io skill refunds", "output.digest")]


def test_off_a_skill_is_read_and_nothing_else(folder: Path) -> None:
    made = skill("refunds", folder)
    assert (made.text, made.name, sorted(made.files)) == (TEXT, "refunds", ["SKILL.md", "logo.png", "scripts/refund.py"])


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="a skill is a folder"):
        skill("x", tmp_path / "none")

"""An exception whose class a replay cannot have is named, with what helps."""

import sys
from types import ModuleType

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.replay.reports.verdict import render_verdict
from support.forking import Scene

MODULE = "only_the_body_imports_it"
WHY = f"step 1, tool_call refund, raised {MODULE}.Broke, and no exception of that class could be made: nothing here has imported {MODULE}"


@tool(effect="read")
def refund() -> None:
    raise sys.modules[MODULE].Broke("no money")


def tells() -> None:
    with agent_run("refunds", input="go") as run:
        try:
            refund()
        except Exception as error:
            run.output = f"{type(error).__name__}: {error}"


def asks() -> None:
    with agent_run("refunds", input="go") as run:
        try:
            refund()
        except Exception as error:
            known = getattr(sys.modules.get(MODULE), "Broke", ())
            run.output = isinstance(error, known)


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType(MODULE)
    made.Broke = type("Broke", (ValueError,), {"__module__": MODULE})  # type: ignore[attr-defined]
    return made


def test_a_difference_that_follows_is_traced_to_it(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, module)
    scene = Scene(asks, monkeypatch)
    monkeypatch.delitem(sys.modules, MODULE)
    verdict = scene.replayer().replay(asks).verdict
    (difference,) = verdict.differences
    assert (difference.actual, difference.cause_kind) == ("false", "error_class")
    assert (difference.cause or "").startswith(WHY)
    assert [facts["error"] for facts in verdict.to_json()["unmade"]] == [f"{MODULE}.Broke"]
    assert render_verdict(verdict, [scene.run], colour=False).count(WHY) == 1


def test_where_nothing_differs_it_is_a_note(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, module)
    scene = Scene(tells, monkeypatch)
    assert scene.replayer().replay(tells).verdict.unmade == ()
    monkeypatch.delitem(sys.modules, MODULE)
    verdict = scene.replayer().replay(tells).verdict
    assert verdict.equal
    assert f"note: {WHY}" in render_verdict(verdict, [scene.run], colour=False)

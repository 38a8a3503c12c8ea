"""A framework's tool call is one step, with what the framework knows of it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spanreplay.boundary import boundary
from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.call import Call, OutcomeName
from spanreplay.instrumentation import agent_run, framework, tool
from spanreplay.instrumentation.framework import Offered
from spanreplay.replay.reports.text import render_run
from spanreplay.semconv import attributes as names
from support.taped import recorded, replayed, told

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def search(city: str) -> str:
    """Search it."""
    return f"found {city}"


OFFERED = Offered(name="search", description="Search it.", parameters=SCHEMA, function=search)


def run(offered: Offered, arguments: Any, body: Callable[[], Any], *, call_id: str | None = None, layer: str = "acme") -> Any:
    scope = boundary.here()
    call = None if scope is None else framework.tool_call(scope, offered, arguments, layer=layer, call_id=call_id)
    return body() if scope is None or call is None else boundary.call(scope, call, body)


def test_a_call_has_what_the_framework_knows() -> None:
    tape = recorded(lambda: run(OFFERED, '{"city": "Paris"}', lambda: search("Paris"), call_id="c1"))
    (step,) = tape.steps
    assert json.loads(step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"city": "Paris"}
    assert step[names.GEN_AI_TOOL_CALL_RESULT] == '"found Paris"'
    assert (step[names.GEN_AI_TOOL_CALL_ID], step[names.GEN_AI_TOOL_DESCRIPTION]) == ("c1", "Search it.")
    assert (
        step[names.TOOL_SCHEMA_DIGEST]
        != recorded(lambda: run(Offered(name="search", parameters={}), {}, lambda: None)).steps[0][names.TOOL_SCHEMA_DIGEST]
    )
    assert step[names.TOOL_CODE_DIGEST].startswith("sha256:")
    assert step[names.STEP_EFFECT] == "unknown"


def test_arguments_that_are_no_json_are_kept_as_they_are() -> None:
    (step,) = recorded(lambda: run(OFFERED, '{"city": ', lambda: None)).steps
    assert json.loads(step[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == '{"city": '


@pytest.mark.parametrize("call_id", ["c2", None, "made-here"])
def test_the_model_step_that_asked_is_known(call_id: str | None) -> None:
    def agent() -> None:
        scope = boundary.here()
        assert scope is not None
        asking = boundary.begin(scope, Call(kind="model_call", name="m"))
        assert asking is not None
        asking.succeed(None)
        ask_for(asking, [("c1", "search", {"city": "Oslo"}), ("c2", "search", {"city": "Paris"})])
        run(OFFERED, {"city": "Paris"}, lambda: None, call_id=call_id)

    _, step = recorded(agent).steps
    assert step[names.STEP_REQUESTED_BY] is not None
    assert step[names.GEN_AI_TOOL_CALL_ID] == (call_id or "c2")


def test_a_call_that_is_made_again_was_asked_for_by_the_same_step_also_in_a_later_run() -> None:
    def agent() -> None:
        with agent_run("first"):
            scope = boundary.here()
            assert scope is not None
            asking = boundary.begin(scope, Call(kind="model_call", name="m"))
            assert asking is not None
            ask_for(asking, [("c1", "search", {"city": "Oslo"})])
            asking.succeed(None)
            for _ in range(2):
                run(OFFERED, {"city": "Oslo"}, lambda: None, call_id="c1")
        with agent_run("second"):
            run(OFFERED, {"city": "Bonn"}, lambda: None, call_id="c1")
            run(Offered(name="other"), {}, lambda: None, call_id="c1")

    tape = recorded(agent)
    first, second = [run for run in tape.runs() if run.agent_name in ("first", "second")]
    assert [(step.requested_by, step.requested_in) for step in first.steps] == [(None, None), (1, None), (1, None)]
    assert [(step.requested_by, step.requested_in) for step in second.steps] == [(None, first.run_id), (None, None)]
    assert second.steps[0].to_json()["requested_in"] == first.run_id
    assert f"asked for in run {first.run_id[:12]}" in render_run(second)


def test_layers_that_see_one_call_make_one_step() -> None:
    marked = tool(effect="read", version="7")(search)
    offered = Offered(name="server_search", parameters=SCHEMA, function=marked)

    def lower() -> str:
        inner = run(Offered(name="search"), {"city": "Paris"}, lambda: marked("Paris"), layer="mcp")
        return str(inner)

    (step,) = recorded(lambda: run(offered, {"city": "Paris"}, lower)).steps
    assert (step[names.STEP_EFFECT], step[names.TOOL_VERSION]) == ("read", "7")


def test_a_tool_that_calls_itself_makes_steps() -> None:
    @tool
    def countdown(n: int) -> int:
        return n if n == 0 else countdown(n - 1)

    offered = Offered(name="countdown", function=countdown)
    steps = recorded(lambda: run(offered, {"n": 2}, lambda: countdown(2))).steps
    assert [json.loads(step[names.GEN_AI_TOOL_CALL_ARGUMENTS])["n"] for step in steps] == [2, 1, 0]

    def body() -> Any:
        return run(offered, {"n": 1}, lambda: None)  # the framework's own seam again: another call

    steps = recorded(lambda: run(offered, {"n": 2}, body)).steps
    assert [json.loads(step[names.GEN_AI_TOOL_CALL_ARGUMENTS])["n"] for step in steps] == [2, 1]


def test_another_tool_inside_a_tool_is_a_step_of_its_own() -> None:
    other = tool(search)

    def body() -> str:
        return other("Oslo")

    steps = recorded(lambda: run(Offered(name="research"), {}, body)).steps
    assert [step[names.GEN_AI_TOOL_NAME] for step in steps] == ["research", "search"]


def test_a_call_that_cannot_be_described_goes_straight_through() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framework, "_encoded", lambda arguments: 1 / 0)
        given: list[str] = []
        tape = recorded(lambda: given.append(run(OFFERED, {}, lambda: "straight through")))
    assert (tape.steps, given) == ([], ["straight through"])


class Hold(Exception):
    """A framework asks a person first."""


def ending(given: object) -> OutcomeName | None:
    if isinstance(given, Hold):
        return "interrupted"
    return "tool_error" if isinstance(given, dict) and given.get("failed") else None


def test_a_framework_says_how_a_call_ended() -> None:
    def ask(body: Callable[[], Any]) -> Any:
        scope = boundary.here()
        assert scope is not None
        call = framework.tool_call(scope, OFFERED, {}, layer="acme", ending=ending)
        assert call is not None
        return boundary.call(scope, call, body)

    def hold() -> None:
        raise Hold

    def agent() -> list[object]:
        given: list[object] = [ask(lambda: {"failed": True}), ask(lambda: {"failed": False})]
        with pytest.raises(Hold):
            ask(hold)
        return given

    tape = recorded(agent)
    assert tape.outcomes == ["tool_error", "ok", "interrupted"]
    again = replayed(tape, agent)
    assert (again.equal, again.value) == (True, [{"failed": True}, {"failed": False}])


def test_how_a_call_ended_may_not_be_told() -> None:
    def agent() -> Any:
        scope = boundary.here()
        assert scope is not None
        call = framework.tool_call(scope, OFFERED, {}, layer="acme", ending=lambda given: given.odd)  # type: ignore[attr-defined]
        assert call is not None
        return boundary.call(scope, call, lambda: 7)

    assert recorded(agent).outcomes == ["ok"]


def test_a_call_that_was_not_made_is_a_step_that_a_replay_passes() -> None:
    def agent() -> None:
        scope = boundary.here()
        assert scope is not None
        framework.not_made(scope, OFFERED, '{"city": ', "malformed", layer="acme", call_id="c1", error=ValueError("no JSON"))
        framework.not_made(scope, Offered(name="elsewhere"), {}, "deferred", layer="acme", call_id="c2")

    tape = recorded(agent)
    assert tape.outcomes == ["malformed", "deferred"]
    assert [step[names.GEN_AI_TOOL_CALL_ID] for step in tape.steps] == ["c1", "c2"]
    assert replayed(tape, agent).equal
    assert told(replayed(tape, lambda: None)) != []


def test_the_declared_type_of_a_result() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> int:
            return 1

    def unknown() -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
        return None

    assert [framework.returned(f) for f in (search, unknown, Unhashable(), None)] == [str, None, None, None]


class Described:
    """A tool of a framework that makes the schema anew for each who asks."""

    __slots__ = ("__weakref__", "asked", "name")

    def __init__(self) -> None:
        self.name = "search"
        self.asked = 0

    def describe(self) -> Offered:
        self.asked += 1
        return Offered(name=self.name, parameters=SCHEMA)


def test_a_tool_is_described_once_and_again_when_it_says_something_else() -> None:
    one = Described()
    for name in ("search", "search", "find", "find"):
        one.name = name
        assert framework.once(one, (one.name,), one.describe).name == name
    assert one.asked == 2
    another = Described()
    framework.once(another, ("find",), another.describe)
    assert another.asked == 1


def test_a_tool_without_weak_references_is_described_each_time() -> None:
    made = iter(range(3))
    assert [framework.once((), (), lambda: Offered(name=str(next(made)))).name for _ in range(2)] == ["0", "1"]

"""What a plain tool changes in place is kept with its call, and changed again by a replay."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from spanreplay.instrumentation import agent_run, tool
from spanreplay.instrumentation.changed_in_place import Held
from spanreplay.replay.reexecution.engine import Replayer
from spanreplay.replay.reports.verdict import render_verdict
from support.taped import recorded, replayed, told


class Shop:
    def __init__(self) -> None:
        self.cart: list[Any] = []
        self.total = 0.0
        self.client = object()

    @tool(effect="write")
    def add(self, item: str, price: float) -> None:
        self.cart.append({"item": item})
        self.total += price
        if price > 90:
            raise ValueError("too dear")

    @tool(effect="write")
    async def later(self, item: str, notes: list[str]) -> int:
        await asyncio.sleep(0.002 if item == "slow" else 0)
        notes.append(item)
        self.total += 1
        return len(notes)


@tool(effect="write")
def pay(order: dict[str, Any], log: list[Any], tags: set[str]) -> None:
    order["status"] = "paid"
    order["lines"][0]["paid"] = True
    del order["draft"]
    log.insert(0, "paid")
    tags.add("paid")


@tool(effect="read")
def show(text: str) -> None:
    """Something that depends on all of it."""


def shops() -> str:
    shop, first, line = Shop(), {"k": 1}, {"n": 1}
    log, order, notes, tags = [first], {"draft": True, "lines": [line]}, list[str](), {"new"}

    async def several() -> None:
        await asyncio.gather(shop.later("slow", notes), shop.later("quick", notes))

    with agent_run("shop", input="go") as run:
        shop.add("x", 3)
        try:
            shop.add("z", 99)
        except ValueError:
            pass
        pay(order, log, tags)
        first["k"] = 2  # the very objects that the agent holds are still in there
        line["n"] = 2
        asyncio.run(several())
        text = json.dumps([shop.cart, shop.total, order, log, notes, sorted(tags)])
        show(text)
        run.output = text
    return text


def test_what_tools_change_is_changed_again() -> None:
    tape = recorded(shops)
    result = replayed(tape, shops)
    assert told(result) == []
    assert result.equal
    assert json.loads(str(result.value)) == [
        [{"item": "x"}, {"item": "z"}],
        104.0,
        {"lines": [{"n": 2, "paid": True}], "status": "paid"},
        ["paid", {"k": 2}],
        ["quick", "slow"],
        ["new", "paid"],
    ]
    assert [step.typed_left is not None for step in tape.runs()[0].steps] == [True, True, True, True, True, False]


def test_what_the_agent_has_changed_itself_is_left_alone_and_named() -> None:
    def agent(mine: str) -> list[str]:
        with agent_run("shop", input="go"):
            notes: list[str] = [mine]
            asyncio.run(Shop().later("x", notes))
        return notes

    result = Replayer(recorded(agent, "a").runs(), ignore=["arguments.notes"]).replay(agent, "b")
    assert result.value == ["b"]
    assert [facts["names"] for facts in result.verdict.alone] == [["arguments.notes"]]
    assert "note: not changed again, as it is not what the tool of step 1 was given then: arguments.notes" in render_verdict(
        result.verdict, []
    )


@pytest.mark.parametrize("value", [["x" * 70_000], list(range(70_000)), {"a": ["b" * 1000] * 80}, [[[b"x"]], "y" * 70_000]])
def test_what_is_too_long_is_not_written_out(value: Any) -> None:
    held = Held({"value": value})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spanreplay.instrumentation.changed_in_place.codec.encode", lambda _: pytest.fail("written out"))
        held.begin()
        assert held.left() is None
    value.clear()
    assert held.left() is None


def test_what_comes_and_goes_is_kept_and_what_cannot_be_written_is_not() -> None:
    own = Shop()
    held = Held({}, own)
    held.begin()
    own.added = 1  # type: ignore[attr-defined]
    own.client = []
    own.cart = object()  # type: ignore[assignment]
    del own.total
    assert json.loads(held.left() or "") == {"self": {"after": {"added": 1}, "before": {"total": 0.0}}}
    other = Shop()
    assert Held({}, other).change(held.left() or "") == []
    assert (vars(other)["added"], "total" in vars(other)) == (1, False)


def test_a_tool_that_changes_nothing_keeps_nothing() -> None:
    held = Held({"order": {}, "text": "x"})
    assert held
    held.begin()
    assert held.left() is None
    assert not Held({"text": "x", "of": (1,)})
    assert not Held({}, Shop)


@pytest.mark.parametrize("left", ["[]", "null", "{", '{"self":{"before":1,"after":2}}', '{"self":{"after":{}}}', '{"arguments":[]}'])
def test_a_text_that_is_no_record_of_changes_changes_nothing(left: str) -> None:
    (run,) = recorded(shops).runs()
    steps = tuple(step if step.typed_left is None else replace(step, typed_left=left) for step in run.steps)
    assert [(kind, step) for kind, step, *_ in told(replayed([replace(run, steps=steps)], shops))] == [("input", 6)]


def test_no_name_of_a_text_reaches_the_class_of_the_object() -> None:
    class Guarded:
        def __init__(self) -> None:
            self.mine = 1

        @property
        def given(self) -> int:
            raise AssertionError("asked")

        @given.setter
        def given(self, value: int) -> None:
            raise AssertionError("set")

    own = Guarded()
    names = {"__class__": 1, "__dict__": {}, "given": 3, "mine": 2, "secret": "[redacted:token:01234567]"}
    alone = Held({}, own).change(json.dumps({"self": {"before": {"mine": 1}, "after": names}}))
    assert (type(own), own.mine, alone) == (Guarded, 2, ["self.secret"])

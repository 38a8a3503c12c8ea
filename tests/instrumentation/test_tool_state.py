"""What a tool changes in the state that it is handed is kept with its result, and changed again in a replay."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from spanreplay.boundary.boundary import here
from spanreplay.content import codec
from spanreplay.instrumentation.framework import Offered, tool_call
from spanreplay.instrumentation.tool_state import ToolState
from support.taped import recorded, replayed

STATE = ToolState("state", without=("messages",))


class Client:
    def __init__(self) -> None:
        self.lock = object()


@dataclass
class Cart:
    client: Client = field(default_factory=Client)
    items: list[str] = field(default_factory=list)
    total: int = 0


@dataclass(frozen=True)
class Frozen:
    items: list[str] = field(default_factory=list)
    total: int = 0


def change(deps: Any) -> None:
    if isinstance(deps, dict):
        deps["items"].append("hat")
        deps["total"] = 3
        deps.pop("gone", None)
    else:
        deps.items.append("hat")
        object.__setattr__(deps, "total", 3)


def shown(deps: Any) -> Any:
    return dict(deps) if isinstance(deps, dict) else (deps.items, deps.total)


@pytest.mark.parametrize("make", [Cart, lambda: {"items": [], "total": 0, "gone": 1}, lambda: SimpleNamespace(items=[], total=0)])
def test_what_was_changed_is_changed_again_in_place(make: Any) -> None:
    deps, again = make(), make()
    before = STATE.of(deps)
    change(deps)
    kept = codec.decode(codec.encode(STATE.kept("added", before, deps)).text)
    held = again["items"] if isinstance(again, dict) else again.items
    assert STATE.restored(kept, again) == STATE.result_of(kept) == "added"
    assert shown(again) == shown(deps)
    assert held == ["hat"]
    assert kept["state"]["before"]["total"] == 0


def test_what_cannot_be_set_is_changed_in_place_or_left() -> None:
    deps, again = Frozen(), Frozen()
    before = STATE.of(deps)
    change(deps)
    assert STATE.restored(STATE.kept(1, before, deps), again) == 1
    assert (again.items, again.total) == (["hat"], 0)


@pytest.mark.parametrize("deps", [None, "a key", 3, Client(), (1, 2)])
def test_what_holds_nothing_that_can_be_kept_leaves_the_result_as_it_is(deps: Any) -> None:
    assert STATE.kept({"a": 1}, STATE.of(deps), deps) == {"a": 1}


def test_a_result_that_nothing_stands_beside_is_the_result() -> None:
    cart = Cart()
    assert STATE.kept({"result": 1}, STATE.of(cart), cart) == {"result": 1}
    assert STATE.restored({"result": 1}, cart) == STATE.result_of({"result": 1}) == {"result": 1}


def test_what_the_framework_sees_to_itself_is_left_out() -> None:
    holder = {"messages": ["hello"], "total": 0}
    before = STATE.of(holder)
    holder["messages"] = []
    assert STATE.kept(1, before, holder) == 1


class SoldOutError(Exception):
    pass


@pytest.mark.parametrize("awaited", [False, True])
def test_what_a_tool_changed_before_it_raised_is_changed_again(awaited: bool) -> None:
    ran: list[Cart] = []

    def buy(cart: Cart) -> None:
        ran.append(cart)
        change(cart)
        raise SoldOutError("no hats")

    async def abuy(cart: Cart) -> None:
        buy(cart)

    async def agent() -> Any:
        scope, cart = here(), Cart()
        assert scope is not None
        call = tool_call(scope, Offered(name="buy"), {}, layer="shop")
        assert call is not None
        try:
            await STATE.acall(scope, call, lambda: abuy(cart), cart) if awaited else STATE.call(scope, call, lambda: buy(cart), cart)
        except SoldOutError as error:
            return shown(cart), str(error), dict(vars(error))

    tape = recorded(agent)
    result = replayed(tape, agent)
    assert (result.equal, result.value, len(ran)) == (True, ((["hat"], 3), "no hats", {}), 1)

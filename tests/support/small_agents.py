"""Small agents made from plans, so that tests can draw them by chance and change them in one place.

After every node of the top level a model is asked; its request holds every result so far, so that each step depends on all before it.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run

How: TypeAlias = Literal["gather", "group", "threads"]


@dataclass(frozen=True)
class Tool:
    """One call of a tool."""

    id: int
    name: str
    x: int
    fails: bool = False


@dataclass(frozen=True)
class Parallel:
    """Branches that run at the same time."""

    id: int
    branches: tuple["Plan", ...]
    how: How


@dataclass(frozen=True)
class Sub:
    """A sub-agent."""

    id: int
    name: str
    plan: "Plan"


Node: TypeAlias = Tool | Parallel | Sub
Plan: TypeAlias = tuple[Node, ...]


async def call(kind: Any, name: str, asked: object, body: Callable[[], Coroutine[Any, Any, Any]], node: int) -> Any:
    """A call through the Boundary that carries the id of its node, so that a test finds its step."""
    scope = boundary.here()
    if scope is None:
        return await body()
    return await boundary.acall(scope, Call(kind=kind, name=name, input=codec.encode(asked), attributes={"test.node": node}), body)


class Small:
    """Executes a plan. ``chance`` decides how long each call takes; it changes nothing else."""

    def __init__(self, plan: Plan, chance: random.Random | None = None) -> None:
        self.plan = plan
        self.chance = chance or random.Random(0)
        self.bodies = 0

    async def run(self) -> list[Any]:
        """Run it: gives what was logged."""
        async with agent_run("small", input="go") as run:
            log: list[Any] = []
            for node in self.plan:
                log.append(await self.node(node))
                log.append(await self.model(log, -1 - node.id))
            run.output = log
            return log

    async def model(self, log: Sequence[Any], node: int) -> str:
        """Ask the model."""

        async def body() -> str:
            self.bodies += 1
            return f"answer {len(log)}"

        answer: str = await call("model_call", "m", {"messages": list(log)}, body, node)
        return answer

    async def node(self, node: Node) -> Any:
        """Do one node."""
        match node:
            case Tool():
                return await self.tool(node)
            case Parallel():
                return await self.parallel(node)
            case Sub():
                async with agent_run(node.name, input=node.name, attributes={"test.node": node.id}) as run:
                    run.output = await self.sequence(node.plan)
                    return run.output

    async def sequence(self, plan: Plan) -> list[Any]:
        """Do one after the other."""
        return [await self.node(node) for node in plan]

    async def tool(self, node: Tool) -> Any:
        """Call a tool."""

        async def body() -> int:
            self.bodies += 1
            for _ in range(self.chance.randrange(4)):
                await asyncio.sleep(0)
            if node.fails:
                raise ValueError(f"{node.name} {node.x}")
            return node.x * 10

        try:
            return await call("tool_call", node.name, {"x": node.x}, body, node.id)
        except ValueError as error:
            return repr(error)

    async def parallel(self, node: Parallel) -> list[Any]:
        """Do the branches at the same time."""
        if node.how == "gather":
            return list(await asyncio.gather(*(self.sequence(b) for b in node.branches)))
        if node.how == "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.sequence(b)) for b in node.branches]
            return [t.result() for t in tasks]
        return list(await asyncio.gather(*(asyncio.to_thread(lambda b: asyncio.run(self.sequence(b)), b) for b in node.branches)))


# ---- drawing --------------------------------------------------------------------------------------------------------


@st.composite
def plans(draw: st.DrawFn, depth: int = 2, longest: int = 3, same: bool = True) -> Plan:
    """Any plan. ``same``: calls may be equal to others; else every call has an argument of its own."""
    counter = iter(range(1, 10_000))

    def tool() -> Tool:
        number = next(counter)
        x = draw(st.integers(1, 2)) if same else number
        return Tool(number, draw(st.sampled_from("ab")), x, draw(st.integers(0, 5)) == 0)

    def node(left: int) -> Node:
        kind = draw(st.sampled_from(["tool", "tool", "parallel", "sub"])) if left else "tool"
        if kind == "parallel":
            number = next(counter)
            how: How = draw(st.sampled_from(["gather", "group", "threads"]))
            return Parallel(number, tuple(plan(left - 1, 2) for _ in range(draw(st.integers(2, 3)))), how)
        if kind == "sub":
            return Sub(next(counter), draw(st.sampled_from(["s", "t"])), plan(left - 1, 2))
        return tool()

    def plan(left: int, most: int) -> Plan:
        return tuple(node(left) for _ in range(draw(st.integers(1, most))))

    return plan(depth, longest)


def tools(plan: Plan) -> Iterator[Tool]:
    """Every call of a tool."""
    for node in plan:
        match node:
            case Tool():
                yield node
            case Parallel():
                for branch in node.branches:
                    yield from tools(branch)
            case Sub():
                yield from tools(node.plan)


def rewritten(plan: Plan, edit: Callable[[Plan], Plan]) -> Plan:
    """The plan with ``edit`` applied to every sequence in it, from the inside out."""
    made: list[Node] = []
    for node in plan:
        match node:
            case Tool():
                made.append(node)
            case Parallel():
                made.append(replace(node, branches=tuple(rewritten(b, edit) for b in node.branches)))
            case Sub():
                made.append(replace(node, plan=rewritten(node.plan, edit)))
    return edit(tuple(made))

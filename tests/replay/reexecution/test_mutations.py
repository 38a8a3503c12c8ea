"""Seeded mutations of generated agents: each is found, at the right step and field, whatever the agent's shape."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import pytest

from spanreplay.replay.model import Run
from spanreplay.replay.reexecution import turns
from spanreplay.replay.reexecution.ledger import Difference
from support.size import FULL
from support.small_agents import How, Node, Parallel, Plan, Small, Sub, Tool, call, rewritten, tools
from support.taped import Tape, recorded, replayed

NUMBER: Final = 1000 if FULL else 36
HOWS: Final[tuple[How, ...]] = ("gather", "group", "threads")
OFFERED: Final = ("a", "b", "c")


@dataclass(frozen=True)
class Wording:
    """What a model is told beside the results so far, from one of its calls on."""

    since: int = 0
    """Node of that call; all of them by default."""
    system: str = "You are careful."
    descriptions: tuple[str, ...] = ("does a", "does b", "does c")
    temperature: float = 0


class Worded(Small):
    """An agent that asks its model with instructions, tools and settings."""

    def __init__(self, plan: Plan, chance: random.Random, changed: Wording | None = None) -> None:
        super().__init__(plan, chance)
        self.changed = changed
        self.words = Wording()

    async def model(self, log: Sequence[Any], node: int) -> str:
        """Ask the model."""
        if self.changed is not None and node == self.changed.since:
            self.words = self.changed
        offered = [{"name": name, "description": told} for name, told in zip(OFFERED, self.words.descriptions, strict=True)]
        messages = [{"role": "system", "content": self.words.system}, {"role": "user", "content": json.dumps(log)}]

        async def body() -> str:
            self.bodies += 1
            return f"answer {len(log)}"

        asked = {"messages": messages, "tools": offered, "temperature": self.words.temperature}
        answer: str = await call("model_call", "m", asked, body, node)
        return answer


def plan_of(chance: random.Random) -> Plan:
    """A plan whose every call has an argument of its own."""
    numbers = iter(range(1, 10_000))

    def tool() -> Tool:
        number = next(numbers)
        return Tool(number, chance.choice("ab"), number, chance.random() < 0.2)

    def node(left: int) -> Node:
        kind = chance.choice(["tool", "tool", "parallel", "sub"]) if left else "tool"
        if kind == "parallel":
            number, branches = next(numbers), chance.randint(2, 3)
            return Parallel(number, tuple(sequence(left - 1, 2) for _ in range(branches)), chance.choice(HOWS))
        if kind == "sub":
            return Sub(next(numbers), chance.choice("st"), sequence(left - 1, 2))
        return tool()

    def sequence(left: int, most: int) -> Plan:
        return tuple(node(left) for _ in range(chance.randint(1, most)))

    return sequence(2, 4)


@dataclass(frozen=True)
class Mutation:
    """A changed agent, and what has to be found of it."""

    plan: Plan
    check: Callable[[Difference, Callable[[int], int]], bool]
    """Of the first difference, and of what tells the ``seq`` of a node's step."""
    wording: Wording | None = None


def in_words(plan: Plan, chance: random.Random, field: str) -> Mutation:
    node = -1 - chance.choice(plan).id
    changed = {
        "messages[0].content": Wording(since=node, system="You are generous."),
        "temperature": Wording(since=node, temperature=0.5),
        "tools[1].description": Wording(since=node, descriptions=("does a", "does b twice", "does c")),
    }[field]
    return Mutation(plan, lambda d, seq: (d.kind, d.step, d.field, d.also) == ("input", seq(node), field, ()), changed)


def argument(plan: Plan, chance: random.Random) -> Mutation:
    chosen = chance.choice(list(tools(plan)))
    changed = rewritten(plan, lambda p: tuple(replace(chosen, x=-5) if n == chosen else n for n in p))
    wanted = ("arguments.x", str(chosen.x), "-5")
    return Mutation(changed, lambda d, seq: (d.kind, d.step, d.field, d.recorded, d.actual) == ("input", seq(chosen.id), *wanted))


def order(plan: Plan, chance: random.Random) -> Mutation | None:
    pairs: list[tuple[Tool, Tool]] = []

    def find(p: Plan) -> Plan:
        pairs.extend((a, b) for a, b in pairwise(p) if isinstance(a, Tool) and isinstance(b, Tool))
        return p

    rewritten(plan, find)
    if not pairs:
        return None
    one, other = chance.choice(pairs)
    changed = rewritten(plan, lambda p: tuple(other if n == one else one if n == other else n for n in p))
    return Mutation(changed, lambda d, seq: (d.kind, d.step) == ("order", seq(one.id)))


def missing(plan: Plan, chance: random.Random) -> Mutation:
    chosen = chance.choice(list(tools(plan)))
    changed = rewritten(plan, lambda p: tuple(n for n in p if n != chosen))
    return Mutation(changed, lambda d, seq: d.kind in ("order", "unreached") and d.step == seq(chosen.id))


def extra(plan: Plan, chance: random.Random) -> Mutation:
    chosen, more = chance.choice(list(tools(plan))), Tool(0, chance.choice("abc"), -7)
    after = chance.random() < 0.5

    def insert(p: Plan) -> Plan:
        at = p.index(chosen) + after if chosen in p else 0
        return (*p[:at], more, *p[at:]) if chosen in p else p

    def check(d: Difference, seq: Callable[[int], int]) -> bool:
        if d.kind == "never_recorded":
            return (d.step, d.name, d.actual) == (None, f"tool_call {more.name}", '{"x": -7}')
        return (d.kind, d.name, d.field, d.actual) == ("input", f"tool_call {more.name}", "arguments.x", "-7")  # in another's place

    return Mutation(rewritten(plan, insert), check)


SORTS: Final[dict[str, Callable[[Plan, random.Random], Mutation | None]]] = {
    "prompt": lambda plan, chance: in_words(plan, chance, "messages[0].content"),
    "setting": lambda plan, chance: in_words(plan, chance, "temperature"),
    "schema": lambda plan, chance: in_words(plan, chance, "tools[1].description"),
    "argument": argument,
    "order": order,
    "missing": missing,
    "extra": extra,
}


def seq_of(run: Run, tape: Tape) -> Callable[[int], int]:
    span = {s.attributes.get("test.node"): s.span_id for s in tape.starts}
    steps = {s.span_id: s.seq for s in run.steps}
    return lambda node: steps[span[node]]


def test_every_mutation_is_found_at_its_step_and_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", turns.IMPATIENT_S)
    sorts = list(SORTS)
    lost: list[tuple[int, str, Difference | None]] = []
    done = seed = 0
    while done < NUMBER:
        seed += 1
        chance, sort = random.Random(seed), sorts[seed % len(sorts)]
        plan = plan_of(chance)
        mutation = SORTS[sort](plan, chance)
        if mutation is None:
            continue
        done += 1
        tape = recorded(Worded(plan, chance).run)
        result = replayed(tape, Worded(mutation.plan, random.Random(-seed), mutation.wording).run)
        first = result.differences[0] if result.differences else None
        if first is None or not mutation.check(first, seq_of(tape.runs()[0], tape)):
            lost.append((seed, sort, first))
    assert not lost

"""What may happen in a run of agents, made up: models that ask for tools, tools at once, agents inside tools, failures, attempts."""

import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One thing that happened, whoever records it."""

    number: int
    """In order of start, from 1."""
    kind: Literal["agent", "model", "tool"]
    name: str
    agent: str
    parent: "Call | None"
    start: int = 0
    end: int = 0
    """In ticks."""
    call_id: str | None = None
    asked_by: "Call | None" = None
    arguments: Any = None
    result: Any = None
    """Of a tool: any JSON. Of an agent: text."""
    error: str | None = None
    messages: list[Message] = field(default_factory=list)
    """What a model was asked, and an agent."""
    answer: Message | None = None
    attempt: int = 1
    retry_of: "Call | None" = None


class Run:
    """A run, made up step by step."""

    def __init__(self, choices: random.Random, *, depth: int = 2) -> None:
        self._random = choices
        self._now = 0
        self._depth = depth
        self._reuses_ids = self._random.randint(0, 2) == 2
        self._ids = 0
        self.calls: list[Call] = []
        """In order of start: the root, then its steps."""
        top = self._agent("lead", "what is to be done?", None, 0)
        for _ in top:
            pass

    def _tick(self) -> int:
        self._now += self._random.randint(1, 3)
        return self._now

    def _begin(self, **fields: Any) -> Call:
        call = Call(number=len(self.calls) + 1, start=self._tick(), **fields)
        self.calls.append(call)
        return call

    def _agent(self, name: str, task: str, parent: Call | None, level: int) -> Generator[None, None, None]:
        """Each ``yield`` lets what runs at the same time go on."""
        history: list[Message] = [{"role": "user", "parts": [{"type": "text", "content": task}]}]
        agent = self._begin(kind="agent", name=name, agent=name, parent=parent, messages=list(history))
        turns = self._random.randint(1, 3)
        for turn in range(turns):
            wanted = self._random.choice((0, 1, 1, 2, 3)) if turn < turns - 1 else 0
            model = yield from self._model(agent, history, wanted)
            assert model.answer is not None
            history = [*history, model.answer]
            if model.error is not None or not wanted:
                break
            bodies = [self._tool(agent, model, part, level) for part in model.answer["parts"] if part["type"] == "tool_call"]
            done = yield from self._together(bodies) if self._random.randint(0, 1) else self._in_turn(bodies)
            history = [*history, *({"role": "tool", "parts": [part]} for part in done)]
        last = history[-1]["parts"][0]
        agent.result = last.get("content", "no answer")
        agent.end = self._tick()
        yield

    def _model(self, agent: Call, history: list[Message], wanted: int) -> Generator[None, None, Any]:
        failures = self._random.choice((0, 0, 0, 0, 1, 2))
        before: Call | None = None
        for _ in range(failures):
            failed = self._begin(kind="model", name="big-model", agent=agent.name, parent=agent, messages=history, error="RateLimitError")
            yield
            failed.end = self._tick()
            failed.attempt, failed.retry_of = (1, None) if before is None else (before.attempt + 1, before)
            before = failed
        call = self._begin(kind="model", name="big-model", agent=agent.name, parent=agent, messages=history)
        call.attempt, call.retry_of = (1, None) if before is None else (before.attempt + 1, before)
        yield
        parts: list[dict[str, Any]] = [{"type": "text", "content": f"answer {call.number}"}]
        parts += [
            {
                "type": "tool_call",
                "id": self._call_id(n),
                "name": self._random.choice(("search", "fetch", "ask_helper")),
                "arguments": {"n": n, "of": call.number},
            }
            for n in range(wanted)
        ]
        call.answer = {"role": "assistant", "parts": parts}
        call.end = self._tick()
        yield
        return call

    def _call_id(self, place: int) -> str:
        self._ids += 1
        return f"call_{place}" if self._reuses_ids else f"call_{self._ids:05}"

    def _tool(self, agent: Call, model: Call, asked: Message, level: int) -> Iterator[Any]:
        tool = self._begin(
            kind="tool",
            name=asked["name"],
            agent=agent.name,
            parent=agent,
            call_id=asked["id"],
            asked_by=model,
            arguments=asked["arguments"],
        )
        yield
        if tool.name == "ask_helper" and level < self._depth:
            yield from self._agent("helper", f"do part {tool.number}", tool, level + 1)
        if self._random.randint(0, 4) == 4:
            tool.error = "ValueError"
        else:
            tool.result = self._random.choice(({"found": tool.number}, f"text {tool.number}", [1, tool.number]))
        tool.end = self._tick()
        told = {"error": tool.error} if tool.error is not None else tool.result
        yield {"type": "tool_call_response", "id": tool.call_id, "response": told}

    def _in_turn(self, bodies: list[Iterator[Any]]) -> Generator[None, None, Any]:
        done: list[Any] = []
        for body in bodies:
            for told in body:
                done += [told] if told is not None else []
                yield
        return done

    def _together(self, bodies: list[Iterator[Any]]) -> Generator[None, None, Any]:
        done: dict[int, Any] = {}
        running = dict(enumerate(bodies))
        while running:
            place = self._random.choice(list(running))
            told = next(running[place], self)
            if told is self:
                del running[place]
            elif told is not None:
                done[place] = told
            yield
        return [done[place] for place in sorted(done)]

"""The program is changed in one place between recording and replay: the change is noticed, and nothing runs live.

Each is replayed unchanged first, and must have the same output and no difference then.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from conformance.driver import ASYNC, CONCURRENT, OPENAI, TOOLS
from conformance.model import Asked, Reply
from conformance.scenario import scenario
from conformance.scenarios.concurrency import ask, number
from conformance.scenarios.loops import OFFERED, QUESTION, SYSTEM, function, weather_then_mail
from conformance.world import MODEL, World

_NEEDS = {OPENAI, TOOLS}


class Agent:
    """A loop of five steps: model, weather, model, send_mail, model; and where it can be changed."""

    def __init__(self, world: World) -> None:
        self.client = world.openai()
        self.system = SYSTEM
        self.offered: Any = OFFERED
        self.settings: dict[str, Any] = {"model": MODEL, "temperature": 0.2}
        self.turns = 10
        self.told: Callable[[str], str] = lambda result: result
        self.arguments: Callable[[dict[str, Any]], dict[str, Any]] = lambda arguments: arguments

        @world.tool
        def weather(city: str) -> str:
            world.mark("weather")
            return f"sunny in {city}"

        @world.acting_tool
        def send_mail(to: str, text: str) -> str:
            world.mark("send_mail")
            return f"sent {len(text)} characters to {to}"

        self.named: dict[str, Callable[..., str]] = {"weather": weather, "send_mail": send_mail}

    def run(self) -> str:
        """From the question to the answer."""
        messages: list[Any] = [{"role": "system", "content": self.system}, {"role": "user", "content": QUESTION}]
        said: str | None = None
        for _ in range(self.turns):
            answer: Any = self.client.chat.completions.create(messages=list(messages), tools=self.offered, **self.settings)
            message = answer.choices[0].message
            said = message.content
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = self.named[call.function.name](**self.arguments(json.loads(call.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": self.told(result)})
        return json.dumps([said, messages])


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(1,), field="messages[0]")
def word_of_the_prompt(world: World) -> str:
    """One word of the system prompt"""
    agent = Agent(world)
    if world.changed:
        agent.system = SYSTEM.replace("brief", "short")
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(1,), field="model")
def name_of_the_model(world: World) -> str:
    """Another model"""
    agent = Agent(world)
    if world.changed:
        agent.settings["model"] = "gpt-5-nano"
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(1,), field="temperature")
def temperature(world: World) -> str:
    """Temperature 0.2, then 0.3"""
    agent = Agent(world)
    if world.changed:
        agent.settings["temperature"] = 0.3
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(1,), field="tools[1]")
def schema_of_a_tool(world: World) -> str:
    """The description of one tool that the model is offered"""
    agent = Agent(world)
    if world.changed:
        agent.offered = [OFFERED[0], function("send_mail", "to", "text", about="A tool, for mail.")]
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(4,), field="text")
def argument_of_a_tool(world: World) -> str:
    """The program adds a line to the text of the mail that the model asked for"""
    agent = Agent(world)
    if world.changed:
        agent.arguments = lambda arguments: {n: v + (" Yours, the agent." if n == "text" else "") for n, v in arguments.items()}
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(3,), field="messages[3]")
def result_that_is_told(world: World) -> str:
    """The model is told a tool's result in other words"""
    agent = Agent(world)
    if world.changed:
        agent.told = str.upper
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(5,))
def last_call_is_missing(world: World) -> str:
    """The last model call is not made any more"""
    agent = Agent(world)
    if world.changed:
        agent.turns = 2
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(2,))
def tool_call_is_missing(world: World) -> str:
    """A tool is not called any more, and its result known to the program: every other call is as it was"""
    agent = Agent(world)
    if world.changed:
        agent.named["weather"] = lambda city: f"sunny in {city}"
    return agent.run()


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(6,))
def one_model_call_more(world: World) -> str:
    """Another model call at the end"""
    agent = Agent(world)
    output = agent.run()
    if world.changed:
        messages: list[Any] = [{"role": "user", "content": "Are you sure?"}]
        output += str(agent.client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content)
    return output


@scenario(model=weather_then_mail, requests=3, bodies=2, needs=_NEEDS, expect="noticed", steps=(5, 6))
def one_tool_call_more(world: World) -> str:
    """The mail is sent twice, alike"""
    agent = Agent(world)
    if world.changed:
        send = agent.named["send_mail"]
        agent.named["send_mail"] = lambda to, text: (send(to=to, text=text), send(to=to, text=text))[0]
    return agent.run()


def _both(asked: Asked) -> Reply:
    if asked.turn == 0:
        return Reply(calls=[("weather", {"city": "Lisbon"}), ("send_mail", {"to": "Ana", "text": "Weather follows."})])
    return Reply(text=f"Both done, {asked.fresh}.")


@scenario(model=_both, requests=2, bodies=2, needs=_NEEDS, expect="noticed", steps=(2, 3))
def order_of_calls(world: World) -> str:
    """Two tools are called in the other order; the model is told the results as before"""
    agent = Agent(world)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    message: Any = agent.client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    wanted = list(message.tool_calls)
    results = {c.id: agent.named[c.function.name](**json.loads(c.function.arguments)) for c in (wanted[::-1] if world.changed else wanted)}
    messages += [{"role": "tool", "tool_call_id": call.id, "content": results[call.id]} for call in wanted]
    last: Any = agent.client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED)
    return str(last.choices[0].message.content)


@scenario(model=number, requests=4, needs={OPENAI, ASYNC, CONCURRENT}, expect="noticed", steps=(1, 2, 3, 4), field="messages[0]")
async def one_of_several_at_once(world: World) -> str:
    """One of four prompts that are asked at once"""
    async with world.async_openai() as client:

        async def caller(which: int) -> str:
            await asyncio.sleep(world.pause(which))
            return await ask(client, f"Question {which}{'!' if world.changed and which == 2 else '?'}")

        return json.dumps(await asyncio.gather(*(caller(which) for which in range(4))))

"""Ordinary agents: ask the model, call the tools it asks for, until it has no more to ask."""

import json
from typing import Any

import pydantic

from conformance.driver import ANTHROPIC, ASYNC, OPENAI, TOOLS
from conformance.model import Asked, Reply
from conformance.scenario import scenario
from conformance.world import CLAUDE, MODEL, World

SYSTEM = "You look up the weather and tell the customer by mail. Be brief, and never invent a temperature."
QUESTION = "What is the weather in Lisbon? Tell Ana."


def function(name: str, *parameters: str, about: str = "A tool.") -> Any:
    """A tool in OpenAI's shape."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {"type": "object", "properties": {p: {"type": "string"} for p in parameters}, "required": list(parameters)},
        },
    }


OFFERED: Any = [function("weather", "city"), function("send_mail", "to", "text")]
OFFERED_ANTHROPIC: Any = [
    {"name": f["function"]["name"], "description": f["function"]["description"], "input_schema": f["function"]["parameters"]}
    for f in OFFERED
]


def weather_then_mail(asked: Asked) -> Reply:
    """Asks for the weather, then for a mail, then says something that it never says twice."""
    if asked.turn == 0:
        return Reply(calls=[("weather", {"city": "Lisbon"})])
    if asked.turn == 1:
        return Reply(text="Now the mail.", calls=[("send_mail", {"to": "Ana", "text": "It is sunny in Lisbon."})])
    return Reply(text=f"I wrote to Ana, number {asked.fresh}.")


def says(asked: Asked) -> Reply:
    """Says something else each time."""
    return Reply(text=f"Answer {asked.fresh} of the model.")


def tools(world: World) -> dict[str, Any]:
    """The two tools of the loop."""

    @world.tool
    def weather(city: str) -> dict[str, Any]:
        world.mark("weather")
        return {"city": city, "sky": "sunny", "celsius": 21.5}

    @world.acting_tool
    def send_mail(to: str, text: str) -> str:
        world.mark("send_mail")
        return f"sent {len(text)} characters to {to}"

    return {"weather": weather, "send_mail": send_mail}


@scenario(model=weather_then_mail, requests=3, bodies=2, needs={OPENAI, TOOLS})
def tool_loop(world: World) -> str:
    """OpenAI chat completions, two tools"""
    client, named = world.openai(), tools(world)
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    while True:
        answer: Any = client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return json.dumps([messages, answer.id, answer.usage and answer.usage.total_tokens])
        for call in message.tool_calls:
            result = named[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


@scenario(model=weather_then_mail, requests=3, bodies=2, needs={OPENAI, TOOLS, ASYNC})
async def async_tool_loop(world: World) -> str:
    """The same, asynchronous, with asynchronous tools"""

    @world.tool
    async def weather(city: str) -> dict[str, Any]:
        world.mark("weather")
        return {"city": city, "sky": "sunny", "celsius": 21.5}

    @world.acting_tool
    async def send_mail(to: str, text: str) -> str:
        world.mark("send_mail")
        return f"sent {len(text)} characters to {to}"

    named: dict[str, Any] = {"weather": weather, "send_mail": send_mail}
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    async with world.async_openai() as client:
        while True:
            answer: Any = await client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return json.dumps([messages, answer.id])
            for call in message.tool_calls:
                result = await named[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def _results(message: Any, named: dict[str, Any]) -> list[Any]:
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": json.dumps(named[block.name](**block.input))}
        for block in message.content
        if block.type == "tool_use"
    ]


@scenario(model=weather_then_mail, requests=3, bodies=2, needs={ANTHROPIC, TOOLS})
def anthropic_tool_loop(world: World) -> str:
    """Anthropic messages, two tools"""
    client, named = world.anthropic(), tools(world)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        message = client.messages.create(model=CLAUDE, system=SYSTEM, max_tokens=500, messages=messages, tools=OFFERED_ANTHROPIC)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]})
        results = _results(message, named)
        if not results:
            return json.dumps([messages, message.id, message.stop_reason])
        messages.append({"role": "user", "content": results})


@scenario(model=weather_then_mail, requests=3, bodies=2, needs={ANTHROPIC, TOOLS, ASYNC})
async def async_anthropic_tool_loop(world: World) -> str:
    """The same, asynchronous"""
    named = tools(world)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    async with world.async_anthropic() as client:
        while True:
            message = await client.messages.create(model=CLAUDE, system=SYSTEM, max_tokens=500, messages=messages, tools=OFFERED_ANTHROPIC)
            messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]})
            results = _results(message, named)
            if not results:
                return json.dumps([messages, message.id, message.stop_reason])
            messages.append({"role": "user", "content": results})


@scenario(model=weather_then_mail, requests=3, bodies=2, needs={OPENAI, TOOLS})
def responses_loop(world: World) -> str:
    """OpenAI Responses API, two tools"""
    client, named = world.openai(), tools(world)
    offered: Any = [{"type": "function", "strict": False, **f["function"]} for f in OFFERED]
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        answer = client.responses.create(model=MODEL, instructions=SYSTEM, input=items, tools=offered)
        wanted: list[Any] = [item for item in answer.output if item.type == "function_call"]
        if not wanted:
            return json.dumps([items, answer.output_text, answer.id])
        items += [item.model_dump(exclude_none=True) for item in wanted]
        for call in wanted:
            result = named[call.name](**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(result)})


class Forecast(pydantic.BaseModel):
    """What the model is to fill in."""

    city: str
    celsius: float


@scenario(model=lambda a: Reply(text=json.dumps({"city": "Lisbon", "celsius": a.number + 20, "id": a.fresh})), requests=1, needs={OPENAI})
def structured_output(world: World) -> str:
    """An answer parsed into a pydantic model by the SDK"""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    answer = world.openai().chat.completions.parse(model=MODEL, messages=messages, response_format=Forecast)
    message = answer.choices[0].message
    return f"{message.parsed!r} {message.content}"


@scenario(model=says, requests=1, needs={OPENAI})
def raw_response(world: World) -> str:
    """with_raw_response, as frameworks call the SDK, and a header of the answer"""
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    raw = world.openai().chat.completions.with_raw_response.create(model=MODEL, messages=messages)
    return f"{raw.headers['x-request-id']} {raw.parse().choices[0].message.content}"


@scenario(model=says, requests=2, needs={OPENAI})
def embeddings(world: World) -> str:
    """Embeddings beside a model call"""
    client = world.openai()
    vector = client.embeddings.create(model="embed-1", input=QUESTION).data[0].embedding
    messages: list[Any] = [{"role": "user", "content": f"Nearest to {vector}?"}]
    return f"{vector} {client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content}"


@scenario(model=says, requests=3, bodies=3, needs={OPENAI, TOOLS})
def polls(world: World) -> str:
    """The same tool call and the same model call three times, each time answered otherwise"""
    told: list[Any] = []
    states = iter(["queued", "running", "done"])

    @world.tool
    def status(order: int) -> str:
        world.mark("status")
        return next(states)

    client = world.openai()
    messages: list[Any] = [{"role": "user", "content": "Say something new."}]
    for _ in range(3):
        told.append(status(7))
        told.append(client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content)
    return json.dumps(told)


@scenario(model=says, requests=2, bodies=1, needs={OPENAI, TOOLS})
def secrets_and_addresses(world: World) -> str:
    """A key, a card number and e-mail addresses in prompts and arguments, which a recorder may redact, and still has to match"""

    @world.acting_tool
    def send(to: str, key: str) -> str:
        world.mark("send")
        return f"sent {len(to)} and {len(key)}"

    client = world.openai()
    key = "sk-proj-" + "a1B2" * 10
    messages: list[Any] = [{"role": "user", "content": f"Use {key} and 4111 1111 1111 1111, and tell ana@example.com."}]
    first = client.chat.completions.create(model=MODEL, messages=list(messages)).choices[0].message.content
    messages += [{"role": "assistant", "content": first}, {"role": "user", "content": send("ana@example.com", key)}]
    return f"{first} {client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content}"


def _long(asked: Asked) -> Reply:
    if asked.turn < 15:
        return Reply(calls=[("step", {"number": str(asked.turn), "note": asked.fresh})])
    return Reply(text=f"Done after {asked.turn}, {asked.fresh}.")


@scenario(model=_long, requests=16, bodies=15, needs={OPENAI, TOOLS})
def long_loop(world: World) -> str:
    """31 steps, one conversation"""

    @world.tool
    def step(number: str, note: str) -> str:
        world.mark("step")
        return f"{number}: {note}"

    client, offered = world.openai(), [function("step", "number", "note")]
    messages: list[Any] = [{"role": "user", "content": "Fifteen steps, please."}]
    while True:
        message: Any = client.chat.completions.create(model=MODEL, messages=messages, tools=offered).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return json.dumps(messages)
        for call in message.tool_calls:
            result = step(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

"""The agent of ``spanreplay demo``: a scripted model, tools that really do something, no keys and no network.

It books a trip: two look-ups at once, a booking that fails, an e-mail.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.asked import ask_for
from spanreplay.boundary.call import Call
from spanreplay.content import codec
from spanreplay.instrumentation import agent_run, prompt, record_decision, tool
from spanreplay.instrumentation.providers import openai_chat

PROMPT: Final = "You plan short trips. Be careful with money, and tell {customer} by e-mail what was booked."
QUESTION: Final = "Two days in Lisbon next week, please."

_REPLIES: Final[tuple[dict[str, Any], ...]] = (
    {"tool_calls": [("call_1", "find_flight", {"to": "Lisbon"}), ("call_2", "weather", {"city": "Lisbon"})]},
    {"tool_calls": [("call_3", "book_hotel", {"city": "Lisbon", "nights": 2})]},
    {
        "tool_calls": [
            ("call_4", "send_email", {"to": "ana@example.com", "subject": "Your trip to Lisbon", "text": "Flight TP573 is booked."})
        ]
    },
    {"content": "Your flight TP573 is booked, the hotel was full; the details are in your mail."},
)


async def scripted_model(request: dict[str, Any]) -> dict[str, Any]:
    """A stand-in for a model: answers an OpenAI chat request from a script, by how far the conversation is."""
    await asyncio.sleep(0)
    turn = sum(m["role"] == "assistant" for m in request["messages"])
    reply = _REPLIES[turn]
    message: dict[str, Any] = {"role": "assistant", "content": reply.get("content")}
    if "tool_calls" in reply:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in reply["tool_calls"]
        ]
    return {
        "id": f"chatcmpl-demo-{turn + 1}",
        "object": "chat.completion",
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in reply else "stop"}],
        "usage": {"prompt_tokens": 40 + 30 * turn, "completion_tokens": 20, "total_tokens": 60 + 30 * turn},
    }


async def ask_model(request: dict[str, Any]) -> dict[str, Any]:
    """Call the scripted model through the Boundary, as an adapter of a local model would."""
    scope = boundary.here()
    if scope is None:
        return await scripted_model(request)
    provider = openai_chat.PROVIDER
    made = Call(
        kind="model_call",
        name=request["model"],
        input=codec.encode({"body": request}),
        attributes=provider.request(request).attributes,
        client=True,
    )
    step = boundary.begin(scope, made)
    if step is None:
        return await scripted_model(request)
    answer = step.ask()
    if answer is not None:
        replayed: Any = await boundary.agive(step, answer)
        return dict(replayed)
    try:
        with step.body():
            reply = await scripted_model(request)
    except BaseException as error:
        step.fail(error)
        raise
    body = json.dumps(reply).encode()
    response = provider.response(200, "application/json", body, request)
    ask_for(step, ((c.id, c.name, c.arguments) for c in response.tool_calls))
    step.succeed(reply, attributes=response.attributes)
    return reply


class TripAgent:
    """Books trips. ``outbox`` is where its e-mails end up: one file a message."""

    def __init__(self, outbox: Path, *, template: str = PROMPT) -> None:
        self.outbox = outbox
        self.template = template
        self.looked_up: asyncio.Event | None = None

    @tool(effect="read")
    async def find_flight(self, to: str) -> dict[str, str]:
        """Find a flight."""
        await self._both()
        return {"flight": "TP573", "to": to}

    @tool(effect="read")
    async def weather(self, city: str) -> str:
        """Tell the weather."""
        await self._both()
        return f"sunny in {city}"

    async def _both(self) -> None:
        """Return when both look-ups are under way, so that they overlap on every machine."""
        if self.looked_up is None:
            self.looked_up = asyncio.Event()
            await self.looked_up.wait()
        else:
            self.looked_up.set()

    @tool(effect="write")
    async def book_hotel(self, city: str, nights: int) -> str:
        """Book a hotel."""
        await asyncio.sleep(0)
        raise LookupError(f"no room in {city} for {nights} nights")

    @tool(effect="irreversible", idempotency_key="{to}: {subject}")
    async def send_email(self, to: str, subject: str, text: str) -> str:
        """Send an e-mail."""
        return self.deliver(to, subject, text)

    def deliver(self, to: str, subject: str, text: str) -> str:
        """What really sends: a file in the outbox stands for the mail server."""
        message = self.outbox / f"{len(list(self.outbox.iterdir())) + 1}.eml"
        message.write_text(f"To: {to}\nSubject: {subject}\n\n{text}\n", encoding="utf-8")
        return f"sent to {to}"

    async def run(self) -> str:
        """Plan one trip."""
        with agent_run("trip-planner", input=QUESTION, version="1", session="demo") as run:
            system = prompt("trip-planner", "3", template=self.template).format(customer="Ana")
            messages: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
            tools: dict[str, Callable[..., Awaitable[Any]]] = {
                "find_flight": self.find_flight,
                "weather": self.weather,
                "book_hotel": self.book_hotel,
                "send_email": self.send_email,
            }
            while True:
                reply = await ask_model({"model": "scripted-1", "messages": messages, "tools": _definitions(tools)})
                message = reply["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    run.output = message["content"]
                    return str(message["content"])
                results = await asyncio.gather(*(self._call(tools, c) for c in message["tool_calls"]))
                messages.extend(results)

    async def _call(self, tools: dict[str, Callable[..., Awaitable[Any]]], call: dict[str, Any]) -> dict[str, Any]:
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        if name == "send_email":
            record_decision(name, "allow", by="policy", policy="mail to the customer only", arguments=arguments, call_id=call["id"])
        try:
            content = json.dumps(await tools[name](**arguments))
        except LookupError as error:
            content = f"error: {error}"
        return {"role": "tool", "tool_call_id": call["id"], "content": content}


def _definitions(tools: dict[str, Callable[..., Awaitable[Any]]]) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": name, "description": function.__doc__, "parameters": {"type": "object"}}}
        for name, function in tools.items()
    ]

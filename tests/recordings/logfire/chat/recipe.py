"""The weather scenario with the plain openai client and Logfire's instrumentation of it; the first answer is streamed."""

import json

import logfire
from openai import OpenAI

logfire.configure(send_to_logfire=False, console=False, service_name="weather")
logfire.instrument_openai()

WEATHER = {"Paris": {"city": "Paris", "celsius": 21, "sky": "sunny"}, "Oslo": {"city": "Oslo", "celsius": 4, "sky": "rain"}}
OFFERED = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
    for n in ("get_weather", "get_alerts")
]


def call(name: str, city: str) -> str:
    with logfire.span("{name}", name=name):
        return json.dumps(WEATHER[city]) if name == "get_weather" else "alert service unavailable"


def streamed(client: OpenAI, messages: list[dict]) -> dict:
    calls: dict[int, dict] = {}
    for chunk in client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED, stream=True):
        for piece in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
            made = calls.setdefault(piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            made["id"] += piece.id or ""
            made["function"]["name"] += piece.function.name or ""
            made["function"]["arguments"] += piece.function.arguments or ""
    return {"role": "assistant", "content": None, "tool_calls": list(calls.values())}


def main() -> None:
    client = OpenAI()
    messages: list[dict] = [
        {"role": "system", "content": "You are a weather assistant."},
        {"role": "user", "content": "What is the weather in Paris and in Oslo?"},
    ]
    said = streamed(client, messages)
    while said.get("tool_calls"):
        messages.append(said)
        for asked in said["tool_calls"]:
            city = json.loads(asked["function"]["arguments"])["city"]
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": call(asked["function"]["name"], city)})
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=OFFERED)
        said = answer.choices[0].message.model_dump(exclude_none=True)


with logfire.span("weather"):
    main()
logfire.shutdown()

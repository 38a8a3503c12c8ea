"""Traces as agents leave them in a Collector's file, made up and seeded: what importing is measured with.

Two mixes. ``agents``: each trace is a run of a few turns, a turn is a model call with 5 to 50 kB of messages (the history grows), up to
two tools of about 1 kB and four spans of a framework with 10 to 20 short attributes. ``small``: framework spans only, the hard case,
where what each span costs counts and not its bytes.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from spanreplay.spans import otlp_json, otlp_proto
from spanreplay.spans.record import KIND_CLIENT, KIND_INTERNAL, Resource, Scope, SpanRecord

Mix: TypeAlias = Literal["agents", "small"]

SPANS_A_BATCH: Final = 200
"""As the Collector's batch processor makes them, about."""
AT_ONCE: Final = 8

_START: Final = 1_764_000_000_000_000_000
_WORDS: Final = (
    "the agent asked a tool for what it needed and went on with the answer; if nothing was found it tried again with other words,"
    ' "quoted" from a page, naïve or not — def main(argv):\n    return {"a": [1, 2]}\n'
).split(" ")
_TEXT: Final = " ".join(random.Random(7).choices(_WORDS, k=200_000))
_RESOURCE: Final = Resource(
    attributes={
        "service.name": "support-agent",
        "service.version": "2026.11.3",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": "1.45.2",
        "host.name": "worker-7",
        "process.pid": 4711,
    }
)
_MODEL_SCOPE: Final = Scope(name="opentelemetry.instrumentation.openai_v2", version="2.4b0")
_FRAME_SCOPE: Final = Scope(name="app.framework", version="0.9.1")


def batches(count: int, *, mix: Mix = "agents", seed: int = 1, at_once: int = AT_ONCE) -> Iterator[list[SpanRecord]]:
    """``count`` batches, each of :data:`SPANS_A_BATCH` spans, made when asked for; the same for the same arguments.

    Args:
        count: how many.
        mix: what the runs are of.
        seed: of all that is left to chance.
        at_once: runs that go on at the same time, so that their spans lie between each other.
    """
    chance = random.Random(seed)
    running: list[Iterator[SpanRecord]] = []
    for _ in range(count):
        batch: list[SpanRecord] = []
        while len(batch) < SPANS_A_BATCH:
            while len(running) < at_once:
                running.append(_run(chance, mix))
            turn = chance.randrange(len(running))
            span = next(running[turn], None)
            if span is None:
                del running[turn]
            else:
                batch.append(span)
        yield batch


def conversation(turns: int, *, seed: int = 1) -> list[SpanRecord]:
    """The spans of one run of so many turns, each a model call with all that was said before and the tool that it asks for."""
    chance = random.Random(seed)
    trace, root, now = _id(chance, 16), _id(chance, 8), _START
    spans: list[SpanRecord] = []
    history: list[dict[str, Any]] = []
    for _ in range(turns):
        asked = {"role": "user", "parts": [{"type": "text", "content": _text(chance, chance.randrange(200, 1_500))}]}
        call, result, now = f"call_{_id(chance, 12)}", _text(chance, 300), now + 950_000_000
        answer, history = _answer(chance, [call]), [*history, asked]
        spans += _model(chance, trace, root, now, history, answer), _tool(chance, trace, root, now + 45_000_000, call, result)
        told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": call, "response": result}]}
        history = [*history, answer, told]
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    around = SpanRecord(
        trace_id=trace, span_id=root, name="invoke_agent helper", kind=KIND_INTERNAL, start_ns=_START, end_ns=now + 10**9, attributes=agent,
        resource=_RESOURCE, scope=_MODEL_SCOPE,
    )  # fmt: skip
    return [*spans, around]


def write_json(stream: BinaryIO, spans: Iterator[list[SpanRecord]]) -> int:
    """Writes a document a line and gives the number of bytes."""
    return sum(stream.write(json.dumps(otlp_json.encode(batch), separators=(",", ":")).encode() + b"\n") for batch in spans)


def write_proto(stream: BinaryIO, spans: Iterator[list[SpanRecord]]) -> int:
    """Writes messages, each behind its length, and gives the number of bytes."""
    size = 0
    for batch in spans:
        data = otlp_proto.encode(batch)
        size += stream.write(len(data).to_bytes(4, "big") + data)
    return size


def _text(chance: random.Random, size: int) -> str:
    start = chance.randrange(len(_TEXT) - size)
    return _TEXT[start : start + size]


def _id(chance: random.Random, size: int) -> str:
    return f"{chance.getrandbits(8 * size) or 1:0{2 * size}x}"


def _run(chance: random.Random, mix: Mix) -> Iterator[SpanRecord]:
    """The spans of one run, each when it ends: the inner ones first."""
    trace, root = _id(chance, 16), _id(chance, 8)
    now = _START + chance.randrange(10**12)
    begun = now
    history: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"type": "text", "content": _text(chance, chance.randrange(2_000, 8_000))}]}
    ]
    for turn in range(chance.randrange(3, 8)):
        chain, now = _id(chance, 8), now + 1_000_000
        turn_begun = now
        for _ in range(3 if mix == "agents" else 5):
            now += 2_000_000
            yield _frame(chance, trace, chain, now, turn)
        if mix == "agents":
            calls = [f"call_{_id(chance, 12)}" for _ in range(chance.randrange(3))]
            now += 900_000_000
            answer = _answer(chance, calls)
            yield _model(chance, trace, chain, now, history, answer)
            history = [*history, answer]
            for call in calls:
                now += 50_000_000
                result = _text(chance, chance.randrange(300, 1_500))
                yield _tool(chance, trace, chain, now, call, result)
                history = [*history, {"role": "tool", "parts": [{"type": "tool_call_response", "id": call, "response": result}]}]
            grown = {"role": "user", "parts": [{"type": "text", "content": _text(chance, chance.randrange(1_000, 6_000))}]}
            history = [*history, grown]
        yield _frame(chance, trace, root, now, turn, span_id=chain, begun=turn_begun)
    yield SpanRecord(
        trace_id=trace,
        span_id=root,
        name="invoke_agent helper",
        kind=KIND_INTERNAL,
        start_ns=begun,
        end_ns=now + 1_000,
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.conversation.id": _id(chance, 8)},
        resource=_RESOURCE,
        scope=_MODEL_SCOPE,
        flags=256,
    )


def _answer(chance: random.Random, calls: list[str]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": _text(chance, chance.randrange(200, 2_000))}]
    parts += [{"type": "tool_call", "id": call, "name": "search", "arguments": {"query": _text(chance, 80), "limit": 5}} for call in calls]
    return {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if calls else "stop"}


def _model(chance: random.Random, trace: str, parent: str, now: int, history: list[dict[str, Any]], answer: dict[str, Any]) -> SpanRecord:
    return SpanRecord(
        trace_id=trace,
        span_id=_id(chance, 8),
        parent_span_id=parent,
        name="chat gpt-4o-mini",
        kind=KIND_CLIENT,
        start_ns=now - 800_000_000,
        end_ns=now,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
            "gen_ai.response.id": f"chatcmpl-{_id(chance, 12)}",
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.max_tokens": 2048,
            "gen_ai.usage.input_tokens": chance.randrange(500, 12_000),
            "gen_ai.usage.output_tokens": chance.randrange(20, 900),
            "gen_ai.response.finish_reasons": (answer["finish_reason"],),
            "server.address": "api.openai.com",
            "server.port": 443,
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": _TEXT[:1_200]}]),
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": json.dumps([answer]),
        },
        resource=_RESOURCE,
        scope=_MODEL_SCOPE,
        flags=256,
    )


def _tool(chance: random.Random, trace: str, parent: str, now: int, call: str, result: str) -> SpanRecord:
    return SpanRecord(
        trace_id=trace,
        span_id=_id(chance, 8),
        parent_span_id=parent,
        name="execute_tool search",
        kind=KIND_INTERNAL,
        start_ns=now - 40_000_000,
        end_ns=now,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": json.dumps({"query": _text(chance, 80), "limit": 5}),
            "gen_ai.tool.call.result": json.dumps(result),
        },
        resource=_RESOURCE,
        scope=_MODEL_SCOPE,
        flags=256,
    )


def _frame(
    chance: random.Random, trace: str, parent: str, now: int, turn: int, *, span_id: str | None = None, begun: int | None = None
) -> SpanRecord:
    attributes: dict[str, Any] = {
        "app.step": turn,
        "app.node": chance.choice(("plan", "act", "observe", "answer")),
        "app.request.id": _id(chance, 8),
        "app.tenant": "north",
        "app.queue.depth": chance.randrange(40),
        "app.cached": chance.random() < 0.3,
        "app.score": round(chance.random(), 4),
        "code.function.name": "run_node",
        "code.file.path": "/srv/app/nodes.py",
        "code.line.number": chance.randrange(900),
    }
    for number in range(chance.randrange(11)):
        attributes[f"app.label.{number}"] = chance.choice(("alpha", "beta", "gamma", "delta"))
    return SpanRecord(
        trace_id=trace,
        span_id=span_id or _id(chance, 8),
        parent_span_id=parent,
        name=f"node {attributes['app.node']}",
        kind=KIND_INTERNAL,
        start_ns=begun if begun is not None else now - 1_500_000,
        end_ns=now,
        attributes=attributes,
        resource=_RESOURCE,
        scope=_FRAME_SCOPE,
        flags=256,
    )

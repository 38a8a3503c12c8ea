"""An answer in the shapes of the model APIs: OpenAI's chat completions, responses and embeddings, Anthropic's messages."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.model import Asked, Reply

_CREATED = 1767225600


def body(asked: "Asked", reply: "Reply") -> dict[str, Any]:
    """A whole response."""
    if asked.path.endswith("chat/completions"):
        return _chat(asked, reply)
    if asked.path.endswith("messages"):
        return _message(asked, reply)
    if asked.path.endswith("embeddings"):
        return _embeddings(asked)
    return _response(asked, reply)


def events(asked: "Asked", reply: "Reply") -> Iterator[bytes]:
    """A response in pieces, as server-sent events."""
    if asked.path.endswith("chat/completions"):
        for chunk in _chat_chunks(asked, reply):
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        yield b"data: [DONE]\n\n"
        return
    told = _message_events(asked, reply) if asked.path.endswith("messages") else _response_events(asked, reply)
    for event in told:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _calls(asked: "Asked", reply: "Reply") -> list[tuple[str, str, dict[str, Any]]]:
    return [(f"call_{asked.fresh}_{n}", name, dict(arguments)) for n, (name, arguments) in enumerate(reply.calls)]


def _pieces(reply: "Reply") -> list[str]:
    words = (reply.text or "").split(" ")
    return [word if number == 0 else f" {word}" for number, word in enumerate(words)]


def _chat(asked: "Asked", reply: "Reply") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in _calls(asked, reply)
        ]
    return {
        "id": f"chatcmpl-{asked.fresh}",
        "object": "chat.completion",
        "created": _CREATED + asked.number,
        "model": f"{asked.body['model']}-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28},
    }


def _chat_chunks(asked: "Asked", reply: "Reply") -> Iterator[dict[str, Any]]:
    whole = _chat(asked, reply)
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"], "model": whole["model"]}

    def chunk(delta: dict[str, Any], ended: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": ended, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    if reply.text is not None:
        for piece in _pieces(reply):
            yield chunk({"content": piece})
    for number, (call_id, name, arguments) in enumerate(_calls(asked, reply)):
        text = json.dumps(arguments)
        yield chunk(
            {"tool_calls": [{"index": number, "id": call_id, "type": "function", "function": {"name": name, "arguments": text[:3]}}]}
        )
        yield chunk({"tool_calls": [{"index": number, "function": {"arguments": text[3:]}}]})
    yield chunk({}, "tool_calls" if reply.calls else "stop")


def _message(asked: "Asked", reply: "Reply") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [] if reply.text is None else [{"type": "text", "text": reply.text}]
    blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in _calls(asked, reply)]
    return {
        "id": f"msg_{asked.fresh}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": blocks,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 21, "output_tokens": 7},
    }


def _message_events(asked: "Asked", reply: "Reply") -> Iterator[dict[str, Any]]:
    whole = _message(asked, reply)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in _pieces(reply)]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            text = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:3], text[3:])]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _response(asked: "Asked", reply: "Reply") -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if reply.text is not None:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        output.append({"id": f"msg_{asked.fresh}", "type": "message", "role": "assistant", "status": "completed", "content": content})
    output += [
        {"id": f"fc_{i}", "type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a), "status": "completed"}
        for i, n, a in _calls(asked, reply)
    ]
    usage = {"input_tokens": 21, "output_tokens": 7, "total_tokens": 28}
    details: dict[str, Any] = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{asked.fresh}",
        "object": "response",
        "created_at": _CREATED + asked.number,
        "status": "completed",
        "model": f"{asked.body['model']}-2026",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**usage, **details},
    }


def _response_events(asked: "Asked", reply: "Reply") -> Iterator[dict[str, Any]]:
    whole = _response(asked, reply)
    numbers = iter(range(1000))

    def event(kind: str, **rest: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "sequence_number": next(numbers), **rest}

    yield event("created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(whole["output"]):
        place: dict[str, Any] = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            yield event("output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []})
            empty = {"type": "output_text", "text": "", "annotations": []}
            yield event("content_part.added", **place, content_index=0, part=empty)
            for piece in _pieces(reply):
                yield event("output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
            yield event("output_text.done", **place, content_index=0, text=reply.text, logprobs=[])
            yield event("content_part.done", **place, content_index=0, part=item["content"][0])
        else:
            yield event("output_item.added", output_index=index, item={**item, "status": "in_progress", "arguments": ""})
            yield event("function_call_arguments.delta", **place, delta=item["arguments"])
            yield event("function_call_arguments.done", **place, arguments=item["arguments"], name=item["name"])
        yield event("output_item.done", output_index=index, item=item)
    yield event("completed", response=whole)


def _embeddings(asked: "Asked") -> dict[str, Any]:
    seed = int(asked.fresh, 16)
    vector = [(seed >> (8 * n) & 255) / 256 for n in range(4)]
    return {
        "object": "list",
        "model": asked.body["model"],
        "data": [{"object": "embedding", "index": 0, "embedding": vector}],
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }

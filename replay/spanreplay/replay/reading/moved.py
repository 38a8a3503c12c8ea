"""Content that was taken off a span and put into a log record beside it, brought back to where the dialects read it.

Amazon's distribution of OpenTelemetry (ADOT) does so, for CloudWatch: whatever a span holds of prompts and answers, by whosever names,
becomes the body ``{"input": {"messages": […]}, "output": {"messages": […]}}`` of a record with the span's ids. A message is a role and the
text of the attribute; where it was an event of one message (Strands), the content is what the event said, ``{"content": "<JSON>", "id"?}``
or ``{"message": "<JSON>", "finish_reason"}``. Roles and tool calls stay on the span. What the assistant said stands under ``output``, also
where the model was only reminded of it. Source: <https://github.com/aws-observability/aws-otel-python-instrumentation>,
``amazon/opentelemetry/distro/llo_handler.py``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.operations import operation_kind
from spanreplay.replay.reading.spoken import CHOICE, EVENT_NAME, MESSAGES
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import LogRecord, SpanRecord, Value

_ANSWERS: Final = ("output_messages", "completion")

Message = Mapping[str, Value]

_ALONE: Final = ("gen_ai.prompt", "gen_ai.completion")
"""Where a span has the one text of a side, if nothing says otherwise."""
_WHOLE: Final[Mapping[str, tuple[str, str]]] = {
    "openinference.span.kind": ("input.value", "output.value"),
    "traceloop.span.kind": ("traceloop.entity.input", "traceloop.entity.output"),
    "langsmith.span.kind": _ALONE,
}
"""By the attribute that tells who wrote the span: where it had its input and output as a whole. Their text is the first of its side."""
_MIME: Final = {True: "input.mime_type", False: "output.mime_type"}
"""What OpenInference writes beside them, which is not moved."""
_MESSAGE: Final = r"((llm\.(?:input|output)_messages|gen_ai\.(?:prompt|completion))\.(\d{1,9})\.(?:message\.)?)"
_ROLE: Final = re.compile(f"{_MESSAGE}role")
_PARTS: Final = re.compile(f"{_MESSAGE}(?:tool_calls|contents|function)\\.")


class _Content(NamedTuple):
    """The messages of both sides; empty where nothing of one was moved."""

    asked: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()


def _content(logs: Sequence[LogRecord]) -> _Content:
    """What the records of one span hold of its content; of several the latest counts, for each side."""
    asked: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    held = [(log, body) for log in logs if (body := _body(log)) is not None]
    if len(held) > 1:
        held.sort(key=lambda found: (found[0].time_ns or found[0].observed_ns, repr(found[1])))
    for _, body in held:
        asked, answered = _messages(body.get("input")) or asked, _messages(body.get("output")) or answered
    return _Content(asked, answered)


def _body(log: LogRecord) -> Mapping[str, Value] | None:
    body = log.body
    if isinstance(body, str) and body.lstrip()[:1] == "{" and '"messages"' in body:
        body, _ = decoded_json(body)
    return body if isinstance(body, Mapping) and ("input" in body or "output" in body) else None


def _messages(side: Value) -> tuple[Message, ...]:
    listed = side.get("messages") if isinstance(side, Mapping) else None
    return (
        tuple(item for item in listed if isinstance(item, Mapping)) if isinstance(listed, Sequence) and not isinstance(listed, str) else ()
    )


class Restored(NamedTuple):
    """What a span held before."""

    attributes: dict[str, Value]
    """By their names."""
    events: list[dict[str, Value]]
    """One for each message, with its name as ``event.name``, of a span that has no attributes for them."""


def restored(span: SpanRecord, logs: Sequence[LogRecord]) -> Restored:
    """What records beside a span hold of its content, as it was on the span; what the span has itself is left out.

    Args:
        span: the span.
        logs: the records written in it, in any order.
    """
    content = _content(logs)
    if not any(content):
        return Restored({}, [])
    found: dict[str, Value] = {}
    events: list[dict[str, Value]] = []
    if operation_kind(span) == "tool_call" and not _owner(span):
        found.update(_of_tool(content))
    else:
        for asking, side in ((True, content.asked), (False, content.answered)):
            texts = [text for message in side if not isinstance(text := message.get("content"), Mapping)]
            if len(texts) == len(side) and (_owner(span) or _numbered(span, asking)):
                found.update(_of_side(span, texts, asking))
            elif len(texts) == len(side) == 1:
                found[_ALONE[not asking]] = texts[0]
            else:
                events += map(_asked if asking else _answered, side)
    return Restored({name: value for name, value in found.items() if value is not None and span.attributes.get(name) is None}, events)


def _owner(span: SpanRecord) -> tuple[str, str] | None:
    return next((names for kind, names in _WHOLE.items() if kind in span.attributes), None)


def _asked(message: Message) -> dict[str, Value]:
    told, role = _told(message), message.get("role")
    if "message" in told:
        told.setdefault("content", told.pop("message"))
    return {"role": role, **told, EVENT_NAME: MESSAGES.get(role, MESSAGES["user"]) if isinstance(role, str) else MESSAGES["user"]}


def _answered(message: Message) -> dict[str, Value]:
    told = _told(message)
    if "content" in told:
        told.setdefault("message", told.pop("content"))
    return {**told, EVENT_NAME: CHOICE}


def _of_tool(content: _Content) -> Iterator[tuple[str, Value]]:
    given, made = (_told(side[-1]) if side else {} for side in (content.asked, content.answered))
    yield a.GEN_AI_TOOL_CALL_ARGUMENTS, given.get("content", given.get("message"))
    yield a.GEN_AI_TOOL_CALL_RESULT, made.get("message", made.get("content"))
    yield a.GEN_AI_TOOL_CALL_ID, given.get("id", made.get("id"))


def _told(message: Message) -> dict[str, Value]:
    content = message.get("content")
    return dict(content) if isinstance(content, Mapping) else {} if content is None else {"content": content}


def _of_side(span: SpanRecord, texts: Sequence[Value], asking: bool) -> Iterator[tuple[str, Value]]:
    """Each text with the name of the attribute that it was: first the whole side, then its messages by number."""
    numbered = _numbered(span, asking)
    spoken = [name for name, other in numbered if not other]
    owner = _owner(span)
    whole = owner[not asking] if owner is not None else None
    if whole is not None and whole not in span.attributes and (len(texts) > len(spoken) or _MIME[asking] in span.attributes):
        yield whole, texts[0]
        texts = texts[1:]
    for names in ([name for name, _ in numbered], spoken):
        if len(texts) == len(names):
            yield from zip(names, texts, strict=True)
            return


def _numbered(span: SpanRecord, asking: bool) -> list[tuple[str, bool]]:
    """The missing contents of messages on one side, in the order in which they were moved, and whether a message has other parts.

    Beside tool calls, or parts by number, there need be no content at all.
    """
    found: list[tuple[str, int, str]] = []
    parted: set[tuple[str, int]] = set()
    for name, role in span.attributes.items():
        if (more := _PARTS.match(name)) is not None:
            parted.add((more.group(2), int(more.group(3))))
        elif (match := _ROLE.fullmatch(name)) is not None:
            stem, prefix, number = match.groups()
            asked = role in ("system", "user") or (role != "assistant" and not prefix.endswith(_ANSWERS))
            if asked is asking and f"{stem}content" not in span.attributes:
                found.append((prefix, int(number), f"{stem}content"))
    return [(name, (prefix, number) in parted) for prefix, number, name in sorted(found)]

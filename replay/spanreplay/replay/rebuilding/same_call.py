"""Whether two spans that several instrumentations wrote are one call: the evidence, pair by pair.

Two instrumentations name models and tools differently, render arguments differently, and either may lack what the other has. So what is
compared is what only one call can have (a response id, the ids of the tool calls that an answer asks for, its text), and a difference
counts only where both say the same kind of thing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from spanreplay.boundary.call import OutcomeName
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reading.naming import same_model, same_tool
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.tree import SpanKey

FAILED: Final[frozenset[OutcomeName]] = frozenset({"error", "timeout", "cancelled", "interrupted"})
"""Outcomes of a call that gave no answer."""
_UNNAMED: Final = re.compile(r"[\W_]+")
_SHORTEST_NAME: Final = 3
_TELLING: Final = 32
"""Characters of an answer: a shorter one ("yes") may be given twice."""


class Recorder(NamedTuple):
    """Who wrote a span: one instrumentation writes a call once."""

    dialect: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A span that was read as a step."""

    key: SpanKey
    draft: StepDraft
    dialect: str
    scope: str
    start_ns: int
    end_ns: int | None
    name: str = ""
    """Of the span."""
    serves: bool = False
    """The span is the server's side of a call."""
    recorders: frozenset[Recorder] = frozenset()
    """Who wrote it and the spans that were found to be the same call."""


def apart(one: Candidate, other: Candidate) -> bool:
    """Whether two spans are from different instrumentations, or from the two sides of a connection."""
    return one.recorders.isdisjoint(other.recorders) or one.serves != other.serves


def meet(one: Candidate, other: Candidate) -> bool:
    """Whether two spans ran at the same time, for more than a moment if they lasted for more than one."""
    ends = (NEVER if c.end_ns is None else c.end_ns for c in (one, other))
    return one.start_ns == other.start_ns or max(one.start_ns, other.start_ns) < min(ends)


def lasts_over(outer: Candidate, inner: Candidate) -> bool:
    """Whether one span began no later than another, and ended no earlier."""
    return outer.start_ns <= inner.start_ns and (outer.end_ns is None or (inner.end_ns is not None and inner.end_ns <= outer.end_ns))


# ---- models ------------------------------------------------------------------------------------------------------


def same_answer(one: StepDraft, other: StepDraft) -> bool | None:
    """Whether two model calls got the same answer; ``None`` where nothing tells."""
    if one.response_id is not None and other.response_id is not None:
        return one.response_id == other.response_id
    asked, also = asked_ids(one), asked_ids(other)
    if asked and also:
        return True if asked == also else False if asked.isdisjoint(also) else None
    words = said(one.output)
    return True if sum(map(len, words)) >= _TELLING and words == said(other.output) else None


def asked_ids(draft: StepDraft) -> frozenset[str]:
    """The ids of the tool calls that a model's answer asks for."""
    return frozenset(asked.call_id for asked in asked_for(draft.output) if asked.call_id is not None)


def said(view: Json) -> list[str]:
    """The texts in the messages of a request or an answer."""
    messages = view.get("messages") if isinstance(view, dict) else None
    found: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        found += [
            part["content"]
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("content"), str) and part["content"]
        ]
    return found


def models_agree(one: StepDraft, other: StepDraft) -> bool:
    """Whether two model calls may be calls of the same model."""
    ours, theirs = _models(one), _models(other)
    return not ours or not theirs or any(same_model(a, b) for a in ours for b in theirs)


def _models(draft: StepDraft) -> set[str]:
    model: Any = draft.versions.get("model")
    names = (model.get("request"), model.get("response")) if isinstance(model, Mapping) else ()
    return {name.lower() for name in names if isinstance(name, str) and name}


# ---- tools and agents --------------------------------------------------------------------------------------------


def last_name(tool: str) -> str:
    """A part of a tool's name that all its names end with."""
    return re.split(r"[.:/_-]", tool.rstrip(".:/_-"))[-1] or tool


def arguments_conflict(one: Json, other: Json) -> bool:
    """Whether two inputs say the same kind of thing and not the same: a key of both with another value, or other values that have none.

    A key that only one of them has is no conflict: instrumentations write defaults, or leave them out.
    """
    ours, theirs = arguments(one), arguments(other)
    if ours is None or theirs is None or type(ours) is not type(theirs) or ours == theirs:
        return False
    if isinstance(ours, dict):
        shared = ours.keys() & theirs.keys()
        ours, theirs = ({name: value[name] for name in shared} for value in (ours, theirs))
    return canonical_json(ours) != canonical_json(theirs)


def arguments(view: Json) -> Json:
    """The arguments in the input of a tool call, decoded; ``None`` where they are not known."""
    value = view.get("arguments") if isinstance(view, dict) else None
    return decoded_json(value)[0] if isinstance(value, str) else value


def calls_agree(one: StepDraft, other: StepDraft) -> bool:
    """Whether two spans of a tool may be one call: the name, the call id where both have one, the arguments where they can be compared."""
    if not same_tool(one.name, other.name):
        return False
    if one.call_id is not None and other.call_id is not None:
        return one.call_id == other.call_id
    return not arguments_conflict(one.input, other.input)


def same_agent(one: StepDraft, other: StepDraft) -> bool:
    """Whether two spans of an agent have the same name of one."""
    ours, theirs = bare_name(one.agent or one.name), bare_name(other.agent or other.name)
    return bool(ours) and ours == theirs


def same_other(outer: Candidate, inner: Candidate) -> bool:
    """Whether two instrumentations, or two sides, recorded one agent, or one call of the other kinds."""
    if not apart(outer, inner):
        return False
    if outer.draft.kind == "agent":
        return same_agent(outer.draft, inner.draft) and not (outer.draft.root and inner.draft.root)
    return outer.draft.name == inner.draft.name and not arguments_conflict(outer.draft.input, inner.draft.input)


def bare_name(name: str | None) -> str:
    """A name without case and punctuation."""
    return _UNNAMED.sub("", (name or "").casefold())


def mentions(text: str | None, name: str | None) -> bool:
    """Whether a text such as the name of a tool (``ask_math_specialist``) names something (``math_specialist``)."""
    bare = bare_name(name)
    return len(bare) >= _SHORTEST_NAME and bare in bare_name(text)


def names_in(value: Json, limit: int = 32) -> Sequence[str]:
    """The texts directly in some arguments, the first ``limit`` of them."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else (value,)
    return [item for item, _ in zip(values, range(limit), strict=False) if isinstance(item, str)]

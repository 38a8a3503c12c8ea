"""Sub-agents whose spans are not inside the tool call that ran them.

Some instrumentations hang the spans of a sub-agent beside the tool call, or under the top agent, because the context was lost or every
agent is started from the runner. Where the tree says nothing, time does: what ran while one tool call ran, and whose name is that of the
tool or of one of its arguments, or that was asked what the tool was, ran inside it. Where that fits several calls, or none by name, nothing
is joined, and the step says so.
"""

import heapq
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanreplay.replay.model import Reason
from spanreplay.replay.reasons import BESIDE_TOOL
from spanreplay.replay.rebuilding.folded import Folded
from spanreplay.replay.rebuilding.order import NEVER
from spanreplay.replay.rebuilding.same_call import Candidate, arguments, bare_name, mentions, names_in
from spanreplay.replay.rebuilding.tree import SpanKey

MOST: Final = 64
"""Tool calls at one time, beyond which nothing is looked for."""
_LONGEST_NAME: Final = 200


@dataclass(slots=True)
class Placing:
    """Which steps ran inside which tool calls, though the tree does not say so."""

    inside: dict[SpanKey, SpanKey] = field(default_factory=dict)
    reasons: dict[SpanKey, Reason] = field(default_factory=dict)
    """Why a step was joined, or was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """A tool call, and what can be told from it about what it ran."""

    step: Candidate
    texts: frozenset[str]
    """Among its arguments."""
    names: frozenset[str]
    """Bare: the texts that can be names."""
    hollow: bool
    """The tree has nothing inside it."""


def placed(folded: Folded, root: SpanKey | None, top_agent: str | None) -> Placing:
    """Finds the tool calls that ran the sub-agents of a run.

    Args:
        folded: the steps.
        root: the root of the run, which is no step.
        top_agent: the name of the run's agent.
    """
    placing = Placing()
    around = {step.key: outer for step in folded.steps.values() if (outer := folded.outer(step.key)) is not None and outer != root}
    if not any(_is_adrift(step, folded.steps.get(around.get(step.key, step.key)), top_agent) for step in folded.steps.values()):
        return placing
    firsts: dict[SpanKey, Candidate] = {}
    for step in folded.steps.values():
        if step.draft.kind == "model_call" and step.key in around:
            firsts.setdefault(around[step.key], step)
    filled = set(around.values())
    running: dict[SpanKey, _Tool] = {}
    ends: list[tuple[int, SpanKey]] = []
    for step in sorted(folded.steps.values(), key=_tools_first):
        while ends and ends[0][0] < step.start_ns:
            running.pop(heapq.heappop(ends)[1], None)
        over_it = folded.steps[around[step.key]] if step.key in around else None
        if running and step.key != root and _is_adrift(step, over_it, top_agent):
            if len(running) <= MOST:
                over = [tool for tool in running.values() if _may_hold(folded, tool.step, step, over_it)]
                _place(placing, folded, step, over, _asked(step, firsts.get(step.key)))
            elif step.draft.kind == "agent":
                detail = f"ran while more than {MOST} tool calls ran; not looked for in them"
                placing.reasons[step.key] = Reason(code=BESIDE_TOOL, detail=detail)
        if step.draft.kind == "tool_call":
            running[step.key] = _tool(step, filled)
            heapq.heappush(ends, (_end(step), step.key))
    return placing


def _tool(step: Candidate, filled: Container[SpanKey]) -> _Tool:
    texts = frozenset(names_in(arguments(step.draft.input)))
    names = frozenset(bare_name(text) for text in texts if len(text) < _LONGEST_NAME)
    return _Tool(step=step, texts=texts, names=names, hollow=step.key not in filled)


def _tools_first(step: Candidate) -> tuple[int, bool, SpanKey]:
    return step.start_ns, step.draft.kind != "tool_call", step.key


def _end(step: Candidate) -> int:
    return NEVER if step.end_ns is None else step.end_ns


def _is_adrift(step: Candidate, around: Candidate | None, top_agent: str | None) -> bool:
    """Whether a step is directly under an agent, or under nothing, and may be (of) another agent."""
    if step.draft.path is not None or (around is not None and around.draft.kind != "agent"):
        return False
    if step.draft.kind == "agent":
        return True
    outer = top_agent if around is None else around.draft.agent
    return step.draft.agent is not None and bare_name(step.draft.agent) != bare_name(outer)


def _may_hold(folded: Folded, tool: Candidate, step: Candidate, around: Candidate | None) -> bool:
    """Whether the tree lets a step be inside a tool call: where the step hangs, the tool call is, or below."""
    place = folded.places[tool.key]
    return not folded.places[step.key].holds(place) and (around is None or folded.places[around.key].holds(place))


def _place(placing: Placing, folded: Folded, step: Candidate, over: Sequence[_Tool], asked: frozenset[str]) -> None:
    agent, name = step.draft.kind == "agent", step.draft.agent
    within = [tool for tool in over if _end(step) <= _end(tool.step)]
    named = [tool for tool in over if name is not None and (mentions(tool.step.draft.name, name) or bare_name(name) in tool.names)]
    told = [tool for tool in over if agent and not asked.isdisjoint(tool.texts)]
    fits = (
        [tool for tool in named if tool in told]
        or _innermost(folded, [tool for tool in named if tool in within])
        or _innermost(folded, named)
        or _innermost(folded, told)
    )
    hollow = [tool for tool in within if tool.hollow] if agent else []
    if not fits and name is None:
        fits = hollow
    if len(fits) == 1:
        tool = fits[0].step
        placing.inside[step.key] = tool.key
        why = "was asked the same" if fits[0] in told else "is named in it" if fits[0] in named else "has no other to belong to"
        detail = f"ran inside the tool call {tool.draft.name} (span {tool.key.span_id}) by time, and {why}; the tree has it elsewhere"
    elif fits or hollow:
        tools = ", ".join(f"{tool.step.draft.name} (span {tool.step.key.span_id})" for tool in (fits or hollow)[:4])
        why = "each of them may have run it" if len(fits) > 1 else "nothing says that it ran inside"
        detail = f"ran while {tools} ran, and {why}; left where the tree has it"
    else:
        return
    placing.reasons[step.key] = Reason(code=BESIDE_TOOL, detail=detail)


def _asked(step: Candidate, first: Candidate | None) -> frozenset[str]:
    """What the user says to an agent, by its own span and by its first model call."""
    found: set[str] = set()
    for view in (step.draft.input, first.draft.input if first is not None else None):
        messages = view.get("messages") if isinstance(view, dict) else None
        for message in messages[:8] if isinstance(messages, list) else ():
            if isinstance(message, dict) and message.get("role") == "user":
                parts = message.get("parts")
                found.update(
                    part["content"]
                    for part in (parts if isinstance(parts, list) else ())
                    if isinstance(part, dict) and isinstance(part.get("content"), str)
                )
    return frozenset(found)


def _innermost(folded: Folded, tools: Sequence[_Tool]) -> list[_Tool]:
    """Those of some tool calls that have no other of them inside."""
    places = [folded.places[tool.step.key] for tool in tools]
    return [tool for tool, place in zip(tools, places, strict=True) if not any(place.holds(o) for o in places if o is not place)]


def without_loops(parents: Mapping[SpanKey, SpanKey], added: Mapping[SpanKey, SpanKey]) -> Mapping[SpanKey, SpanKey]:
    """Parents with those that were added; with none of these where they put something inside itself."""
    if not added:
        return parents
    joined = {**parents, **added}
    settled: set[SpanKey] = set()
    for start in added:
        walked: set[SpanKey] = set()
        here: SpanKey | None = start
        while here is not None and here not in settled:
            if here in walked:
                return parents
            walked.add(here)
            here = joined.get(here)
        settled |= walked
    return joined

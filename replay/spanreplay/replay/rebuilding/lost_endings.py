"""Calls of a model that an agent's own span shows, or what ran for it, and that no span is of.

Four things prove one. An agent, or one inside a tool, answered after tools whose results no model was told, and nothing here gave most of
that answer, or it used more tokens than the calls in it. An agent used tokens, and no call of a model is inside it. An agent that ran
several times has none inside one of them, and what it answered then, no model gave. A call or a hand-off ran under an id that no answer
here asked by, while others here ran under the ids by which they were asked, or the answers have no ids. That an agent merely has no model
in it proves nothing: some are code.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from spanreplay.replay.model import Json, Reason, Run, Step
from spanreplay.replay.reading.asking import plain_value
from spanreplay.replay.reading.fields import decoded_json
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.reasons import ANSWER_WITHOUT_SPAN
from spanreplay.replay.rebuilding.same_call import FAILED
from spanreplay.replay.rebuilding.told import told_of

RAN: Final = frozenset({"tool_call", "handoff"})
"""Kinds of steps that run because an answer asked for them."""
_TOKENS: Final = ("output_tokens", "completion_tokens")
_ASKED: Final = ("input_tokens", "prompt_tokens")
LEAST: Final = 8
"""Characters of an answer that is no chance where another text holds it."""
_TOLD: Final = 4
"""Characters of a text that an answer may be made of."""
_TEXTS: Final = 10_000
_TWO: Final = 2
ENDED: Final = frozenset({"ok", "error", "tool_error", "timeout", "malformed"})
"""How a call ended whose result a model is told; one that waits for somebody ends the run."""
_MARKS: Final = " \n.,;:!?'\""
_FRAME: Final = frozenset({"role", "type", "id", "finish_reason"})
"""Members of messages and parts that say nothing."""


def lost_endings(run: Run, models: Sequence[Step], ids: frozenset[str]) -> Iterator[tuple[Step, str]]:
    """The steps that show such a call, each with what it shows.

    Args:
        run: with its steps.
        models: its model calls, all with their answers.
        ids: of all the calls that an answer of a model, in any run that is known, asks for.
    """
    agents = [step for step in run.steps if step.kind == "agent" and step.ended_ns is not None and step.outcome == "ok"]
    inside = {agent.seq: _inside(run, agent) for agent in agents}
    for agent in agents:
        yield from _silent(agent, inside[agent.seq], [(other, inside[other.seq]) for other in agents if other.name == agent.name], models)
        yield from _unread(agent, _answer(agent.output, ids), inside[agent.seq])
    if run.outcome == "ok":
        yield from _unread(None, _answer(run.output, ids), run.steps)
    for tool, ran in _agents_in_tools(run):
        yield from _unread(tool, _said_by_tool(tool.output), ran)
    yield from _unasked(run, models, ids)


def _inside(run: Run, agent: Step) -> list[Step]:
    """What ran while an agent did."""
    end = agent.ended_ns or 0
    return [step for step in run.steps if step is not agent and agent.started_ns <= step.started_ns <= end]


def _asks(inside: Sequence[Step]) -> bool:
    return any(step.kind == "model_call" for step in inside)


def _silent(
    agent: Step, inside: Sequence[Step], named: Sequence[tuple[Step, Sequence[Step]]], models: Sequence[Step]
) -> Iterator[tuple[Step, str]]:
    """An agent in which no model was asked, as far as its span or its other runs show that one was."""
    if _asks(inside) or any(step.kind == "agent" for step in inside):
        return
    tokens = max((agent.usage.get(name, 0) for name in _TOKENS), default=0)
    if tokens:
        yield agent, f"the agent {agent.name} used {tokens} tokens for its answers, and no call of a model is inside it"
    elif len(named) > _TWO and all(_asks(ran) for other, ran in named if other is not agent):
        asked = {one.call_id for one in asked_for(agent.output) if one.call_id is not None}
        known = {one.call_id for model in models for one in asked_for(model.output)}
        answer = "" if asked else _answer(agent.output, known)
        given = any(answer.strip(_MARKS) in text for step in (*models, *inside) for text in texts(step.output))
        if asked - known or (answer and not given):
            yield agent, f"the agent {agent.name} asked a model each time but at step {agent.seq}, where it answered too"


def _agents_in_tools(run: Run) -> Iterator[tuple[Step, list[Step]]]:
    """The calls of tools inside which models were asked, each with all that is inside it."""
    inside: dict[int, list[Step]] = {}
    steps = {step.seq: step for step in run.steps}
    for step in run.steps:
        seen: set[int] = set()
        around = steps.get(step.parent_seq or 0)
        while around is not None and around.seq not in seen:
            seen.add(around.seq)
            if around.kind == "tool_call":
                inside.setdefault(around.seq, []).append(step)
            around = steps.get(around.parent_seq or 0)
    yield from ((steps[seq], ran) for seq, ran in inside.items() if steps[seq].outcome == "ok" and _asks(ran))


def _said_by_tool(output: Json) -> str:
    """The text that a tool gave; empty where it is none, or too short to tell."""
    given = plain_value(output.get("result")) if isinstance(output, dict) else None
    return found if isinstance(given, str) and len(found := given.strip()) >= LEAST else ""


def _unread(agent: Step | None, answer: str, inside: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """An answer that comes after results which no model was told, and that is not made of what is here."""
    own = list(outside_tools(agent, inside))
    last = max((step for step in own if step.kind == "model_call"), key=lambda step: step.seq, default=None)
    if last is None or last.outcome in FAILED:
        return
    ran = [step for step in own if step.requested_by == last.seq and step.kind in RAN]
    if not ran or any(step not in ran for step in own if step.seq > last.seq) or any(step.outcome not in ENDED for step in ran):
        return
    if answer and not made_of(answer, [text for step in inside for view in (step.input, step.output) for text in texts(view)]):
        yield ran[-1], f"what came of step {ran[-1].seq} was told to no model, and yet an answer followed that nothing here gave"
    elif answer and agent is not None and (more := _used_more(agent, inside)):
        name, count, here = more
        detail = f"what came of step {ran[-1].seq} was told to no model, and the agent {agent.name} used {count} {name}"
        yield ran[-1], f"{detail} of which its calls here are {here}"


def _used_more(agent: Step, inside: Sequence[Step]) -> tuple[str, int, int] | None:
    """Tokens that an agent counted beyond those of all that ran in it, both of what was asked and of what was answered."""
    found: tuple[str, int, int] | None = None
    for names in (_ASKED, _TOKENS):
        counted = max((agent.usage.get(name, 0) for name in names), default=0)
        here = sum(max((step.usage.get(name, 0) for name in names), default=0) for step in inside if step.kind == "model_call")
        if not here or counted <= here:
            return None
        found = found or (names[0].replace("_", " "), counted, here)
    return found


def outside_tools(agent: Step | None, inside: Sequence[Step]) -> Iterator[Step]:
    """What ran for an agent itself, and not for another one inside a tool."""
    steps = {step.seq: step for step in inside}
    within: set[int] = set()
    for step in sorted(inside, key=lambda step: step.seq):
        around = steps.get(step.parent_seq or 0)
        if around is not None and around is not agent and (around.kind == "tool_call" or around.seq in within):
            within.add(step.seq)
        else:
            yield step


def made_of(answer: str, given: Iterable[str]) -> bool:
    """Whether an answer stands in one of some texts, or at least half of it is theirs."""
    left = answer
    for text in sorted({text.strip(_MARKS) for text in given}, key=len, reverse=True):
        if answer.strip(_MARKS) in text:
            return True
        if len(text) >= _TOLD:
            left = left.replace(text, "")
    return len(left) * 2 <= len(answer)


def _answer(output: Json, known: Collection[str | None]) -> str:
    """The text that an output ends with, as an assistant's message; empty where it is none, or asks for a call that is not known."""
    messages = output.get("messages") if isinstance(output, dict) else None
    message = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return ""
    if any(one.call_id not in known for one in asked_for({"messages": [message]})):
        return ""
    parts = message.get("parts")
    said = [part.get("content") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    found = "".join(text for text in said if isinstance(text, str)).strip()
    return found if len(found) >= LEAST else ""


def texts(view: Json) -> Iterator[str]:
    """What is said in a view, given to a call, or came of one: each text, without the space around it, up to a limit."""
    waiting = [view.get("messages"), view.get("arguments"), view.get("result")] if isinstance(view, dict) else []
    for _ in range(_TEXTS):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            yield item.strip()
            within = decoded_json(item)[0] if item[:1] in ("{", "[") else None
            waiting += [within] if isinstance(within, dict | list) else []
        elif isinstance(item, dict):
            waiting.extend(value for name, value in item.items() if name not in _FRAME)
        elif isinstance(item, list):
            waiting.extend(item)


def _unasked(run: Run, models: Sequence[Step], ids: frozenset[str]) -> Iterator[tuple[Step, str]]:
    """What ran under an id that no answer gave; nothing where ids are not those of answers, or the id is told as said before."""
    ran = [step for step in run.steps if step.kind in RAN and step.call_id is not None]
    if not any(step.call_id in ids or (not ids and step.requested_by is not None) for step in ran):
        return
    told = {call_id for view in (run.input, *(step.input for step in models)) for call_id in told_of(view)}
    first = models[0].seq if models else 0
    for step in ran:
        if (
            step.requested_by is None
            and step.call_id not in ids
            and step.call_id not in told
            and (step.kind == "handoff" or step.seq > first)
        ):
            yield step, f"step {step.seq} ran under the id {step.call_id}, by which no answer of a model here asks"


def lost_ending(step: Step, detail: str) -> Reason:
    """The reason that a step is not whole."""
    return Reason(code=ANSWER_WITHOUT_SPAN, detail=f"{detail}: the call of the model is not recorded", step=step.seq)

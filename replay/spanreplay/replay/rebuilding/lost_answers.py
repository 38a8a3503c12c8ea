"""Answers of a model that a run's own requests show, and that no span gave: the span of that call is missing.

Two things prove it. A later request of a conversation goes on from an earlier one, and between the two stand more answers than that of the
earlier one: an answer in no span there was given by a call in no span. And a tool ran that no answer here asked for, while the next
request, or the one around it, tells that an answer did: by a call, by its result, or in words that name the tool before its result. What
a conversation begins with is no proof: examples, and what was said before the run, are nobody's lost call.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Reason, Run, Step
from spanreplay.replay.reading.messages import Asked, asked_for
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.reading.python_text import python_value
from spanreplay.replay.reasons import ANSWER_WITHOUT_SPAN
from spanreplay.replay.rebuilding.histories import histories
from spanreplay.replay.rebuilding.lost_endings import RAN, lost_ending, lost_endings
from spanreplay.replay.rebuilding.results import form
from spanreplay.replay.rebuilding.same_call import FAILED, arguments_conflict, mentions
from spanreplay.replay.rebuilding.told import Told, told_of
from spanreplay.replay.rebuilding.unnamed_tools import unnamed_tools

_COMPARED: Final = 8
"""Earlier requests of a conversation that a later one may go on from."""
_LEAST: Final = 8
"""Characters of a result by which alone a call is told from others."""
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
"""Roles of messages that may change from request to request."""


@dataclass(slots=True)
class Given:
    """What the model calls of some runs answered."""

    asked: set[str] = field(default_factory=set)
    """Ids of the calls that a model asked for."""
    ids: set[str] = field(default_factory=set)
    calls: set[tuple[str, str]] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Adds the answers of a run, and all that others of its steps gave: an agent inside a tool speaks too."""
        asking = {step.parent_seq for step in run.steps if step.kind == "model_call"}
        for step in run.steps:
            ids = {asked.call_id for asked in asked_for(step.output) if asked.call_id is not None}
            if step.kind == "model_call":
                self.asked |= ids
            if step.kind != "agent" or step.seq not in asking:  # such an agent repeats what its models asked for
                self.ids |= ids
            self.calls.update(map(_call, asked_for(step.output)))
            self.texts += _texts(step.output)

    def has(self, answer: Sequence[Json], *, by_id: bool) -> bool:
        """Whether any part of an answer was given, or nothing of it can be looked for."""
        asked = list(asked_for({"messages": list(answer)}))
        said = _texts({"messages": list(answer)})
        if any(one.call_id in self.ids or (not (by_id and one.call_id) and _call(one) in self.calls) for one in asked):
            return True
        if any(text in given or given in text for text in said for given in self.texts):
            return True
        return not asked and not said


def lost_answers(run: Run, given: Given) -> Iterator[tuple[Step, Reason]]:
    """The steps whose messages have an answer that no span gave.

    Nothing is told of a run of our own, whose losses are counted, nor of one with answers that are not here whole: it may be one of those.

    Args:
        run: with its steps.
        given: by all the runs that are known.
    """
    models = [step for step in run.steps if step.kind == "model_call"]
    if any(step.path is not None for step in run.steps) or not all(map(is_told, models)):
        return
    found: dict[int, int] = {}
    places = {step.seq: place for place, step in enumerate(models)}
    for calls in histories(models).values():
        told: set[str] = set()
        for place, step in enumerate(calls):
            before = calls[max(0, place - _COMPARED) : place]
            others = () if before else models[max(0, places[step.seq] - _COMPARED) : places[step.seq]]
            for answer in _between(before or others, step, given, handed=bool(others)):
                text = canonical_json(answer)
                if text not in told:
                    told.add(text)
                    found[step.seq] = found.get(step.seq, 0) + 1
    for step in (*_of_unasked(run, models, given), *_of_inside(run, models, given)):
        found.setdefault(step.seq, 1)
    for step, detail in chain(lost_endings(run, models, frozenset(given.asked)), unnamed_tools(run, models)):
        if not found:
            yield step, lost_ending(step, detail)
    for step in models:
        if count := found.get(step.seq):
            yield step, lost_answer(step, count)


def lost_answer(step: Step, count: int) -> Reason:
    """The reason that a step is not whole whose messages have answers that no span gave."""
    what = "1 answer of a model is" if count == 1 else f"{count} answers of a model are"
    detail = f"{what} in the messages of step {step.seq} and in no span: the call that gave it is not recorded"
    return Reason(code=ANSWER_WITHOUT_SPAN, detail=detail, step=step.seq)


def is_told(step: Step) -> bool:
    """Whether the answer of a model call is here whole, or it had none."""
    return (step.output is not None or step.outcome in FAILED) and step.grade != "incomplete"


def _between(earlier: Sequence[Step], later: Step, given: Given, *, handed: bool = False) -> Iterator[list[Json]]:
    """The answers in a request that no span gave, after the one to the nearest request that it goes on from, and before the last word.

    Args:
        earlier: requests that it may go on from, in order.
        later: the request.
        given: what was answered here.
        handed: the earlier ones are of other agents: it goes on from one of them only where it has an answer with calls that was given.
    """
    messages = _turns(later.input)
    begun = (len(turns) for step in reversed(earlier) if (turns := _turns(step.input)) and messages[: len(turns)] == turns)
    size = next(begun, None)
    if size is None:
        return
    more = messages[size:]
    groups = [(role == "assistant", list(group)) for role, group in groupby(more, key=lambda message: message.get("role"))]
    if not groups or not groups[0][0]:
        return
    answered = list(asked_for({"messages": groups[0][1]}))
    asked = [one.call_id for one in answered if one.call_id is not None]
    by_id = bool(asked) and given.ids.issuperset(asked)
    if handed and not by_id and (not answered or not given.calls.issuperset(map(_call, answered))):
        return
    for is_answer, group in groups[1:-1]:
        if is_answer and not given.has(group, by_id=by_id):
            yield group


def _of_unasked(run: Run, models: Sequence[Step], given: Given) -> Iterator[Step]:
    """The requests after a tool that ran and that no answer asked for, which tell that one did, where none before the tool tells it."""
    before = None if _derived(run) else run.input
    handed = set(_handed(run))
    yield from told_of_unasked(run.steps, [step for step in run.steps if step.kind in RAN or step.seq in handed], models, given, before)


def _of_inside(run: Run, models: Sequence[Step], given: Given) -> Iterator[Step]:
    """The model calls that were told what came of calls inside them, by ids that nobody here asked by: several calls wrote to one span."""
    inside: dict[int | None, set[str]] = {}
    for step in run.steps:
        if step.kind in RAN and step.call_id is not None and step.call_id not in given.asked:
            inside.setdefault(step.parent_seq, set()).add(step.call_id)
    for step in models:
        ran = inside.get(step.seq)
        if ran and any(told.response is not None for call_id, told in told_of(step.input).items() if call_id in ran):
            yield step


def told_of_unasked(
    steps: Sequence[Step], ran: Sequence[Step], models: Sequence[Step], given: Given, before: Json = None
) -> Iterator[Step]:
    """The model calls of which the messages tell that one asked for what ran, and no answer did.

    Args:
        steps: with a ``seq`` of their own each, in order.
        ran: those that run because an answer asks for them.
        models: those of models.
        given: what was answered here.
        before: what had been said before the first of them.
    """
    known: set[str] = set(told_of(before))
    said = set(_texts(before))
    coming = iter(models)
    step = next(coming, None)
    waiting: list[Step] = []
    parents = {step.seq: step.parent_seq for step in steps}
    for tool in (*ran, None):
        while step is not None and (tool is None or step.seq < tool.seq):
            told = told_of(step.input)
            new = {call_id: call for call_id, call in told.items() if call_id not in known and call_id not in given.ids}
            around = _around(step, parents)
            running = [one for one in waiting if one.kind == "tool_call" and one.seq in around]
            over = [one for one in waiting if one not in running]
            if (
                any(_is_told_as(one, call_id, call) for one in over for call_id, call in new.items())
                or (over and _is_said(over, step, said, given))
                or any(_is_written(one, step, models, given, before) for one in over)
            ):
                yield step
            waiting = running
            known.update(told)
            step = next(coming, None)
        if tool is not None and tool.requested_by is None:
            waiting.append(tool)


def _is_said(tools: Sequence[Step], step: Step, said: set[str], given: Given) -> bool:
    """Whether a request has an answer in words, which nobody gave, that names one of some tools, and after it what the tool gave."""
    turns = _turns(step.input)
    place = 0
    for role, group in groupby(turns, key=lambda message: message.get("role")):
        answer: list[Json] = list(group)
        place += len(answer)
        texts = [text for text in _texts({"messages": answer}) if text not in said] if role == "assistant" else []
        named = [tool for tool in tools if any(mentions(text, tool.name) for text in texts)]
        if not named or given.has(answer, by_id=False):
            continue
        after = _texts({"messages": list(turns[place:])})
        results = (result.strip() for tool in named if isinstance(result := _result(tool), str))
        if any(len(result) >= _LEAST and any(result in text for text in after) for result in results):
            return True
    return False


def _is_written(tool: Step, step: Step, models: Sequence[Step], given: Given, before: Json) -> bool:
    """Whether a request has the id of a call somewhere in its text, which no answer here has, nor any request before the call.

    Some frameworks write what an answer asked for as the text of a message.
    """
    call_id = tool.call_id
    if call_id is None or len(call_id) < _LEAST or call_id in given.ids or any(call_id in text for text in given.texts):
        return False
    if call_id not in canonical_json(step.input):
        return False
    return not any(call_id in canonical_json(told) for told in (before, *(one.input for one in models if one.seq < tool.seq)))


def _result(tool: Step) -> Json:
    """What a tool gave, as Python writes it."""
    result = tool.output.get("result") if isinstance(tool.output, dict) else None
    return str(result) if isinstance(result, dict | list) and result else result


def _around(step: Step, parents: dict[int, int | None]) -> set[int]:
    """The steps that a step is inside: an agent in a tool is not told what came of the tool."""
    found: set[int] = set()
    place = step.parent_seq
    while place is not None and place not in found:
        found.add(place)
        place = parents.get(place)
    return found


def _handed(run: Run) -> Iterator[int]:
    """The agents that came after one in which no model was asked, and which may have handed over to them."""
    asking = {step.parent_seq for step in run.steps if step.kind in ("model_call", "agent")}
    silent: set[int | None] = set()
    for step in run.steps:
        if step.kind == "agent":
            if step.parent_seq in silent:
                yield step.seq
            if step.seq not in asking:
                silent.add(step.parent_seq)


def _is_told_as(tool: Step, call_id: str, told: Told) -> bool:
    """Whether a call in the messages is that of a step: by its id, else by its name, arguments and result."""
    if tool.call_id is not None:
        return tool.call_id == call_id
    call = told.call
    if call is None:  # asked for under another id, as the Responses API has two
        if tool.kind != "tool_call":
            return told.response is not None and mentions(_form(told.response["response"]), tool.name)
        return _gave(tool, told, least=_LEAST)
    name = call.get("name")
    if tool.kind in ("handoff", "agent"):
        return isinstance(name, str) and mentions(name, tool.name) and told.response is not None
    if not isinstance(name, str) or not same_tool(tool.name, name):
        return False
    return not arguments_conflict(tool.input, {"arguments": call.get("arguments")}) and _gave(tool, told)


def _gave(tool: Step, told: Told, *, least: int = 0) -> bool:
    """Whether what the model was told of a call is the result of a step, of so many characters at least."""
    if told.response is None or not isinstance(tool.output, dict) or "result" not in tool.output:
        return False
    result = _form(tool.output["result"])
    return len(result) >= least and result == _form(told.response["response"])


def _form(value: Json) -> str:
    """A result in the form in which results are compared, also where it was told as Python writes it."""
    read = python_value(value) if isinstance(value, str) else None
    return form(value if read is None else read)


def _derived(run: Run) -> bool:
    """Whether the input of a run is only that of its first model call."""
    return any(run.input == step.input for step in run.steps if step.kind == "model_call")


def _turns(view: Json) -> list[dict[str, Any]]:
    messages = view.get("messages") if isinstance(view, dict) else None
    held = (message for message in (messages if isinstance(messages, list) else ()) if isinstance(message, dict))
    return [message for message in held if message.get("role") not in _INSTRUCTIONS]


def _call(asked: Asked) -> tuple[str, str]:
    return asked.name or "", canonical_json(asked.arguments)


def _texts(view: Json) -> list[str]:
    """What is said in a view, without the space around it; nothing blank."""
    if not isinstance(view, dict):
        return []
    found = [view["result"]] if isinstance(view.get("result"), str) else []
    for message in _turns(view):
        parts = message.get("parts")
        found += [
            part["content"]
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("content"), str)
        ]
    return [text.strip() for text in found if text.strip()]

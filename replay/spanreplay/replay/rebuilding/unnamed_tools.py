"""Calls of tools that no answer of a model names, while the answers of the run do name what is called.

Some frameworks let a model ask in words, code or JSON of its text, and give a call no id: then nothing links a call to an answer, and what
is left is whether the name of the tool stands in one. It is evidence of a lost answer only of a tool that the models of the run know, that
ran after a first answer and for no other tool, and where other calls of the run are named.
"""

from collections.abc import Iterable, Iterator, Sequence

from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.messages import asked_for
from spanreplay.replay.rebuilding.same_call import mentions


def unnamed_tools(run: Run, models: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """The calls that such an answer must have asked for, each with what it shows.

    Args:
        run: with its steps.
        models: its model calls, all with their answers.
    """
    ran = [step for step in run.steps if step.kind == "tool_call"] if models else []
    if not ran or all(step.requested_by is not None for step in ran):
        return
    answers = [text for step in models for text in _said(step.output)]
    named = {step.seq for step in ran if step.requested_by is not None or any(mentions(text, step.name) for text in answers)}
    if not named:
        return
    within = _within_tools(run)
    known = _Known(models)
    for step in ran:
        if step.seq not in named and step.seq > models[0].seq and step.seq not in within and known.has(step.name):
            yield step, f"step {step.seq} called {step.name}, which a model here was told of, and no answer of one names it"


def is_named(tool: str, output: Json) -> bool:
    """Whether an answer names a tool, in a call or in words."""
    return any(mentions(text, tool) for text in _said(output))


class _Known:
    """The tools that models were told of: by their definitions, or in their instructions."""

    def __init__(self, models: Iterable[Step]) -> None:
        self._texts = set[str]()
        for step in models:
            view = step.input if isinstance(step.input, dict) else {}
            tools, system, messages = (value if isinstance(value := view.get(key), list) else [] for key in ("tools", "system", "messages"))
            self._texts.update(str(one.get("name")) for one in tools if isinstance(one, dict))
            told = [
                part for message in messages if isinstance(message, dict) and message.get("role") == "system" for part in _parts(message)
            ]
            self._texts.update(text for part in (*system, *told) if isinstance(part, dict) and isinstance(text := part.get("content"), str))

    def has(self, name: str) -> bool:
        return any(mentions(text, name) for text in self._texts)


def _said(output: Json) -> Iterator[str]:
    """Every text of an answer, and the name of every call that it asks for."""
    yield from (asked.name for asked in asked_for(output) if asked.name is not None)
    messages = output.get("messages") if isinstance(output, dict) else None
    for message in messages if isinstance(messages, list) else ():
        for part in _parts(message):
            if isinstance(part, dict) and isinstance(text := part.get("content"), str):
                yield text


def _parts(message: Json) -> list[Json]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return parts if isinstance(parts, list) else []


def _within_tools(run: Run) -> set[int]:
    """The steps inside the call of a tool."""
    found: set[int] = set()
    tools = {step.seq for step in run.steps if step.kind == "tool_call"}
    for step in run.steps:
        if step.parent_seq in tools or step.parent_seq in found:
            found.add(step.seq)
    return found

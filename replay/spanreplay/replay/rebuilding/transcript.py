"""A run as the conversations that its agents had with their models.

A model call repeats the history before it: each call adds what it says beyond the calls before. A call that does not go on from them
(another task, a history that was summed up) begins a conversation of its own. What was asked for and never answered stays so: no result is
made up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Run, Step
from spanreplay.replay.reading.messages import asked_for

_TOLD = ("type", "content", "name", "arguments", "response", "uri", "file_id")
"""Fields of a part that are the same in an answer and in the history that repeats it; ids may be left off."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """Messages in the parts shape of the GenAI conventions."""

    agent: str | None
    messages: list[dict[str, Json]] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    """As offered with the last call."""
    unanswered: list[str] = field(default_factory=list)
    """Tool calls that the model asked for and that have no result: their ids, or their names."""
    steps: list[int] = field(default_factory=list)
    """``seq`` of the model calls."""
    _keys: list[str] = field(default_factory=list)
    """What the messages are compared by."""
    _said: int = 0
    """How many messages at the end are the last answer."""

    def beyond(self, asked: Sequence[dict[str, Json]]) -> list[dict[str, Json]] | None:
        """What a call says beyond the conversation; ``None`` where it does not go on from it."""
        keys = [_key(message) for message in asked]
        common = next((n for n, (a, b) in enumerate(zip(self._keys, keys, strict=False)) if a != b), min(len(self._keys), len(keys)))
        if common == len(self._keys):
            return list(asked[common:])
        if not common or common != len(self._keys) - self._said:
            return None
        rest = list(asked[common:])
        if not rest or rest[0].get("role") != "assistant":
            return rest  # the history leaves the answer out, as some recorders do; or the call is made again
        return rest[self._said :]  # it repeats the answer in other words, such as without its reasoning

    def add(self, step: Step, more: Sequence[dict[str, Json]]) -> None:
        """Adds what a call says and what the model answered."""
        answer = list(_messages(step.output))
        self.messages += [*more, *answer]
        self._keys += [_key(message) for message in (*more, *answer)]
        self._said = len(answer)
        self.steps.append(step.seq)
        if isinstance(step.input, dict) and step.input.get("tools"):
            self.tools = list(step.input["tools"])


def conversations(run: Run) -> list[Conversation]:
    """The conversations of a run, in order of their first call.

    Args:
        run: the run; model calls without messages add nothing.
    """
    found: list[Conversation] = []
    current: dict[str | None, Conversation] = {}
    for step in run.steps:
        if step.kind != "model_call" or (step.input is None and step.output is None):
            continue
        asked = list(_asked(step))
        talk = current.get(step.agent)
        more = None if talk is None else talk.beyond(asked)
        if talk is None or more is None:
            talk = current[step.agent] = Conversation(agent=step.agent)
            found.append(talk)
            more = asked
        talk.add(step, more)
    for talk in found:
        _finish(talk, run.steps)
    return found


def _asked(step: Step) -> Iterator[dict[str, Json]]:
    system = step.input.get("system") if isinstance(step.input, dict) else None
    if isinstance(system, list) and system:
        yield {"role": "system", "parts": system}
    yield from _messages(step.input)


def _messages(view: Json) -> Iterator[dict[str, Json]]:
    said = view.get("messages") if isinstance(view, dict) else None
    for message in said if isinstance(said, list) else ():
        if isinstance(message, dict) and isinstance(message.get("parts"), list):
            yield message


def _key(message: dict[str, Json]) -> str:
    parts = [{name: part.get(name) for name in _TOLD if name in part} for part in message["parts"] if isinstance(part, dict)]
    return canonical_json([message.get("role"), parts])


def _finish(talk: Conversation, steps: Sequence[Step]) -> None:
    """Adds the results of the last calls, which no later call to the model repeats."""
    told = [part for m in talk.messages for part in m["parts"] if isinstance(part, dict) and part.get("type") == "tool_call_response"]
    given = {part["id"] for part in told if part.get("id") is not None}
    unnamed = len(told) - sum(part.get("id") is not None for part in told)
    results = [s for s in steps if s.kind != "model_call" and s.requested_by == talk.steps[-1]]
    for asked in list(asked_for({"messages": talk.messages})):
        if asked.call_id in given:
            continue
        if asked.call_id is None and unnamed:
            unnamed -= 1
            continue
        step = next((s for s in results if (s.call_id == asked.call_id if asked.call_id and s.call_id else s.name == asked.name)), None)
        if step is None or not isinstance(step.output, dict) or "result" not in step.output:
            talk.unanswered.append(asked.call_id or asked.name or "")
            continue
        results.remove(step)
        part = {"type": "tool_call_response", "id": asked.call_id, "response": step.output["result"]}
        talk.messages.append({"role": "tool", "parts": [part]})

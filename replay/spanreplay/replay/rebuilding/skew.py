"""Calls whose times contradict what models said: spans of two machines, or of a clock that was set.

By the clock a call began before the model call whose answer asks for it, or after a request that tells its result. The id says what the
clock denies. It is believed where the name and the arguments are those asked for, both are in one place, no earlier answer asks for that
id, and what the model was asked does not tell its result yet: ids are used again. A call without an id is believed to be the one that was
asked for where no other call and no other request is like it, and a later request tells just its result.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.messages import Asked, asked_for
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.rebuilding.links import answered_ids
from spanreplay.replay.rebuilding.results import form
from spanreplay.replay.rebuilding.same_call import Candidate, arguments, arguments_conflict, last_name
from spanreplay.replay.rebuilding.told import told_of
from spanreplay.replay.rebuilding.tree import SpanKey

_TELLING: Final = 4
"""Requests after an answer that are looked at for the results of the calls that it asks for."""
_WORDS: Final = 8
"""Characters of an error's message that is no chance where another text holds it."""


@dataclass(frozen=True, slots=True)
class Skew:
    """Calls that the clock puts in a wrong place."""

    early: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """For each that began too early the model call whose answer asks for it."""
    late: dict[SpanKey, SpanKey] = field(default_factory=dict)
    """For each that began too late the model call that was told its result."""


@dataclass(frozen=True, slots=True)
class _Request:
    model: Candidate
    asked: Asked


def skewed(steps: Iterable[Candidate], parents: Mapping[SpanKey, SpanKey], starts: Mapping[SpanKey, int]) -> Skew:
    """Finds such calls.

    Args:
        steps: of one run.
        parents: the step around each step.
        starts: when each step began, as far as what is around it corrects its clock.
    """
    by_time = sorted(steps, key=lambda step: (starts[step.key], step.key))
    calls = [step for step in by_time if step.draft.kind == "tool_call" and step.draft.path is None]
    models = [step for step in by_time if step.draft.kind == "model_call"]
    return _Finder(models, parents, starts).found(calls) if calls and models else Skew()


class _Finder:
    def __init__(self, models: Sequence[Candidate], parents: Mapping[SpanKey, SpanKey], starts: Mapping[SpanKey, int]) -> None:
        self._parents = parents
        self._starts = starts
        self._by_id: dict[str, list[_Request]] = {}
        self._by_call: dict[tuple[str, str], list[_Request]] = {}
        self._inside: dict[SpanKey | None, list[Candidate]] = {}
        """The model calls in each place, in order of time."""
        for model in models:
            self._inside.setdefault(parents.get(model.key), []).append(model)
            for asked in asked_for(model.draft.output):
                if asked.call_id is not None:
                    request = _Request(model, asked)
                    self._by_id.setdefault(asked.call_id, []).append(request)
                    given = canonical_json(arguments({"arguments": asked.arguments}))
                    self._by_call.setdefault((last_name(asked.name or ""), given), []).append(request)

    def found(self, calls: Sequence[Candidate]) -> Skew:
        found = Skew()
        named: dict[str, list[Candidate]] = {}
        alike: dict[tuple[str, str], list[Candidate]] = {}
        for call in calls:
            if call.draft.call_id is not None:
                named.setdefault(call.draft.call_id, []).append(call)
            elif (given := arguments(call.draft.input)) is not None:
                alike.setdefault((last_name(call.draft.name), canonical_json(given)), []).append(call)
        for call_id, same in named.items():
            self._of_id(call_id, same, found)
        for key, same in alike.items():
            requests = self._by_call.get(key, [])
            if len(same) == len(requests) == 1:
                self._of_call(same[0], requests[0], found)
        return found

    def _of_id(self, call_id: str, calls: Sequence[Candidate], found: Skew) -> None:
        requests = self._by_id.get(call_id)
        if not requests:
            return
        request, call = requests[0], calls[0]
        if not self._in_one_place(request.model, call) or not _fits(call, request.asked):
            return
        if self._is_early(call, request.model):
            if call_id not in answered_ids(request.model.draft.input):
                found.early[call.key] = request.model.key
        elif len(calls) == len(requests) == 1:
            for model in self._after(request.model, until=self._starts[call.key]):
                if call_id in answered_ids(model.draft.input):
                    found.late[call.key] = model.key
                    return

    def _of_call(self, call: Candidate, request: _Request, found: Skew) -> None:
        is_early = self._is_early(call, request.model)
        if not self._in_one_place(request.model, call) or not same_tool(request.asked.name or "", call.draft.name):
            return
        for model in self._after(request.model, until=None if is_early else self._starts[call.key]):
            told = told_of(model.draft.input).get(request.asked.call_id or "")
            if told is None or told.response is None:
                continue
            if _gave(call, told.response["response"]):
                if is_early:
                    found.early[call.key] = request.model.key
                else:
                    found.late[call.key] = model.key
            return

    def _is_early(self, call: Candidate, model: Candidate) -> bool:
        began, asked = self._starts[call.key], self._starts[model.key]
        return asked > began or (asked == began and model.start_ns > call.start_ns)

    def _in_one_place(self, model: Candidate, call: Candidate) -> bool:
        """Some have a call inside the model call that asked for it."""
        return self._parents.get(call.key) in (self._parents.get(model.key), model.key)

    def _after(self, model: Candidate, until: int | None) -> Sequence[Candidate]:
        """The next model calls in the place of one, as far as they began no later than a time."""
        inside = self._inside[self._parents.get(model.key)]
        place = bisect_right(inside, (self._starts[model.key], model.key), key=lambda step: (self._starts[step.key], step.key))
        return [step for step in inside[place : place + _TELLING] if until is None or self._starts[step.key] <= until]


def _gave(call: Candidate, told: Json) -> bool:
    """Whether what a model was told is what a call gave, or has the words with which it failed."""
    result = call.draft.output.get("result") if isinstance(call.draft.output, dict) else None
    if result is not None:
        return form(told) == form(result)
    words = call.draft.error.get("message") if isinstance(call.draft.error, dict) else None
    return isinstance(words, str) and isinstance(told, str) and len(words) >= _WORDS and words in told


def _fits(call: Candidate, asked: Asked) -> bool:
    return same_tool(asked.name or "", call.draft.name) and not arguments_conflict(call.draft.input, {"arguments": asked.arguments})

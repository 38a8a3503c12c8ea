"""Which step caused which: the request, in a model's answer, that a call answers; and the requests that no call answers.

A call id names the nearest answer before the call that has it: ids are reused, by one model in later turns and by several agents at once.
A call without an id belongs to the request for the same tool with the same arguments; else, where the arguments cannot be compared, to the
first request for that tool that is left. Nearest means: in the same agent, else around it, and of those the latest. No request is given to
two calls without ids, and none to a call whose arguments are plainly others. Calls that may answer each other's requests are told apart by
their results, where the model was told those by id.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from spanreplay.boundary.call import Kind
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json, Reason
from spanreplay.replay.reading.fields import NULL_IDS
from spanreplay.replay.reading.messages import Asked, asked_for
from spanreplay.replay.reading.naming import same_tool
from spanreplay.replay.reasons import ARGUMENTS_DIFFER, CALL_ID_INFERRED
from spanreplay.replay.rebuilding.asked import is_bare
from spanreplay.replay.rebuilding.origin import told_in
from spanreplay.replay.rebuilding.placed import Placed, outwards
from spanreplay.replay.rebuilding.results import LOOKED_AT, by_results
from spanreplay.replay.rebuilding.same_call import arguments, arguments_conflict, last_name, mentions

_ANSWERING: Final[frozenset[Kind]] = frozenset({"tool_call", "handoff", "agent", "decision", "human"})
_COMPARED: Final = 64
"""Answers that are compared with a call, and steps around a step that are looked at."""


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """A call that a model's answer asks for."""

    seq: int
    """Of the model step."""
    place: int
    """Among the calls that the answer asks for."""
    asked: Asked
    answered: bool = False


@dataclass(slots=True)
class Links:
    """What the steps of a run have to do with each other."""

    requested_by: dict[int, int] = field(default_factory=dict)
    """For each call the model step that asked for it; a call that nothing seems to have asked for is absent."""
    answers: dict[int, Request] = field(default_factory=dict)
    """For each call the request that it answers, as far as that is known too."""
    call_ids: dict[int, str] = field(default_factory=dict)
    """Ids of calls whose spans have none, where it is certain which request they answer."""
    reasons: dict[int, Reason] = field(default_factory=dict)
    """How such an id was found, and what does not fit about a request."""
    open: list[Request] = field(default_factory=list)
    """Requests that no step answers."""


def linked(steps: Sequence[Placed]) -> Links:
    """Finds the request that each call answers.

    Args:
        steps: of one run, in order.
    """
    return _Linker(steps).links


class _Linker:
    def __init__(self, steps: Sequence[Placed]) -> None:
        self.links = Links()
        self._steps = {step.seq: step for step in steps}
        self._told = told_in(steps) if any(step.path is not None for step in steps) else frozenset[int]()
        requests: list[Request] = []
        by_id: dict[str, list[Request]] = {}
        self._made: dict[int, list[Request]] = {}
        left: list[Placed] = []
        for step in steps:
            if step.draft.kind == "model_call":
                made = _requests(step)
                requests += made
                self._made[step.seq] = made
                for request in made:
                    if request.asked.call_id is not None:
                        by_id.setdefault(request.asked.call_id, []).append(request)
            elif step.draft.kind in _ANSWERING and not self._answers_id(step, by_id):
                left.append(step)
        if requests and left:
            calls = self._match([step for step in left if step.draft.kind == "tool_call"], requests, _SAME_ARGUMENTS)
            calls = self._match([step for step in calls if step.draft.call_id is None], requests, _SAME_VALUES)
            self._match(calls, requests, _SAME_NAME)
            for kind in ("handoff", "agent"):
                self._match([step for step in left if step.draft.kind == kind], requests, _AGENT_NAMED)
            self._by_results(steps, [step for step in left if step.draft.kind == "tool_call"], requests)
        self.links.open = [request for request in requests if not request.answered and request.seq not in self._told]

    def _answers_id(self, step: Placed, by_id: dict[str, list[Request]]) -> bool:
        known = by_id.get(step.draft.call_id or "", [])[-_COMPARED:]
        if step.requested_by is not None:
            known = [request for request in known if request.seq == step.requested_by]
        else:
            known = [r for r in known if not (r.answered and _is_another(r, step))]  # the id is used again, and that request is not here
        if not known:
            return step.requested_by is not None and self._answers_recorded(step, step.requested_by)
        best = known[0]
        if len(known) > 1:
            near = self._nearness(step)
            best = max(
                known,
                key=lambda request: (
                    not _is_another(request, step),
                    request.seq not in self._told,
                    *near(request.seq),
                    not request.answered,
                ),
            )
        best.answered = True
        self.links.requested_by[step.seq] = best.seq
        self.links.answers[step.seq] = best
        if arguments_conflict(step.draft.input, {"arguments": best.asked.arguments}):
            detail = (
                f"its arguments are not those that step {best.seq} asked for with its call id: they were changed, or the id is used again"
            )
            self.links.reasons[step.seq] = Reason(code=ARGUMENTS_DIFFER, detail=detail)
        return True

    def _answers_recorded(self, step: Placed, requested_by: int) -> bool:
        """The record says which answer asked, and not by which id: the first request there that is open and fits is answered."""
        fits = (request for request in self._made.get(requested_by, ()) if not request.answered and not _is_another(request, step))
        for request in islice(fits, 1):
            request.answered = True
        return True

    def _match(self, calls: Sequence[Placed], requests: Iterable[Request], rule: "_Rule") -> list[Placed]:
        """Gives each call, in order, the open request before it that it answers by a rule; gives back the calls that got none."""
        waiting: dict[Hashable, list[deque[Request]]] = {}
        sure: dict[Hashable, tuple[int, Request]] = {}
        unsure: set[tuple[Hashable, int]] = set()
        left: list[Placed] = []
        coming = deque(request for request in requests if not request.answered)
        for call in calls:
            while coming and coming[0].seq < call.seq:
                request = coming.popleft()
                answers = waiting.setdefault(key := rule.of_request(request), [])
                if not answers or answers[-1][0].seq != request.seq:
                    answers.append(deque())
                    sure.pop(key, None)
                answers[-1].append(request)
            key = rule.of_call(call)
            answers = waiting.get(key, [])
            fits = [
                (answer, place)
                for answer in answers[-_COMPARED:]
                for place, request in enumerate(islice(answer, _COMPARED))
                if rule.fits(request, call)
            ]
            if not fits:
                left.append(call)
                if key in sure and rule.fits(sure[key][1], call):  # one request and two calls that may have answered it
                    self._doubt(sure.pop(key)[0])
                continue
            answer, place = self._nearest(fits, call)
            request = answer[place]
            certain = len(fits) == 1 and (key, request.seq) not in unsure
            self._answer(call, request, rule.why if certain else None)
            if certain:
                sure[key] = call.seq, request
            else:
                unsure.update((key, answer[place].seq) for answer, place in fits)
            del answer[place]
            if not answer:
                del answers[_last_index(answers, answer)]
        return left

    def _nearest(self, fits: Sequence[tuple[deque[Request], int]], call: Placed) -> tuple[deque[Request], int]:
        if len({id(answer) for answer, _ in fits}) == 1 and len({answer[place].asked.name for answer, place in fits}) == 1:
            return fits[0]  # of equal requests in one answer the first is taken first
        near = self._nearness(call)
        return max(fits, key=lambda fit: (fit[0][fit[1]].asked.name == call.draft.name, *near(fit[0][fit[1]].seq), -fit[1]))

    def _nearness(self, call: Placed) -> Callable[[int], tuple[int, int]]:
        """How near an answer is to a call, larger is nearer: by the steps around both, then the latest."""
        path = {step: n for n, step in enumerate(outwards(self._steps, call.seq, _COMPARED))}

        def near(seq: int) -> tuple[int, int]:
            ways = (n + path[step] for n, step in enumerate(outwards(self._steps, seq, _COMPARED)) if step in path)
            return -next(ways, 2 * _COMPARED), seq

        return near

    def _answer(self, call: Placed, request: Request, why: str | None) -> None:
        request.answered = True
        self.links.requested_by[call.seq] = request.seq
        self.links.answers[call.seq] = request
        if why is not None and request.asked.call_id is not None and call.draft.call_id is None:
            self.links.call_ids[call.seq] = request.asked.call_id
            detail = f"its span has no call id; {request.asked.call_id} is that of the request of step {request.seq} with {why}"
            self.links.reasons[call.seq] = Reason(code=CALL_ID_INFERRED, detail=detail)

    def _by_results(self, steps: Sequence[Placed], calls: Sequence[Placed], requests: Sequence[Request]) -> None:
        """Tells calls whose ids are not certain apart by what the model was told of the requests that they may answer."""
        alike: dict[Hashable, list[Placed]] = {}
        for call in calls:
            request = self.links.answers.get(call.seq)
            if request is not None and call.draft.call_id is None and call.seq not in self.links.call_ids:
                alike.setdefault(_alike(request), []).append(call)
        if not alike:
            return
        models = [step for step in steps if step.draft.kind == "model_call"]
        asked: dict[Hashable, list[Request]] = {}
        taken = {id(self.links.answers[call.seq]) for group in alike.values() for call in group}
        for request in requests:
            if id(request) in taken or not request.answered:
                asked.setdefault(_alike(request), []).append(request)
        for key, group in alike.items():
            among = asked[key]
            after = bisect_right(models, group[-1].seq, key=lambda step: step.seq)
            known = by_results(group, [request.asked for request in among], models[after : after + LOOKED_AT]) if len(among) > 1 else None
            if known is None:
                continue
            places = dict(known.pairs)
            others = iter([request for n, request in enumerate(among) if n not in places.values()])
            for request in among:
                request.answered = False
            for n, call in enumerate(group):
                request = among[places[n]] if n in places else next(others)
                self._answer(call, request, f"the result that step {known.by} was told" if n in places else None)

    def _doubt(self, seq: int) -> None:
        self.links.call_ids.pop(seq, None)
        self.links.reasons.pop(seq, None)


def _alike(request: Request) -> Hashable:
    return request.seq, request.asked.name, canonical_json(arguments({"arguments": request.asked.arguments}))


def _last_index(answers: Sequence[deque[Request]], answer: deque[Request]) -> int:
    return next(n for n in range(len(answers) - 1, -1, -1) if answers[n] is answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Which request a call without an id answers."""

    why: str
    of_request: Callable[[Request], Hashable]
    of_call: Callable[[Placed], Hashable]
    """Only requests and calls with equal values are compared."""
    fits: Callable[[Request, Placed], bool]


def _is_another(request: Request, call: Placed) -> bool:
    return not _name_fits(request, call) or arguments_conflict(call.draft.input, {"arguments": request.asked.arguments})


def _name_fits(request: Request, call: Placed) -> bool:
    return same_tool(request.asked.name or "", call.draft.name)


def _names_agent(request: Request, call: Placed) -> bool:
    if call.draft.kind == "agent" and call.draft.agent is None:  # only its span has a name, which may be that of its class
        return _name_fits(request, call)
    return mentions(request.asked.name, call.draft.name if call.draft.kind == "handoff" else call.draft.agent)


def _arguments_of(call: Placed) -> Hashable:
    given = arguments(call.draft.input)
    return None if given is None else (last_name(call.draft.name), canonical_json(given))


_SAME_ARGUMENTS: Final = _Rule(
    why="the same name and arguments",
    of_request=lambda request: (last_name(request.asked.name or ""), canonical_json(arguments({"arguments": request.asked.arguments}))),
    of_call=_arguments_of,
    fits=_name_fits,
)
_SAME_VALUES: Final = _Rule(
    why="the same name and values",
    of_request=lambda request: last_name(request.asked.name or ""),
    of_call=lambda call: last_name(call.draft.name),
    fits=lambda request, call: _name_fits(request, call) and is_bare(call.draft.input, request.asked),
)
_SAME_NAME: Final = _Rule(
    why="the same name",
    of_request=lambda request: last_name(request.asked.name or ""),
    of_call=lambda call: last_name(call.draft.name),
    fits=lambda request, call: (
        _name_fits(request, call) and not arguments_conflict(call.draft.input, {"arguments": request.asked.arguments})
    ),
)
_AGENT_NAMED: Final = _Rule(  # a hand-off to an agent, or an agent, that a request such as transfer_to_booking names
    why="the agent's name",
    of_request=lambda _: None,
    of_call=lambda _: None,
    fits=_names_agent,
)


def _requests(step: Placed) -> list[Request]:
    """The calls that an answer asks for; those that the provider itself ran, within the answer, are answered."""
    made = [Request(seq=step.seq, place=place, asked=asked) for place, asked in enumerate(asked_for(step.draft.output))]
    if made and (within := set(answered_ids(step.draft.output))):
        for request in made:
            request.answered = request.asked.call_id in within
    return made


def answered_ids(view: Json) -> Iterator[str | None]:
    """The ids of the calls whose results are in the messages of a view; ``None`` for a result without one."""
    messages = view.get("messages") if isinstance(view, dict) else None
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_call_response":
                call_id = part.get("id")
                yield call_id if isinstance(call_id, str) and call_id not in NULL_IDS else None

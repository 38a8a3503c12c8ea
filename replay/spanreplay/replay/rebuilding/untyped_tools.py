"""Tools whose spans do not say that they are: a model asked for a call of their name with their arguments, just before.

Langfuse's decorator makes a span of no type of any function, its handler of LangChain (3.2) of a tool that failed. Such a span is a tool
call only where the latest model call before it, in the same agent, asked for just that, and no span that says so is that call. Where no
model call before it is recorded, the next one may tell of just that call, with just that result.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Reason
from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.reading.messages import Asked, asked_for
from spanreplay.replay.reasons import TOOL_INFERRED
from spanreplay.replay.rebuilding.asked import is_bare
from spanreplay.replay.rebuilding.results import form
from spanreplay.replay.rebuilding.same_call import arguments, arguments_conflict, last_name
from spanreplay.replay.rebuilding.told import told_of
from spanreplay.replay.rebuilding.tree import Forest, SpanKey

_FAR: Final = 64
"""Spans around a span, and model calls before it, that are looked at."""
_MANY: Final = 1_000
"""Tool calls of one name that are looked at for one that is the call."""
_OWNERS: Final = frozenset({"agent", "tool_call"})


def untyped_tools(forest: Forest, drafts: Mapping[SpanKey, StepDraft]) -> dict[SpanKey, StepDraft]:
    """What was read as no step and is the call of a tool that a model asked for.

    Args:
        forest: the spans.
        drafts: of one run, in order of start.
    """
    perhaps = [(key, draft.if_asked) for key, draft in drafts.items() if draft.if_asked is not None]
    return _Finder(forest, drafts).found(perhaps) if perhaps else {}


class _Finder:
    def __init__(self, forest: Forest, drafts: Mapping[SpanKey, StepDraft]) -> None:
        self._forest = forest
        self._owners = {key for key, draft in drafts.items() if draft.kind in _OWNERS and not draft.frame}
        self._drafts = drafts
        self._told: dict[SpanKey, dict[str | None, list[tuple[Asked, str]]]] = {}
        """What a model call was told of calls, and the forms of their results, by name."""
        self._asked: dict[SpanKey, list[Asked]] = {}
        self._inside: dict[SpanKey | None, list[SpanKey]] = {}
        """The model calls inside each span, however deep, and of the run (``None``); in order of start."""
        self._tools: dict[str, list[tuple[int, StepDraft]]] = {}
        """The tool calls that say so, by the end of their name."""
        for key, draft in drafts.items():
            if draft.kind == "model_call":
                self._asked[key] = list(asked_for(draft.output))
                for outer in (*self._around(key), None):
                    self._inside.setdefault(outer, []).append(key)
            elif draft.kind == "tool_call" and not draft.frame:
                self._tools.setdefault(last_name(draft.name), []).append((self._start(key), draft))

    def found(self, perhaps: Sequence[tuple[SpanKey, StepDraft]]) -> dict[SpanKey, StepDraft]:
        wanted = {asked.name for requests in self._asked.values() for asked in requests}
        taken: Counter[tuple[SpanKey, str]] = Counter()
        made: dict[SpanKey, StepDraft] = {}
        for key, draft in perhaps:
            model, until, after = self._near(key)
            if model is None and after is not None and self._tells(after, draft):
                self._owners.add(key)
                detail = (
                    f"the span has no type; the next model call (span {after.span_id}) was told of a call of its name, arguments and result"
                )
                made[key] = replace(draft, reasons=(*draft.reasons, Reason(code=TOOL_INFERRED, detail=detail)))
                continue
            fits = [] if model is None else [asked for asked in self._asked[model] if _fits(draft, asked)]
            if model is None or draft.name not in wanted or not fits:
                continue
            request = model, canonical_json([fits[0].name, fits[0].arguments])
            if len(fits) - taken[request] > self._recorded(draft, fits, self._start(model), until):
                taken[request] += 1
                self._owners.add(key)
                detail = f"the span has no type; a model call just before (span {model.span_id}) asked for a call of its name and arguments"
                made[key] = replace(draft, reasons=(*draft.reasons, Reason(code=TOOL_INFERRED, detail=detail)))
        return made

    def _around(self, key: SpanKey) -> Iterator[SpanKey]:
        outer = self._forest.parents.get(key)
        for _ in range(_FAR):
            if outer is None:
                return
            yield outer
            outer = self._forest.parents.get(outer)

    def _start(self, key: SpanKey) -> int:
        return self._forest.spans[key].start_ns

    def _near(self, key: SpanKey) -> tuple[SpanKey | None, int | None, SpanKey | None]:
        """The model calls near a span and of the same agent.

        Returns:
            The latest before it, if it was over then; when the next one begins; that one, where none is before the span.
        """
        start = self._start(key)
        after: SpanKey | None = None
        for outer in (*self._around(key), None):
            inside = self._inside.get(outer, [])
            place = bisect_left(inside, start, key=self._start)
            own = (inside[n] for n in range(place - 1, max(-1, place - 1 - _FAR), -1) if self._is_own(inside[n], outer))
            following = next((one for one in islice(inside, place, place + _FAR) if self._is_own(one, outer)), None)
            for model in islice(own, 1):
                end = self._forest.spans[model].end_ns
                later = None if following is None else self._start(following)
                return (model if end is not None and end <= start else None), later, None
            after = after or following
            if outer in self._owners:
                break
        return None, None, after

    def _tells(self, model: SpanKey, draft: StepDraft) -> bool:
        """Whether a model call was told of a call of a name, with arguments and a result, of which no span says that it is that call."""
        result = draft.output.get("result") if isinstance(draft.output, dict) else None
        known = self._tools.get(last_name(draft.name), [])
        if result is None or any(not arguments_conflict(tool.input, draft.input) for _, tool in islice(known, _MANY)):
            return False
        return any(gave == form(result) and _fits(draft, asked) for asked, gave in self._told_by(model).get(draft.name, []))

    def _told_by(self, model: SpanKey) -> dict[str | None, list[tuple[Asked, str]]]:
        if model not in self._told:
            found = self._told[model] = {}
            for call_id, told in told_of(self._drafts[model].input).items():
                if told.call is not None and told.response is not None and isinstance(name := told.call.get("name"), str):
                    asked = Asked(call_id, name, told.call.get("arguments"))
                    found.setdefault(name, []).append((asked, form(told.response["response"])))
        return self._told[model]

    def _is_own(self, model: SpanKey, outer: SpanKey | None) -> bool:
        """Is a model call directly of what goes on in a span, and of no agent or tool in it?"""
        for around in self._around(model):
            if around == outer:
                return True
            if around in self._owners:
                return False
        return outer is None

    def _recorded(self, draft: StepDraft, fits: Sequence[Asked], since: int, until: int | None) -> int:
        """How many spans say that they are such a call, or have the id of one, in some time."""
        ids = {asked.call_id for asked in fits if asked.call_id is not None}
        known = self._tools.get(last_name(draft.name), [])
        place = bisect_left(known, since, key=lambda tool: tool[0])
        count = 0
        for start, tool in islice(known, place, place + _MANY):
            if (until is not None and start >= until) or count >= len(fits):
                break
            count += tool.call_id in ids if tool.call_id is not None and ids else not arguments_conflict(tool.input, draft.input)
        return count


def _fits(draft: StepDraft, asked: Asked) -> bool:
    if asked.name != draft.name:
        return False
    given, wanted = arguments(draft.input), arguments({"arguments": asked.arguments})
    if wanted == {}:
        return given is None or given == {}
    return given is not None and (canonical_json(given) == canonical_json(wanted) or is_bare(draft.input, asked))

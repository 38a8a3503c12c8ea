"""When does a live input count as a recorded one, though the two differ?

Where all that differs is what the user lets differ (:mod:`spanreplay.replay.reexecution.comparing`), or ids and times that a program makes
itself and so are others each time. Where these stand is said by the provider of each model API. An id counts as one only if it looks made,
stands in no recorded answer (then the program was given it), and is known on the other side as nothing else: within a run a recorded id
stands for one live id, and that for no other. In free text only ids that were seen as ids are taken for them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanreplay.instrumentation.provider import by_name
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.diff import ValueDifference, differences
from spanreplay.replay.reexecution.forms import parsed
from spanreplay.replay.reexecution.matched import Like
from spanreplay.replay.reexecution.places import Keys, Place

_MOST: Final = 1000
"""Values that may differ in one input."""
_LONGEST: Final = 200
"""Characters of an id."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")
_PREFIXED: Final = re.compile(r"(?P<prefix>[A-Za-z][A-Za-z-]{0,19}[_:-])(?P<rest>[A-Za-z0-9_-]{6,})")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,}")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_EPOCH: Final = (1e9, 1e19)
"""Seconds to nanoseconds since 1970, of years that agents run in."""
_BY_MEANING: Final = (Place.read("messages[*].parts[*].id"),)


def named_keys(step: Step, keys: Keys) -> Keys:
    """A place in the comparable input of a step as differences name it: ``messages[0]``, not ``body.messages[0]``; ``arguments.x``."""
    if step.kind == "tool_call":
        return ("arguments", *keys)
    return keys[1:] if keys[:1] == ("body",) else keys


class Likening:
    """Judges the inputs of one recorded run. Not locked, as the run is.

    Args:
        run: the run.
        comparing: what the user lets differ.
    """

    def __init__(self, run: Run, comparing: Comparing = EXACT) -> None:
        self._run = run
        self._comparing = comparing
        self._live: dict[str, str] = {}
        """Recorded id to live one."""
        self._recorded: dict[str, str] = {}
        self._answers: list[str] | None = None
        self._places: dict[str, tuple[tuple[Place, ...], tuple[Place, ...]]] = {}

    def judge(self, step: Step, wanted: str | None, asked: str | None) -> Like | None:
        """How an input counts as that of a step; ``None`` where it does not. Nothing is learnt of it before :meth:`accept`.

        Args:
            step: the recorded step.
            wanted: its comparable input.
            asked: the comparable input of the live call.
        """
        ids, times = self._local(step)
        if wanted is None or asked is None or not (ids or times or self._comparing.tolerant):
            return None
        ignored: list[ValueDifference] = []
        renamed: dict[str, str] = {}
        texts: list[ValueDifference] = []
        moments = 0
        for number, found in enumerate(differences(parsed(wanted), parsed(asked))):
            keys = named_keys(step, found.keys)
            if number == _MOST:
                return None
            if self._comparing.ignores(keys, found.recorded, found.actual):
                ignored.append(ValueDifference(keys=keys, recorded=found.recorded, actual=found.actual))
            elif _at(ids, keys) and self._is_renamed(found.recorded, found.actual, renamed):
                pass
            elif _at(times, keys) and _is_moment(found.recorded) and _is_moment(found.actual):
                moments += 1
            elif isinstance(found.recorded, str) and isinstance(found.actual, str):
                texts.append(found)
            else:
                return None
        if any(not self._same_but_ids(found, renamed) for found in texts):
            return None
        return Like(by="tolerance" if ignored else "renaming", ignored=tuple(ignored), renamed=renamed)

    def accept(self, like: Like) -> None:
        """A call was answered so: from now on its ids stand for each other."""
        for recorded, live in like.renamed.items():
            self._live[recorded] = live
            self._recorded[live] = recorded

    # ---- ids --------------------------------------------------------------------------------------------------------

    def _local(self, step: Step) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """Where a step's input may have ids and times that a program makes."""
        if step.kind != "model_call":
            return (), ()
        name = step.wire.provider if step.wire is not None else None
        if name is None:
            return _BY_MEANING, ()
        known = self._places.get(name)
        if known is None:
            provider = by_name(name)
            ids, times = ((), ()) if provider is None else (provider.LOCAL_IDS, provider.LOCAL_TIMES)
            known = self._places[name] = tuple(map(Place.read, ids)), tuple(map(Place.read, times))
        return known

    def _is_renamed(self, recorded: Any, live: Any, renamed: dict[str, str]) -> bool:
        if not isinstance(recorded, str) or not isinstance(live, str):
            return False
        known = renamed.get(recorded) or self._live.get(recorded)
        if known is not None:
            return known == live
        shape = _shape(recorded)
        if shape is None or shape != _shape(live) or live in self._recorded or live in renamed.values():
            return False
        if any(recorded in text or live in text for text in self._answered()) or any(live in text for text in self._asked()):
            return False
        renamed[recorded] = live
        return True

    def _same_but_ids(self, found: ValueDifference, renamed: Mapping[str, str]) -> bool:
        known = {**self._live, **renamed}
        if not known:
            return False
        pattern = re.compile("|".join(re.escape(recorded) for recorded in sorted(known, key=len, reverse=True)))
        return bool(pattern.sub(lambda one: known[one[0]], found.recorded) == found.actual)

    def _answered(self) -> list[str]:
        """All that the record gave to the program."""
        if self._answers is None:
            self._answers = [
                json.dumps(step.output, ensure_ascii=False) if step.kind == "model_call" else step.typed_result or ""
                for step in self._run.steps
                if step.kind not in ("agent", "handoff")
            ]
            self._answers.append(self._run.typed_input or "")
        return self._answers

    def _asked(self) -> Iterator[str]:
        return (step.typed_input for step in self._run.steps if step.typed_input is not None)


def _at(places: tuple[Place, ...], keys: Keys) -> bool:
    return any(place.covers(keys) for place in places)


def _shape(text: str) -> str | None:
    """What sort of made id a text looks like; ``None`` where it looks like none."""
    if not 8 <= len(text) <= _LONGEST:
        return None
    if _UUID.fullmatch(text):
        return f"uuid {len(text)}"
    found = _PREFIXED.fullmatch(text)
    if found is not None and _is_random(found["rest"]):
        return f"{found['prefix']}…"
    return "token" if _TOKEN.fullmatch(text) and _is_random(text) else None


def _is_random(text: str) -> bool:
    return any(c.isdigit() for c in text) or (text != text.lower() and text != text.upper() and not text.istitle())


def _is_moment(value: Any) -> bool:
    if isinstance(value, str):
        return _ISO.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and _EPOCH[0] <= value <= _EPOCH[1]

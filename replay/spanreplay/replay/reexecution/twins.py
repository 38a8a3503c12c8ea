"""Recorded steps of others that asked the same at once and were answered differently: which of them answers a live call is chance.

Nothing in their spans tells such calls apart, where no history and no agent around the live call does. Calls that were made one after the
other are told apart by their order.
"""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TypeAlias

from spanreplay.replay.model import Json, Run, Step

Interval: TypeAlias = tuple[int, int]


class Twins:
    """The steps of one run by what they asked.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def of(self, around: "Twins", step: Step) -> Iterator[Step]:
        """The steps of this run that asked what a step did, in parallel to it, and got something else.

        Args:
            around: the twins of the run of the step.
            step: the step.
        """
        for other in self._alike.get(_key(step), ()):
            itself = around.run.run_id == self.run.run_id and other.seq == step.seq
            if itself or other.input != step.input or (other.output, other.error) == (step.output, step.error):
                continue
            here, there = around.place(step), self.place(other)
            apart = self.run.run_id != around.run.run_id or step.parent_seq != other.parent_seq
            each = apart or step.requested_by != other.requested_by
            together = _meet(_time(step), _time(other)) or (each and _meet(around.open(step), self.open(other)))
            if together or (apart and _meet(_time(step), there) and _meet(_time(other), here)):
                yield other

    def open(self, step: Step) -> Interval:
        """From when a step could have been made, since the answer that asks for it was there, to when it ended."""
        asked = None if step.requested_by is None else self._by_seq.get(step.requested_by)
        start, end = _time(step)
        return (start, end) if asked is None else (min(start, _time(asked)[1]), end)

    def place(self, step: Step) -> Interval:
        """When what is around a step of this run went on."""
        around = None if step.parent_seq is None else self._by_seq.get(step.parent_seq)
        return self._whole if around is None else _time(around)

    @cached_property
    def _alike(self) -> dict[Hashable, list[Step]]:
        found: dict[Hashable, list[Step]] = defaultdict(list)
        for step in self.run.steps:
            found[_key(step)].append(step)
        return found

    @cached_property
    def _by_seq(self) -> dict[int, Step]:
        return {step.seq: step for step in self.run.steps}

    @cached_property
    def _whole(self) -> Interval:
        run = self.run
        times = [_time(step) for step in run.steps]
        start = min((start for start, _ in times), default=run.started_ns)
        end = max((end for _, end in times), default=run.started_ns)
        return min(start, run.started_ns), max(end, run.ended_ns or 0)


def _key(step: Step) -> Hashable:
    """What steps that asked the same have in common, and few others have; cheap for a long history."""
    said: Json = step.input.get("messages") if isinstance(step.input, dict) else None
    last = said[-1:] if isinstance(said, list) else step.input
    return step.kind, step.name, len(said) if isinstance(said, list) else 0, hash(json.dumps(last, sort_keys=True, default=str))


def _time(step: Step) -> Interval:
    return step.started_ns, step.started_ns if step.ended_ns is None else step.ended_ns


def _meet(one: Interval, other: Interval) -> bool:
    return one[0] < other[1] and other[0] < one[1]

"""Which recorded step is this live call?

A call is found by its causal path and then checked against the recorded input. Where the path cannot know the caller (workers
that take from a queue, another Python version), a step of another scope with the very same input answers it, and the report
says ``matched_by=input``. Call ids help nobody here: real traces reuse them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from spanreplay.content.canonical import canonical_json
from spanreplay.content.redaction import mask
from spanreplay.replay.model import Run, Step

MatchedBy: TypeAlias = Literal["path", "input"]

_STUB_GRADES: Final = frozenset({"exact", "semantic"})


def comparable(text: str | None) -> str | None:
    """The form in which two inputs are compared: canonical JSON, redactions without their run's hash."""
    if text is None:
        return None
    masked = mask(text)
    try:
        return canonical_json(json.loads(masked))
    except ValueError:
        return masked


def scope_of(path: str) -> str:
    """The scope part of a causal path."""
    return path.rpartition("/")[0]


def _may_be_caused_by(step: Step, stream: Step) -> bool:
    """Was ``step`` made while ``stream`` had given a part already? Its reader may have made it, so the stream cannot wait for it."""
    if step.requested_by == stream.seq:
        return True
    if stream.typed_items is not None:
        return (step.seq_start or 0) > (stream.seq_start or 0)
    chunks = stream.wire.chunks if stream.wire is not None else ()
    return bool(chunks) and step.started_ns >= stream.started_ns + chunks[0][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A recorded step that answers a live call."""

    step: Step
    by: MatchedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """No recorded step answers a live call."""

    kind: Literal["input", "order", "never_recorded", "already_used", "not_replayable"]
    step: Step | None
    """The recorded step that was expected here, if any."""
    nearest: tuple[Step, ...] = ()


class RecordedRun:
    """One recorded run, prepared for matching. Not locked: the interceptor holds its own lock around every use."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.by_seq = {s.seq: s for s in run.steps}
        self.by_path: dict[str, Step] = {s.path: s for s in run.steps if s.path is not None}
        self.used: set[int] = set()
        self.covered: set[int] = set()
        self._inputs: dict[int, str | None] = {}
        self._alike: dict[tuple[str, str], list[Step]] = defaultdict(list)
        self._in_scope: dict[str, list[Step]] = defaultdict(list)
        self._first_free: dict[str, int] = defaultdict(int)
        self._children: dict[int, list[int]] = defaultdict(list)
        for step in run.steps:
            self._alike[step.kind, step.name].append(step)
            if step.path is not None:
                self._in_scope[scope_of(step.path)].append(step)
            if step.parent_seq is not None:
                self._children[step.parent_seq].append(step.seq)
        for steps in self._in_scope.values():
            steps.sort(key=lambda s: s.seq_start or 0)

    def input_of(self, step: Step) -> str | None:
        """The comparable input of a recorded step, computed once."""
        if step.seq not in self._inputs:
            self._inputs[step.seq] = comparable(step.typed_input)
        return self._inputs[step.seq]

    def free(self, step: Step) -> bool:
        """True while the step has neither answered a call nor been covered by a stubbed one."""
        return step.seq not in self.used and step.seq not in self.covered

    def match(self, kind: str, name: str, path: str, asked: str | None) -> Found | Missed:
        """Find the recorded step for a live call.

        Args:
            kind: kind of the call.
            name: name of the call.
            path: its causal path, relative to the run.
            asked: its comparable input.
        """
        at_path = self.by_path.get(path)
        if at_path is not None and self.free(at_path):
            if self.input_of(at_path) == asked:
                return self._checked(at_path)
            return self._elsewhere(kind, name, path, asked) or Missed(kind="input", step=at_path)
        elsewhere = self._elsewhere(kind, name, path, asked)
        if elsewhere is not None:
            return elsewhere
        alike = self._alike[kind, name]
        repeated = [s for s in alike if self.input_of(s) == asked and not self.free(s)]
        expected = self._next_expected(path)
        return Missed(kind="already_used" if repeated else "never_recorded", step=None, nearest=tuple((repeated or expected or alike)[:3]))

    def _checked(self, step: Step) -> Found | Missed:
        """The step at the very path: is it its turn among the calls made one after the other from the same place?"""
        if step.seq_start is not None:
            for earlier in self._free_from(scope_of(step.path or "")):
                if earlier.seq_start is None or earlier.seq_start >= step.seq_start:
                    break
                if (
                    earlier.seq_end is not None
                    and earlier.process == step.process
                    and earlier.seq_end < step.seq_start
                    and self.free(earlier)
                ):
                    return Missed(kind="order", step=earlier)
        if step.outcome == "unknown" or step.grade not in _STUB_GRADES:
            return Missed(kind="not_replayable", step=step)
        return Found(step=step, by="path")

    def _free_from(self, scope: str) -> Iterator[Step]:
        """The steps of a scope in the order they began, from the first that is still free."""
        steps = self._in_scope[scope]
        first = self._first_free[scope]
        while first < len(steps) and not self.free(steps[first]):
            first += 1
        self._first_free[scope] = first
        return islice(steps, first, None)

    def _elsewhere(self, kind: str, name: str, path: str, asked: str | None) -> Found | None:
        """A free step with this very input, made from another place (or from no known place)."""
        here = scope_of(path)
        for step in self._alike[kind, name]:
            if (
                self.free(step)
                and (step.path is None or scope_of(step.path) != here)
                and step.outcome != "unknown"
                and step.grade in _STUB_GRADES
                and self.input_of(step) == asked
            ):
                return Found(step=step, by="input")
        return None

    def _next_expected(self, path: str) -> list[Step]:
        return [s for s in self._in_scope[scope_of(path)] if self.free(s)]

    def cover(self, step: Step) -> list[int]:
        """Mark every step inside ``step`` as covered; returns their ``seq``."""
        found: list[int] = []
        todo = list(self._children[step.seq])
        while todo:
            seq = todo.pop()
            found.append(seq)
            todo.extend(self._children[seq])
        self.covered.update(found)
        return found

    def unreached(self) -> list[Step]:
        """Recorded steps that no live call asked for, in order."""
        return [s for s in self.run.steps if self.free(s)]

    @cached_property
    def ended_before(self) -> dict[int, frozenset[int]]:
        """For each step, the steps that overlapped it and ended before it: what :mod:`~spanreplay.replay.turns` waits for."""
        inside = {seq for step in self.run.steps if step.kind != "agent" for seq in self._descendants(step.seq)}
        order: dict[int, frozenset[int]] = {}
        for step in self.run.steps:
            if step.kind == "agent" or step.seq in inside or step.seq_end is None:
                continue
            waits = [
                other.seq
                for other in (self.by_seq[seq] for seq in step.overlaps if seq in self.by_seq)
                if other.kind != "agent"
                and other.seq not in inside
                and other.process == step.process
                and other.seq_end is not None
                and other.seq_end < step.seq_end
                and not _may_be_caused_by(other, step)
            ]
            if waits:
                order[step.seq] = frozenset(waits)
        return order

    def _descendants(self, seq: int) -> Iterable[int]:
        todo = list(self._children[seq])
        while todo:
            child = todo.pop()
            yield child
            todo.extend(self._children[child])


class Recording:
    """The runs a replay is fed from: one, or all runs of a recorded command."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = [RecordedRun(r) for r in sorted(runs, key=lambda r: r.started_ns)]
        self._taken: set[int] = set()

    def command(self) -> RecordedRun | None:
        """The run of the recorded command itself: what is called outside every agent run belongs to it."""
        for recorded in self.runs:
            if recorded.run.is_command:
                return recorded
        return self.runs[0] if len(self.runs) == 1 and self.runs[0].run.path is None else None

    def agent_run(self, name: str, path: str, asked: str | None) -> RecordedRun | None:
        """The recorded run for an agent run that begins now: the one from the same place, else the next of that name."""
        free = [r for r in self.runs if id(r) not in self._taken and not r.run.is_command]
        named = [r for r in free if r.run.agent_name == name] or (free if len(free) == 1 else [])
        equal = [r for r in named if comparable(r.run.typed_input) == asked]
        for choice in ([r for r in equal if r.run.path == path], equal, [r for r in named if r.run.path == path], named):
            if choice:
                self._taken.add(id(choice[0]))
                return choice[0]
        return None


def parsed(text: str | None) -> Any:
    """A comparable input as a JSON value; the text itself where it is none."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text

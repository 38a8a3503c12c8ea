"""What a recorded run says to whoever matches calls with it: computed once for a run, and shared by all replays of it.

Nothing here changes after it was computed. What a replay takes of the record is in :mod:`spanreplay.replay.reexecution.matching`.
"""

import json
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final
from weakref import ref

from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reading.meaning import live_meaning, recorded_meaning
from spanreplay.replay.rebuilding.origin import told_by_others
from spanreplay.replay.reexecution.bursts import Burst, bursts, in_bursts
from spanreplay.replay.reexecution.forks import Fork, forks_in, is_job, levels_of, scope_of
from spanreplay.replay.reexecution.forms import comparable
from spanreplay.replay.reexecution.gathered import gathered
from spanreplay.replay.reexecution.standing import duration_ns


def index_of(run: Run, process: str | None = None) -> "RunIndex":
    """The index of a run, made where there is none yet; it goes with the run.

    Args:
        run: the run.
        process: only what this recorded process made, and what no process is known of; left out, all of it.
    """
    kept = _indexes.get(id(run))
    if kept is None or kept[0]() is not run:
        kept = _indexes[id(run)] = ref(run, partial(_forget, id(run))), {}
    made = kept[1]
    found = made.get(process)
    return found if found is not None else made.setdefault(process, RunIndex(run, process))


_indexes: Final[dict[int, tuple["ref[Run]", dict[str | None, "RunIndex"]]]] = {}


def _forget(number: int, gone: "ref[Run]") -> None:
    kept = _indexes.get(number)
    if kept is not None and kept[0] is gone:
        del _indexes[number]


class RunIndex:
    """See the module's text. It does not hold the run itself, only its steps.

    Attributes:
        steps: what may answer, in order.
        by_seq: all steps of the run.
        by_path: the steps that may answer.
        by_meaning: the record has messages and not the exchanges: model calls are compared, and answered, by what they mean.
        forks: see :func:`~spanreplay.replay.reexecution.forks.forks_in`.
    """

    def __init__(self, run: Run, process: str | None) -> None:
        told = told_by_others(run)
        ours = tuple(s for s in run.steps if s.seq not in told)
        self.steps = ours if process is None else tuple(s for s in ours if s.process in (process, None) or is_job(s.path))
        self.by_seq: Mapping[int, Step] = {s.seq: s for s in run.steps}
        self.by_path: Mapping[str, Step] = {s.path: s for s in self.steps if s.path is not None}
        models = [s for s in ours if s.kind == "model_call"]
        self.by_meaning = any(s.typed_input is None for s in models)
        self.forks = forks_in(self.steps)
        self._with_tools = any(isinstance(s.input, dict) and s.input.get("tools") for s in models)
        self._all = run.steps
        self._inputs: dict[int, str | None] = {}
        self._inside: dict[int, tuple[int, ...]] = {}
        self._alike: dict[tuple[str, str], list[Step]] = defaultdict(list)
        self._in_scope: dict[str, list[Step]] = defaultdict(list)
        self._children: dict[int, list[int]] = defaultdict(list)
        for step in self.steps:
            self._alike[sort_of(step.kind, step.name)].append(step)
            if step.path is not None:
                self._in_scope[scope_of(step.path)].append(step)
        for step in run.steps:
            if step.parent_seq is not None:
                self._children[step.parent_seq].append(step.seq)
        for steps in self._in_scope.values():
            steps.sort(key=lambda s: s.seq_start or 0)

    # ---- inputs -------------------------------------------------------------------------------------------------

    def input_of(self, step: Step) -> str | None:
        """The comparable input of a recorded step."""
        if step.seq not in self._inputs:
            text = step.typed_input
            if self.by_meaning and step.kind == "model_call":
                text = _with_model(recorded_meaning(step, tools=self._with_tools), step.name)
            self._inputs[step.seq] = comparable(text)
        return self._inputs[step.seq]

    def asked(self, kind: str, name: str, text: str | None, there: Step | None = None) -> str | None:
        """The comparable input of a live call: by its meaning where the record has no more of a model call.

        Args:
            kind: kind of the call.
            name: name of the call.
            text: its input.
            there: the recorded step at its place, whose input it may be as it stands.
        """
        if self.by_meaning and kind == "model_call" and text is not None:
            meaning = _with_model(live_meaning(text, tools=self._with_tools), name)
            return comparable(text if meaning is None else meaning)
        if there is not None and text == self.input_of(there):  # a comparable text is its own comparable form
            return text
        form = comparable(text)
        return self._sent.get(form, form) if self._sent and form is not None else form

    @cached_property
    def _sent(self) -> Mapping[str, str]:
        """What a fork sent, to what its agent had asked: an agent that now asks for the former by itself asks the same."""
        found = {comparable(s.typed_sent): self.input_of(s) for s in self.steps if s.typed_sent is not None}
        return {sent: asked for sent, asked in found.items() if sent is not None and asked is not None}

    # ---- groups -------------------------------------------------------------------------------------------------

    def alike(self, kind: str, name: str) -> Sequence[Step]:
        """The steps of a sort, in order."""
        return self._alike.get(sort_of(kind, name), ())

    def in_scope(self, scope: str) -> Sequence[Step]:
        """The steps that were made from one place, in the order they began."""
        return self._in_scope.get(scope, ())

    def alike_in(self, scope: str, kind: str, name: str) -> Iterator[Step]:
        """Those of a sort among them."""
        sort = sort_of(kind, name)
        return (s for s in self.in_scope(scope) if sort_of(s.kind, s.name) == sort)

    @cached_property
    def gathered(self) -> frozenset[str]:
        """The scopes of tasks and threads that all make the same calls, see :mod:`~spanreplay.replay.reexecution.gathered`."""
        return gathered(self._in_scope, self.input_of)

    @cached_property
    def made_in_tasks(self) -> frozenset[tuple[str, str]]:
        """What tasks and threads called: their path without their number, and the path of the call from there on."""
        paths = [step.path for step in self.steps if step.path is not None]
        return frozenset((fork.rpartition("#")[0], path[len(fork) :]) for path in paths for _, fork in levels_of(scope_of(path)))

    def is_empty(self, scope: str) -> bool:
        """Whether no call was made in a scope, nor in what was started there."""
        return not any(path.startswith(f"{scope}/") for path in self.by_path)

    def children(self, seq: int) -> Sequence[int]:
        """``seq`` of the steps whose parent is that one."""
        return self._children.get(seq, ())

    def inside(self, seq: int) -> Sequence[int]:
        """``seq`` of every step inside that one."""
        found = self._inside.get(seq)
        if found is None:
            found = self._inside[seq] = tuple(self._descendants(seq))
        return found

    def _descendants(self, seq: int) -> Iterable[int]:
        todo = list(self.children(seq))
        while todo:
            child = todo.pop()
            yield child
            todo.extend(self.children(child))

    # ---- order --------------------------------------------------------------------------------------------------

    @cached_property
    def fork_order(self) -> Mapping[str, Sequence[str]]:
        """Path of a place to those of the tasks and threads started there, in the order in which their calls were all over."""

        def over(found: Mapping[str, Fork], path: str) -> int:
            return found[path].last.seq_end or 0

        return {parent: sorted(found, key=partial(over, found)) for parent, found in self.forks.items()}

    @cached_property
    def ended_before(self) -> Mapping[int, frozenset[int]]:
        """For each step, the one that ended before it, of the same process: what :mod:`~spanreplay.replay.reexecution.turns` waits for.

        Also where the two did not overlap: which of two tasks or threads comes first is chance even then.
        """
        order: dict[int, frozenset[int]] = {}
        for process, steps in self._ended.items():
            parts = in_bursts(steps, self._bursts[process])
            for number, part in enumerate(parts):
                for step in part:
                    those = ([s.seq for s in parts[at] if not _may_be_caused_by(s, step)] for at in range(number - 1, -1, -1))
                    before = next(filter(None, those), None)
                    if before is not None:
                        order[step.seq] = frozenset(before)
        return order

    @cached_property
    def together(self) -> Mapping[int, Sequence[int]]:
        """Step to those that are given together with it, in their order; see :mod:`~spanreplay.replay.reexecution.bursts`."""
        found = (tuple(s.seq for s in burst.steps) for bursts in self._bursts.values() for burst in bursts)
        return {seq: seqs for seqs in found if len(seqs) > 1 for seq in seqs}

    @cached_property
    def begun_before(self) -> Mapping[int, frozenset[int]]:
        """For each step, those that had begun when it ended, not yet when the one before it did, and that were cancelled in the end.

        What it gives may be what had them cancelled, as the error of one task of a group does: who has not begun by then never will.
        """
        order: dict[int, set[int]] = defaultdict(set)
        for process, steps in self._ended.items():
            of_first = {burst.steps[0].seq: burst for burst in self._bursts[process]}
            parts = [(part[0].seq_end or 0, of_first.get(part[0].seq), part) for part in in_bursts(steps, self._bursts[process])]
            parts = [(end if burst is None else burst.until, burst, part) for end, burst, part in parts if part[0].outcome != "cancelled"]
            parts.sort(key=_moment)
            for step in steps:
                at = bisect(parts, step.seq_start or 0, key=_moment) if step.outcome == "cancelled" else len(parts)
                if at == len(parts) or parts[at][0] > (step.seq_end or 0):
                    continue
                _, burst, part = parts[at]
                if not any(_may_be_caused_by(step, one) for one in part) and (burst is None or burst.may_have_begun(step)):
                    for one in part:
                        order[one.seq].add(step.seq)
        return {seq: frozenset(begun) for seq, begun in order.items()}

    @cached_property
    def _bursts(self) -> Mapping[str | None, Sequence[Burst]]:
        return {process: bursts(steps, self._all) for process, steps in self._ended.items()}

    @cached_property
    def _ended(self) -> Mapping[str | None, Sequence[Step]]:
        """The steps that are answered, by process, in the order in which they ended."""
        inside = {seq for step in self._all if not _runs_again(step) for seq in self._descendants(step.seq)}
        ended: dict[str | None, list[Step]] = defaultdict(list)
        for step in sorted(self._all, key=lambda s: s.seq_end or 0):
            if not _runs_again(step) and step.seq not in inside and step.seq_end is not None and not is_job(step.path):
                ended[step.process].append(step)
        return ended

    @cached_property
    def pending_s(self) -> Mapping[int, float]:
        """How long the steps took that were cancelled, or that wait for one of these to begin."""
        return {s.seq: duration_ns(s) / 1e9 for s in self._all if s.outcome == "cancelled" or s.seq in self.begun_before}


def sort_of(kind: str, name: str) -> tuple[str, str]:
    """Calls of one sort can stand for each other. A model's name is a part of what it is asked."""
    return kind, "" if kind == "model_call" else name


def _with_model(meaning: str | None, name: str) -> str | None:
    return None if meaning is None else canonical_json({**json.loads(meaning), "model": name})


def _may_be_caused_by(step: Step, stream: Step) -> bool:
    """Was ``step`` made while ``stream`` had given a part already? Its reader may have made it, so the stream cannot wait for it."""
    if step.requested_by == stream.seq:
        return True
    chunks = stream.wire.chunks if stream.wire is not None else ()
    return bool(chunks) and step.started_ns >= stream.started_ns + chunks[0][1]


def _moment(part: tuple[int, Burst | None, Sequence[Step]]) -> int:
    return part[0]


def _runs_again(step: Step) -> bool:
    return step.passed or step.kind in ("agent", "handoff")

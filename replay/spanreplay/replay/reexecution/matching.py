"""Which recorded step is this live call?

A call is found by its causal path and then checked against the recorded input. Where the path cannot know the caller (workers
that take from a queue, another Python version, a trace of another tool), a step of another scope with the very same input answers it,
and the report says ``matched_by=input``. Call ids help nobody here: real traces reuse them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from spanreplay.replay.model import Run, Step
from spanreplay.replay.reasons import ATTESTED
from spanreplay.replay.reexecution.comparing import EXACT, Comparing
from spanreplay.replay.reexecution.forks import FORK, NOT_AWAITED, Forked, comes_later, has_siblings, owner_of, scope_of
from spanreplay.replay.reexecution.index import index_of, sort_of
from spanreplay.replay.reexecution.likening import Likening
from spanreplay.replay.reexecution.matched import Claim, Found, Like, Missed, stub_grades
from spanreplay.replay.reexecution.overtaking import Overtaking
from spanreplay.replay.reexecution.repeats import Repeats
from spanreplay.replay.reexecution.standing import placed
from spanreplay.replay.reexecution.unasked import Unasked, over_before

_LIKENED: Final = 50
"""Steps elsewhere that are looked at for one whose input counts as equal."""


def _start(step: Step) -> int:
    return step.seq_start or 0


class RecordedRun:
    """One recorded run, prepared for matching. Not locked: the interceptor holds its own lock around every use.

    Args:
        run: the run.
        process: only what this recorded process made (and what no process is known of) answers; left out, all of it.
        accept_incomplete: steps whose record is known to lack something answer too.
        comparing: what inputs may differ in.
    """

    def __init__(self, run: Run, *, process: str | None = None, accept_incomplete: bool = False, comparing: Comparing = EXACT) -> None:
        self.run = run
        self.process = process
        self.index = index = index_of(run, process)
        self.steps = index.steps
        """What may answer."""
        self.by_path = index.by_path
        self.by_meaning = index.by_meaning
        self.input_of = index.input_of
        self.asked = index.asked
        self.changed: list[dict[str, Any]] = []
        """What the agent of the live run is defined by otherwise, see :mod:`spanreplay.replay.reexecution.stepwise`."""
        self.used: set[int] = set()
        self.covered: set[int] = set()
        self._likening = Likening(run, comparing)
        self._stubs = stub_grades(accept_incomplete=accept_incomplete)
        self._claims: dict[int, Claim] = {}
        self._shuffled: set[str] = set()
        """Scopes in which which call comes first is chance: one of them was answered by input."""
        self._overtaking = Overtaking()
        self.unasked = Unasked(index, self.free, self._shuffled)
        self.repeats = Repeats(index, self.used)

    @property
    def first_process(self) -> str | None:
        """The recorded process that began to make its calls."""
        return self.steps[0].process if self.steps else None

    def fit(self, kind: str, name: str, path: str, text: str | None) -> int:
        """How badly this run fits one live call: 0 the very call at its place, 1 elsewhere, 2 another input at its place, 3 not at all."""
        asked = self.asked(kind, name, text)
        at_path = self.by_path.get(path)
        if at_path is not None and self.input_of(at_path) == asked:
            return 0
        if any(self.input_of(s) == asked for s in self.index.alike(kind, name)):
            return 1
        return 3 if at_path is None else 2

    def free(self, step: Step) -> bool:
        """True while the step has neither answered a call nor been covered by a stubbed one."""
        return step.seq not in self.used and step.seq not in self.covered

    def match(
        self,
        kind: str,
        name: str,
        path: str,
        asked: str | None,
        inside: tuple[str, Step] | None = None,
        forked: Forked | None = None,
    ) -> Found | Missed:
        """Find the recorded step for a live call.

        Args:
            kind: kind of the call.
            name: name of the call.
            path: its causal path, relative to the run.
            asked: its comparable input.
            inside: path of the sub-agent it is made in, and the recorded step that one was matched with.
            forked: tells which tasks and threads the replay has started so far.
        """
        path = placed(path, inside)
        found = self._matched(kind, name, path, asked, inside, forked)
        if isinstance(found, Found) or found.kind == "not_replayable" or found.claim is not None:
            return found
        return self._likened(kind, name, path, asked) or found

    def _matched(
        self, kind: str, name: str, path: str, asked: str | None, inside: tuple[str, Step] | None, forked: Forked | None
    ) -> Found | Missed:
        at_path = self.by_path.get(path)
        if at_path is not None and self.free(at_path):
            skipped = self.unasked.before(at_path)
            if self.input_of(at_path) == asked:
                if skipped is None and forked is not None and inside is None:
                    skipped = self.unasked.fork_before(at_path, forked)
                if skipped is not None:
                    return Missed(kind="order", step=skipped, instead=at_path)
                return self._answering(at_path)
            later = next((s for s in self.index.alike_in(scope_of(path), kind, name) if self.free(s) and self.input_of(s) == asked), None)
            overtakes = later is not None and self._is_one_of_many(path, kind, name, forked if inside is None else None)
            if later is not None and overtakes and self._is_gathered(path) and self.may_answer(later):
                return self._own(later)
            elsewhere = self._elsewhere(kind, name, path, asked) if FORK in scope_of(path) else None
            if elsewhere is not None and (forked is None or inside is not None or not comes_later(elsewhere.step, at_path, forked)):
                if later is None or not overtakes or not self.may_answer(later) or self._overtaking.passed(later):
                    return elsewhere
                return self._own(later)
            guilty = self._guilty(at_path, overtaken=overtakes)
            if guilty is not None:
                return guilty
            if later is not None and overtakes:
                self._overtaking.add(later)
                return Found(step=later, by="input", away=True)
            if later is not None:
                return Missed(kind="order", step=skipped or at_path, instead=later)
            if skipped is not None and kind == "model_call":  # it tells what the calls before it gave, and lacks that of the skipped one
                return Missed(kind="order", step=skipped)
            if skipped is not None:  # what is asked is recorded nowhere, and something else was to come: one call more
                return self._unknown(kind, name, path, asked, at_path)
            again = self.repeats.just_before(at_path, asked)
            if len(again) > 1:  # a loop that goes round once more
                return self._unknown(kind, name, path, asked, at_path)
            return Missed(kind="input", step=at_path, skipped=self.unasked.in_forks_before(at_path), again=again[0] if again else None)
        return (
            self._elsewhere(kind, name, path, asked)
            or self._turned(kind, name, path, asked)
            or self._unknown(kind, name, path, asked, at_path)
        )

    def _is_gathered(self, path: str) -> bool:
        return FORK in path and scope_of(path) in self.index.gathered

    def _begins_again(self, kind: str, name: str, path: str, asked: str | None) -> bool:
        """Has a task or thread made all its calls, and begins anew with the first? So do workers, whose items were all alike."""
        first = self.index.in_scope(scope_of(path))[0]
        return path not in self.by_path and sort_of(first.kind, first.name) == sort_of(kind, name) and self.input_of(first) == asked

    def _own(self, later: Step) -> Found:
        """A call that has lost its place, as one before it is missing: its own task has asked the same later, and so have others."""
        scope = scope_of(later.path or "")
        if self._is_gathered(later.path or ""):
            self._overtaking.add(later)
        else:  # a worker may still come to what it has not asked for, in whatever order
            self._shuffled.add(scope)
        return Found(step=later, by="input")

    def _is_one_of_many(self, path: str, kind: str, name: str, forked: Forked | None) -> bool:
        """Do several tasks or threads of one place make calls of this sort, as workers do? See :class:`Overtaking`.

        Where one worker was faster than all others, the record has none but it; then that the replay has started others is enough.
        """
        here = scope_of(path)
        if forked is not None and has_siblings(here, forked):
            return True
        others = (scope_of(s.path) for s in self.index.alike(kind, name) if s.path is not None)
        return FORK in here and any(there != here and FORK in there and owner_of(there) == owner_of(here) for there in others)

    def _turned(self, kind: str, name: str, path: str, asked: str | None) -> Missed | None:
        """A call that a task or thread makes after another that the record has after it."""
        if not self._overtaking:
            return None
        alike = self.index.alike_in(scope_of(path), kind, name)
        step = next((s for s in alike if self.free(s) and self._overtaking.passed(s) and self.input_of(s) == asked), None)
        return None if step is None else Missed(kind="order", step=step, instead=self._overtaking.furthest(step))

    def _likened(self, kind: str, name: str, path: str, asked: str | None) -> Found | Missed | None:
        """Where nothing was asked just so: the step at the place of the call, or the nearest elsewhere, whose input counts as equal."""
        at_path = self.by_path.get(path)
        if at_path is not None and self.free(at_path):
            like = self._likening.judge(at_path, self.input_of(at_path), asked)
            skipped = None if like is None else self.unasked.before(at_path)
            if skipped is not None:
                return Missed(kind="order", step=skipped, instead=at_path)
            if like is not None:
                return self._accepted(at_path, like, away=False)
        best: tuple[Step, Like] | None = None
        for step in islice((s for s in self._elsewhere_free(kind, name, path, asked) if s is not at_path), _LIKENED):
            like = self._likening.judge(step, self.input_of(step), asked)
            if like is not None and (best is None or like.distance < best[1].distance):
                best = step, like
        return None if best is None else self._accepted(*best, away=True)

    def _accepted(self, step: Step, like: Like, *, away: bool) -> Found | Missed:
        found = self._answering(step)
        if isinstance(found, Missed):
            return found
        self._likening.accept(like)
        return replace(found, by=like.by, like=like, away=away)

    def at(self, path: str, inside: tuple[str, Step] | None = None) -> Step | None:
        """The recorded step at the place of a live call; the arguments are those of :meth:`match`."""
        return self.by_path.get(placed(path, inside))

    def same(self, kind: str, name: str, asked: str | None) -> Step | None:
        """A step that asked the same and may answer, from wherever; one that has answered already only where no other is left."""
        alike = [s for s in self.index.alike(kind, name) if self.may_answer(s) and self.input_of(s) == asked]
        return next((s for s in alike if self.free(s)), alike[0] if alike else None)

    def left(self, but: Collection[str]) -> Iterator[Step]:
        """The steps that have not answered, but those of these outcomes."""
        return (s for s in self.steps if self.free(s) and s.outcome not in but)

    def _unknown(self, kind: str, name: str, path: str, asked: str | None, at_path: Step | None) -> Missed:
        claim = None if at_path is None else self._claims.get(at_path.seq)
        if claim is not None and at_path is not None and self.input_of(at_path) == asked:  # the call that took it is the odd one
            expected = self.by_path.get(claim.path)
            if expected is not None and self.free(expected):
                return Missed(kind="input", step=expected, claim=claim)
            return Missed(kind="never_recorded", step=None, nearest=(at_path,), claim=claim)
        alike = self.index.alike(kind, name)
        repeated = [s for s in alike if self.input_of(s) == asked and not self.free(s)]
        scope = scope_of(path)
        following = list(islice(self.unasked.in_scope(scope), 3))
        awaited = next((s for s in following if s.outcome not in NOT_AWAITED), None) if scope not in self._shuffled else None
        nearest = tuple((repeated or following or alike)[:3])
        return Missed(kind="already_used" if repeated else "never_recorded", step=None, next=awaited, nearest=nearest)

    def _guilty(self, step: Step, *, overtaken: bool) -> Missed | None:
        """Did an earlier call take the answer of another one? It differs first, and the input of ``step`` only follows from it.

        Args:
            step: the step at the place of a call that asks something else.
            overtaken: that is what a worker asks which another one may have been faster than.
        """
        for seq, claim in self._claims.items():
            place = self.by_path.get(claim.path)
            if place is not None and self.free(place) and over_before(place, step):
                answered = self.index.by_seq[seq]
                if self._overtaking.passed(place) and scope_of(answered.path or "") == scope_of(claim.path):  # nobody else has come to it
                    return Missed(kind="order", step=place, instead=answered)
                return Missed(kind="input", step=place, claim=claim)
            if place is None and not overtaken and (self.index.by_seq[seq].seq_start or 0) > (step.seq_start or 0):
                return Missed(kind="never_recorded", step=None, nearest=(self.index.by_seq[seq],), claim=claim)
        return None

    def may_answer(self, step: Step) -> bool:
        """What another program told of is no call to answer: it is met again as what that program says is given again."""
        attested = any(reason.code == ATTESTED for reason in step.reasons)
        return step.outcome != "unknown" and (attested or step.grade in self._stubs)

    def _answering(self, step: Step) -> Found | Missed:
        if not self.may_answer(step):
            return Missed(kind="not_replayable", step=step)
        return Found(step=step, by="path")

    def shuffle(self, step: Step) -> None:
        """From now on it is chance which of the calls comes first that are made from the place of a step."""
        if step.path is not None:
            self._shuffled.add(scope_of(step.path))

    def alike(self, kind: str, name: str) -> Sequence[Step]:
        """The calls of this sort: of the same kind and, but for models, the same name; else those of the kind."""
        return self.index.alike(kind, name) or [step for step in self.steps if step.kind == kind]

    def claimed(self, step: Step, path: str, where: str | None) -> None:
        """Note that a call made at ``path`` was answered by ``step``, by input."""
        self._claims[step.seq] = Claim(path=path, asked=self.input_of(step), where=where)
        self._shuffled.add(scope_of(path))
        if step.path is not None:
            self._shuffled.add(scope_of(step.path))

    def is_one_of_several(self, step: Step) -> bool:
        """Whether another step that is still free asked the same, away from its place too, and was answered otherwise."""
        asked = self.input_of(step)
        return any(
            self.free(other) and self.input_of(other) == asked and (other.output, other.error) != (step.output, step.error)
            for other in self.index.alike(step.kind, step.name)
            if other is not step
        )

    def _elsewhere(self, kind: str, name: str, path: str, asked: str | None) -> Found | None:
        """A free step with this very input, made from another task or thread, or from no known place."""
        step = next((s for s in self._elsewhere_free(kind, name, path, asked) if self.input_of(s) == asked), None)
        return None if step is None else Found(step=step, by="input", away=True)

    def _elsewhere_free(self, kind: str, name: str, path: str, asked: str | None) -> Iterator[Step]:
        here = scope_of(path)
        if self._is_gathered(path) and here not in self._shuffled and not self._begins_again(kind, name, path, asked):
            return  # it has its own steps, and each of the others needs his
        for step in self.index.alike(kind, name):
            there = here if step.path is None else scope_of(step.path)
            if step.path is not None and not self._may_be_elsewhere(here, there):
                continue
            if self.free(step) and self.may_answer(step) and not (there == here and self._overtaking.passed(step)):
                yield step

    def _may_be_elsewhere(self, here: str, there: str) -> bool:
        """Can a call made from the one scope have been made from the other? Both are tasks or threads of the same step, or that step."""
        if here == there:
            return here in self._shuffled
        return (FORK in here or FORK in there) and owner_of(here) == owner_of(there)

    def has_inside(self, step: Step) -> bool:
        """Whether steps were recorded inside ``step``."""
        return bool(self.index.children(step.seq))

    def cover(self, step: Step) -> Sequence[int]:
        """Mark every step inside ``step`` as covered; returns their ``seq``."""
        found = self.index.inside(step.seq)
        self.covered.update(found)
        return found

"""Calls of a model that the runs of a session show together, and no span gave: some programs make a trace of each call.

A tool ran in one run of the session, under an id that no answer here asked for, and a request in a later run of it tells that an answer
did. Other traces of a session may never have been imported: that a request tells more than is here proves nothing by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spanreplay.replay.model import Reason, Run, Step
from spanreplay.replay.rebuilding.lost_answers import Given, is_told, lost_answer, told_of_unasked
from spanreplay.replay.rebuilding.lost_endings import RAN


def lost_between(runs: Iterable[Run], given: Given) -> Iterator[tuple[Run, Step, Reason]]:
    """The steps whose messages have such an answer, each with its run; none of a session that has a run of our own.

    Args:
        runs: all that are known.
        given: by all of them.
    """
    sessions: dict[str, list[Run]] = {}
    for run in runs:
        if run.session_id is not None:
            sessions.setdefault(run.session_id, []).append(run)
    for members in sessions.values():
        if len(members) > 1:
            yield from _of_session(sorted(members, key=lambda run: (run.started_ns, run.run_id)), given)


def _of_session(runs: Sequence[Run], given: Given) -> Iterator[tuple[Run, Step, Reason]]:
    steps: list[Step] = []
    places: list[tuple[Run, Step]] = []
    for run in runs:
        if any(step.path is not None or (step.kind == "model_call" and not is_told(step)) for step in run.steps):
            return
        first = len(steps)
        for step in run.steps:
            places.append((run, step))
            around = None if step.parent_seq is None else first + step.parent_seq
            steps.append(replace(step, seq=len(places), parent_seq=around))
    if not any(step.kind in RAN and step.call_id is not None and step.call_id not in given.asked for step in steps):
        return
    ran = [step for step in steps if step.kind in RAN and step.call_id is not None]
    for step in told_of_unasked(steps, ran, [step for step in steps if step.kind == "model_call"], given):
        run, own = places[step.seq - 1]
        yield run, own, lost_answer(own, 1)

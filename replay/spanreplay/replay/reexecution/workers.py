"""Workers that take from a queue, in a recorded run: tasks or threads that run the same and make the same call again and again.

A causal path tells whose call it is by the worker and by how many it has made. Which item a worker takes is chance, so where all items are
asked for by the same call, nothing in the record tells them apart, unless the program names them: ``with scope(key):``. The times that a
worker read of the clock are the worker's too, and not the items'.
"""

from collections import Counter, defaultdict

from spanreplay.boundary.clock_reads import MOST_OF_ONE, decoded
from spanreplay.boundary.orders import decoded as orders_of
from spanreplay.instrumentation.shims.given_up import TAKES
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.forks import levels_of, scope_of


def unnamed_items(run: Run) -> str | None:
    """A call, by kind and name, that several workers made for items that nothing tells apart; ``None`` where there is none.

    Args:
        run: a recorded run.
    """
    made: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    names: dict[tuple[str, str, str], str] = {}
    for step in run.steps:
        levels = list(levels_of(scope_of(step.path or "")))
        if not levels or levels[-1][1] != scope_of(step.path or "") or step.typed_input is None:
            continue
        key = (levels[-1][1].rpartition("#")[0], f"{step.kind} {step.name}", step.typed_input)
        made[key][levels[-1][1]] += 1
        answers[key].add(f"{step.typed_result}{step.typed_error}{step.output if step.wire is not None else ''}")
        names[key] = f"{step.kind} {step.name}"
    found = (key for key, by in made.items() if len(by) > 1 and max(by.values()) > 1 and len(answers[key]) > 1)
    return next((names[key] for key in found), None)


def timed_items(run: Run, seq: int | None) -> str | None:
    """The call at a step, by kind and name, where several workers make it for each of their items, and read the clock for them.

    Args:
        run: a recorded run.
        seq: of the step.
    """
    step = next((one for one in run.steps if one.seq == seq), None)
    scope = "" if step is None else scope_of(step.path or "")
    levels = list(levels_of(scope))
    if step is None or not levels or levels[-1][1] != scope:
        return None
    label = scope.rpartition("#")[0]
    same = (scope_of(one.path or "") for one in run.steps if (one.kind, one.name) == (step.kind, step.name))
    made = Counter(one for one in same if one.rpartition("#")[0] == label)
    if len(made) < 2 or max(made.values()) < 2 or not any(count > 1 for (at, _), count in _clock_reads(run).items() if at in made):
        return None
    return f"{step.kind} {step.name}"


def queued_items(run: Run, name: str) -> bool:
    """Whether several workers that take from a queue make a call of this name for their items, one of them for more than one.

    Args:
        run: a recorded run.
        name: of the call: kind and name.
    """
    taking = _taking(run)
    made: dict[str, set[str]] = defaultdict(set)
    for step in run.steps if taking else ():
        scope = scope_of(step.path or "")
        if f"{step.kind} {step.name}" == name:
            made[scope.rpartition("#")[0]].add(scope)
    return any(len(workers) > 1 and not workers.isdisjoint(taking) for workers in made.values())


def _taking(run: Run) -> set[str]:
    """The scopes that took more than one item from a queue."""
    taken: Counter[str] = Counter()
    for (_, scope, name), items in orders_of([*run.orders, *(step.orders for step in run.steps if step.orders is not None)]):
        if name == TAKES:
            taken[scope] += 2
        elif name.startswith("get#"):
            taken.update(member for _, members in items for member in members if isinstance(member, str))
    return {scope for scope, count in taken.items() if count > 1}


def tireless_reader(run: Run, seq: int | None) -> str | None:
    """The function that read the clock, where a step was called, as often as is kept: what it read after that is not."""
    step = next((one for one in run.steps if one.seq == seq), None)
    if step is None:
        return None
    scope = scope_of(step.path or "")
    readers = (function for (at, function), count in _clock_reads(run).items() if at == scope and count >= MOST_OF_ONE)
    return next((function.partition(" ")[0] for function in readers), None)


def _clock_reads(run: Run) -> Counter[tuple[str, str]]:
    """How often the clock was read, by scope and function."""
    texts = dict.fromkeys([*run.clock_reads, *(step.clock_reads for step in run.steps if step.clock_reads is not None)])
    found: Counter[tuple[str, str]] = Counter()
    for text in texts:
        for (_, scope, function), times in decoded(text):
            found[scope, function] += len(times)
    return found

"""Workers that take from a queue, in a recorded run: tasks or threads that run the same and make the same call again and again.

A causal path tells whose call it is by the worker and by how many it has made. Which item a worker takes is chance, so where all items are
asked for by the same call, nothing in the record tells them apart, unless the program names them: ``with scope(key):``.
"""

from collections import Counter, defaultdict

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

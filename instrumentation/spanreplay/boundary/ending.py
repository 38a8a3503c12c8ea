"""What the record of a step's end says: what it gave, and what was learnt of it and of its run. For what it raised see ``raised``."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from spanreplay.boundary import loops
from spanreplay.boundary.writing import Writing, lossy_in, put_lossy
from spanreplay.content.codec import Encoded
from spanreplay.semconv import attributes as names

if TYPE_CHECKING:
    from spanreplay.boundary.step import Step


def put_end(
    step: "Step",
    attributes: dict[str, Any],
    writing: Writing,
    *,
    result: Encoded | None,
    items: Iterable[Encoded] | None,
    known: Iterable[Mapping[str, Any] | None],
) -> None:
    """Add to the attributes of a step's end.

    Args:
        step: that ends; its ``result`` is written already.
        attributes: get what is said.
        writing: of the step.
        result: what it returned.
        items: what a stream gave, in order.
        known: attributes that are known only now, as they are to stand there but for secrets.
    """
    for given in known:
        if given:
            writing.put_all(attributes, given)
    if result is not None and step.result is not None:
        if step.starts_run:
            attributes[names.RUN_OUTPUT] = step.result
        else:
            writing.put_typed(attributes, result, step.result, names.STEP_RESULT, step.call.result_attribute)
    if step.call.held is not None:
        left = step.call.held.left() if step.answer is None else step.answer.left
        if left is not None:
            attributes[names.STEP_LEFT] = writing.typed(names.STEP_LEFT, left)
    if step.starts_run:
        _put_run(step, attributes, writing)
    if items is not None:
        kept = list(items)
        attributes[names.STEP_ITEMS] = writing.typed(names.STEP_ITEMS, "[" + ",".join(i.text for i in kept) + "]")
        if any(i.lossy for i in kept):
            put_lossy(attributes, names.STEP_ITEMS)
    turn = None if step.session.sink is None else loops.turn_number()
    if turn is not None:
        attributes[names.STEP_TURN] = turn
    if names.STEP_LOSSY in attributes:
        put_lossy(attributes, *lossy_in(step.attributes))


def _put_run(step: "Step", attributes: dict[str, Any], writing: Writing) -> None:
    session = step.session
    untaped = None if step.run is None else step.run.untaped_json()
    if untaped is not None:
        attributes[names.RUN_UNTAPED] = writing.text(names.RUN_UNTAPED, untaped)
    if session.clock_reads:
        attributes[names.RUN_CLOCK] = session.clock_reads.take()
    if session.orders:
        attributes[names.RUN_ORDER] = writing.text(names.RUN_ORDER, session.orders.take())


def amending(step: "Step") -> Callable[[Mapping[str, Any]], None] | None:
    """What tells the sink more of a step that has ended, see ``session.AmendingSink``; ``None`` where it cannot be told."""
    amended: Callable[[str, str, Mapping[str, Any]], None] | None = getattr(step.session.sink, "amended", None)
    return None if amended is None else partial(amended, step.trace_id, step.span_id)

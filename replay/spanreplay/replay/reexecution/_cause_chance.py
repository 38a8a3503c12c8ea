"""What a replay does not hold and may have made a difference: which worker takes which item, and clocks read without end."""

from spanreplay.boundary.clock_reads import MOST_OF_ONE
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.workers import queued_items, timed_items, tireless_reader, unnamed_items


def by_chance(run: Run, difference: Difference) -> str:
    """What to say beside a cause that cannot be told; empty where nothing of the kind is seen in the run."""
    if (call := unnamed_items(run)) is not None:
        return f"; or workers took other items from a queue, and nothing tells whose {call} it is: with scope(key): around each item would"
    if (call := timed_items(run, difference.step)) is not None:
        times = "the times that they read are kept by worker: with scope(key): around each item they are the item's"
        return f"; or workers took other items from a queue for their {call}, and {times}"
    if queued_items(run, difference.name):
        why = "by timers of random length, or by threads, which a replay does not hold"
        advice = "with scope(key): around each item its calls are the item's"
        return f"; or workers took other items from a queue for their {difference.name}, {why}: {advice}"
    if (reader := tireless_reader(run, difference.step)) is not None:
        return f"; or {reader} read the clock again after the first {MOST_OF_ONE} times, which are all that is kept of it"
    return ""

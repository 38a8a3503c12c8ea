"""What a replay raises.

::

    BaseException
    └── ControlSignal                     (spanreplay.boundary.errors)
        └── ReplayDivergence              the agent asked for something else than was recorded
"""

from spanreplay.boundary.errors import ControlSignal
from spanreplay.replay.reexecution.ledger import Difference


class ReplayDivergence(ControlSignal):
    """The agent made a call that the record cannot answer.

    A ``BaseException``: SDKs retry an ``Exception`` and disguise it, and agents turn it into a tool's error text.

    Attributes:
        difference: what differs; also in the ledger, which alone decides the result.
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.summary())
        self.difference = difference

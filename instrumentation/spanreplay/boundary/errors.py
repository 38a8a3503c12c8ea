"""What the Boundary itself raises.

::

    BaseException
    └── ControlSignal            a replay or a policy stops the call; agents that catch Exception do not swallow it
"""


class ControlSignal(BaseException):
    """A replay or a policy stops this call. Never an answer of the tool or the model."""

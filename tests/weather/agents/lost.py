"""An agent whose working folder is gone, and whose log handler raises: ``lost.py [handler]``."""

import logging
import sys
import tempfile
from os import chdir, rmdir

from spanreplay import recording
from spanreplay.instrumentation import agent_run, tool


class Raising(logging.Handler):
    """Fails at everything."""

    def emit(self, record: logging.LogRecord) -> None:
        """Raise, as a handler should not."""
        raise RuntimeError("their handler is broken")


@tool(effect="write")
def work() -> int:
    """A call."""
    return 1


if sys.argv[1:]:
    logging.getLogger().addHandler(Raising())
else:
    gone = tempfile.mkdtemp()
    chdir(gone)
    rmdir(gone)
recording.start()
with agent_run("lost"):
    print(work())
print(recording.status().dropped > 0)

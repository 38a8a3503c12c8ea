"""Temporary files of a replayed command: they lie in the replay's scratch folder, and read as if they lay where they were recorded.

Their names are the recorded ones, see :mod:`spanreplay.instrumentation.shims.temporary_names`; what a call says of their folder is put in
the recorded words before anything is compared.
"""

import copy
from collections.abc import Mapping, Sequence

from spanreplay.boundary.orders import decoded
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation.shims.temporary_names import FOLDER
from spanreplay.replay.model import Run


def recorded_folder(runs: Sequence[Run]) -> str | None:
    """Where temporary files lay when the runs were recorded; ``None`` where no program asked, or several places are known."""
    texts = [
        *(text for run in runs for text in run.orders),
        *(step.orders for run in runs for step in run.steps if step.orders is not None),
    ]
    asked = (text for text in texts if FOLDER[2] in text)
    found = {members for channel, items in decoded(asked) if channel == FOLDER for _, members in items}
    folder = found.pop()[0] if len(found) == 1 else None
    return folder if isinstance(folder, str) else None


class Moved(Redactor):
    """A redactor in whose texts the folder of temporary files has its recorded name.

    Args:
        inner: what else is done to texts.
        here: the folder, in this replay.
        recorded: its name when it was recorded.
    """

    def __init__(self, inner: Redactor, here: str, recorded: str) -> None:
        self.__dict__.update(copy.copy(inner).__dict__)
        self._here = here
        self._recorded = recorded

    def text(self, s: str) -> tuple[str, int]:
        """As :meth:`Redactor.text`."""
        return super().text(s.replace(self._here, self._recorded) if self._here in s else s)


def cause(taken: Sequence[Mapping[str, str]], recorded: str | None, actual: str | None) -> str | None:
    """What to say where two texts differ in the name of a temporary file that was taken, and in nothing else.

    Args:
        taken: names that somebody had, ``recorded``, and those that were given instead, ``actual``.
        recorded: what was recorded, as far as it is shown.
        actual: what there is instead.
    """
    if recorded is None or actual is None:
        return None
    found = [names for names in taken if names["actual"] in actual]
    for names in found:
        actual = actual.replace(names["actual"], names["recorded"])
    if not found or actual != recorded:
        return None
    said = ", ".join(f"{names['recorded']} was taken, and {names['actual']} given" for names in found)
    return f"nothing but a name that tempfile makes differs: {said}"

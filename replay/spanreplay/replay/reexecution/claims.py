"""Who has taken what of the record: each recorded run, and each recorded process, stands for one of the replay only."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Final

_NOTE: Final = "note"


class Claims:
    """What is taken. Not locked: the interceptor holds its own lock around every use.

    Args:
        folder: shared by all processes of a replay, one empty file a claim; without it the claims are this process's own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._gone: set[tuple[str, ...]] = set()

    def take(self, *what: str) -> bool:
        """Take it; ``False`` if somebody has it."""
        if what in self._gone:
            return False
        self._gone.add(what)
        if self._folder is None:
            return True
        try:
            os.close(os.open(self._file(what), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def known_taken(self, *what: str) -> bool:
        """Whether it is taken, as far as this process knows."""
        return what in self._gone

    def taken(self, *what: str) -> bool:
        """Whether it is taken, by any process."""
        if what not in self._gone and self._folder is not None and self._file(what).exists():
            self._gone.add(what)
        return what in self._gone

    def note(self, live: str, recorded: str) -> None:
        """A live run stands for a recorded one; both by their ids."""
        if self._folder is not None:
            self._file((_NOTE, live)).write_text(recorded, encoding="ascii")

    def noted(self, live: str) -> str | None:
        """Id of the recorded run that a live one, of whatever process, stands for; ``None`` where nobody has noted it."""
        if self._folder is None:
            return None
        try:
            return self._file((_NOTE, live)).read_text(encoding="ascii") or None
        except (OSError, ValueError):
            return None

    def _file(self, what: tuple[str, ...]) -> Path:
        assert self._folder is not None  # noqa: S101 — only asked where there is one
        return self._folder / sha256("\0".join(what).encode("utf-8", "surrogatepass")).hexdigest()

"""Long content in a store that no record refers to: what a killed process had written first, or what is left of rows deleted by hand."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spanreplay.replay.model import Json
from spanreplay.replay.showing import size

if TYPE_CHECKING:
    from spanreplay.store.store import Store

UNREFERRED: Final = "content-unreferred"
MOST_SPANS: Final = 100_000
"""In a larger store it is not looked for: every attribute of every span has to be read, half a second of CPU time for so many."""
_ADVICE: Final = "if no process was killed while it recorded, compare with a copy of the store; pruning removes such content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreferred:
    """How much of it there is."""

    contents: int
    bytes: int
    """Before they were compressed."""
    advice: str = _ADVICE

    @property
    def detail(self) -> str:
        """For people."""
        what = "1 long text" if self.contents == 1 else f"{self.contents} long texts"
        return f"the store has {what} ({size(self.bytes)}) that no record refers to"

    def to_json(self) -> dict[str, Json]:
        """As in ``spanreplay verify --json``."""
        return {"code": UNREFERRED, "detail": self.detail, "contents": self.contents, "bytes": self.bytes, "advice": self.advice}


def unreferred(store: "Store") -> list[Unreferred]:
    """That remark, or nothing.

    Args:
        store: every record that its journals hold is loaded.
    """
    contents, held = store.unreferred(up_to=MOST_SPANS)
    return [Unreferred(contents=contents, bytes=held)] if contents else []

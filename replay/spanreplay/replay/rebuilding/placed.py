"""A step whose place in its run is known: what is looked at to tell which steps belong together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spanreplay.replay.reading.dialect import StepDraft
from spanreplay.replay.rebuilding.tree import SpanKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A step of a run, by its ``seq``."""

    seq: int
    parent_seq: int | None
    key: SpanKey
    span: SpanKey
    """The span that it was read from: ``key``, save of a decision that was told in a span."""
    draft: StepDraft
    dialect: str
    agent: str | None
    """Its own, or that of the nearest agent around it."""
    started_ns: int
    ended_ns: int | None
    requested_by: int | None = None
    """Where the span says so itself."""
    retry_of: int | None = None
    wrapper: SpanKey | None = None
    """A span around this and other model calls, which is no call of its own."""

    @property
    def path(self) -> str | None:
        """Causal path, relative to the run; ``None`` for a step that spanreplay did not record."""
        return self.draft.path


def outwards(steps: Mapping[int, Placed], seq: int, limit: int) -> Iterator[int | None]:
    """A step, the step around it and so on, at most ``limit`` of them; ``None``, the run, after the outermost."""
    here: int | None = seq
    for _ in range(limit):
        yield here
        if here is None:
            return
        here = steps[here].parent_seq

"""The wording of causes: of one change, and of all that are tied to a difference."""

from collections.abc import Sequence
from typing import Final

from spanreplay.replay.reexecution._cause_hits import CODE, SEEN, Hit, apart
from spanreplay.replay.reexecution.code_changes import ChangedLine, CodeChanges
from spanreplay.replay.reexecution.versions_now import Change

NAMED: Final = 4
"""Changes of one sort that are named; of more, their number is told."""
_EACH: Final = "it cannot be told which of these it was, words that differ stand in each of them: "
_ANY: Final = "it cannot be told which of these it was: "


def said(change: Change) -> str:
    """What has changed, of a version of the whole command."""
    match change.kind:
        case "variable":
            values = (
                f": {change.recorded or 'not set'} → {change.actual or 'not set'}" if change.recorded or change.actual else change.detail
            )
            return f"the environment variable {change.name} has another value{values}"
        case "dependency":
            return f"the dependency {change.name} has changed: {change.recorded or 'not installed'} → {change.actual or 'not installed'}"
        case "commit":
            return f"the code has changed, commit {change.recorded or 'none'} → {change.actual or 'none'}"
        case "diff":
            return "the code has changed, not committed"
        case _:
            return change.summary()


def of_code(code: CodeChanges, source: str, line: ChangedLine | None) -> str:
    """What has changed, of the code, and at which line where that is known."""
    place = "" if line is None else f", {line.file}" + (f":{line.number}" if line.number is not None else "")
    if source == "commit":
        was, now = ((commit or "none")[:12] for commit in code.commits)
        return f"the code has changed, commit {was} → {now}{place}"
    return f"the code has changed, not committed{place}"


def told(what: Hit | None, reached: Sequence[Hit], hits: Sequence[Hit]) -> tuple[str, str] | None:
    """The kind of a cause, and its words; ``None`` where nothing has changed.

    Args:
        what: the field that differs, where it is something that has versions.
        reached: the changes that are seen to have reached the difference.
        hits: all that have changed.
    """
    code = [hit for hit in reached if hit.kind in CODE or hit.kind == "file"]
    others = [hit for hit in reached if hit not in code and hit.strength == SEEN]
    each = _EACH if any(hit.strength == SEEN for hit in reached) else _ANY
    if what is not None and what.strength == SEEN:  # the field is the changed thing: what it came with is told beside it
        beside = others + code
        if len(beside) > 1:
            return what.kind, f"{what.text}; {each}{_listed(beside)}"
        return what.kind, what.text + (f": {beside[0].text}" if beside else "")
    if reached:
        if what is not None and len(code) == len(reached):
            return what.kind, f"{what.text}: {code[0].text}" if len(code) == 1 else f"{what.text}; {each}{_listed(code)}"
        if len(reached) == 1:
            return reached[0].kind, reached[0].text
        if apart(reached):
            return reached[0].kind, f"each of these has made a part of it: {_listed(reached)}"
        return "untold", f"{each}{_listed(reached)}"
    if what is not None:
        more = f"; {_listed(hits)}, and whether that did it cannot be told" if len(hits) > 1 else f": {hits[0].text}" if hits else ""
        return what.kind, what.text + more
    if len(hits) == 1:
        return hits[0].kind, f"{hits[0].text}; nothing else that is kept has changed"
    if hits:
        return "untold", f"it cannot be told which of these it was, none of them is seen in what differs: {_listed(hits)}"
    return None


def _listed(hits: Sequence[Hit]) -> str:
    names = [hit.text for hit in hits]
    return "; ".join(names[:NAMED]) + (f"; and {len(names) - NAMED} more" if len(names) > NAMED else "")

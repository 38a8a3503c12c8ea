"""Which changes of the code are tied to a difference: lines that have its words, or the line that made the call."""

from collections.abc import Iterator
from pathlib import Path

from spanreplay.replay.reexecution._cause_hits import LINE, POSSIBLE, SEEN, Hit
from spanreplay.replay.reexecution._cause_wording import of_code
from spanreplay.replay.reexecution.changed_places import Sought, places
from spanreplay.replay.reexecution.code_changes import CodeChanges
from spanreplay.replay.reexecution.ledger import Difference
from spanreplay.replay.reexecution.looking import Looked


def hits_in_code(code: CodeChanges, difference: Difference, what: Hit | None, looked: Looked, folder: Path | None) -> Iterator[Hit]:
    """The changes of the code, as they are tied to a difference.

    Args:
        code: what has changed.
        difference: of a replay.
        what: the field that differs, where it is something that has versions.
        looked: the words.
        folder: of the skill that was loaded otherwise: nothing else counts then.
    """
    file, number = _of_call(code.root, difference.where)
    sought = Sought(added=looked.added, removed=looked.removed, file=file, key=_key(difference, what))
    for source in code.sources:
        found = places(code, source, sought, folder)
        for place in found:
            words = frozenset(place.words)
            yield Hit(source, of_code(code, source, place.line), SEEN, file=place.line.file, both=place.both, words=words)
        if not found and folder is None:
            lines = (line for line in code.lines or () if line.source == source and number is not None)
            called = next((line for line in lines if (line.file, line.number) == (file, number)), None)
            yield Hit(source, of_code(code, source, called), POSSIBLE if called is None else LINE)


def _of_call(root: Path, where: str | None) -> tuple[str | None, int | None]:
    """The file of a call below the top folder, and its line."""
    path, _, number = (where or "").rpartition(":")
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix(), int(number)
    except (OSError, ValueError):
        return None, None


def _key(difference: Difference, what: Hit | None) -> str | None:
    """The name of the field, where its value is a setting or no text: a changed line that names it tells of it."""
    keys = [key for key in (difference.evidence or {}).get("keys", ()) if isinstance(key, str)]
    of_settings = what is not None and what.kind in ("setting", "model")
    values = [value for value in (difference.recorded, difference.actual) if value is not None]
    is_text = any(value.startswith(('"', "{", "[")) for value in values)
    return keys[-1] if keys and (of_settings or not is_text) else None

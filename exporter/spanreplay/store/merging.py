"""Several records of one span become its versions: pieces of one are put together, differing ones are kept apart."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from spanreplay.store.encoding import Json, merge_maps
from spanreplay.store.form import ATTRIBUTES, DROPPED, END, EVENTS, LINKS, MESSAGE, NAME, SPAN, STATUS, TRACE, Form
from spanreplay.store.journal_reader import LOST, TYPE
from spanreplay.store.span_rows import Version

Effect: TypeAlias = Literal["new", "same", "changed"]

RECORDER: Final = "recorder"


def apply(versions: list[Version], record: Form, process: str | None) -> Effect:
    """Works one record into the versions of its span, in place.

    Args:
        versions: what is known of the span so far, the current one first.
        record: an ``open``, ``close``, ``span`` or ``patch`` record.
        process: random id of the process whose journal it is from.

    Returns:
        Whether the span was unknown, known just so, or known otherwise.
    """
    kind = record[TYPE]
    form = {key: value for key, value in record.items() if key not in (TYPE, LOST, "origin")}
    if record.get(LOST):
        dropped = form.get(DROPPED, (0, 0, 0))
        form[DROPPED] = [dropped[0] + record[LOST], dropped[1], dropped[2]]
    if kind in ("open", "span"):
        whole = Version(form=form, origin=record.get("origin", RECORDER), process=process)
        return _add_whole(versions, whole)
    effect: Effect = "changed" if versions else "new"
    _add_to(_target(versions, kind, process, form), form)
    return effect


def choose(versions: Sequence[Version]) -> Version:
    """The fullest version; of equals the first."""
    return max(versions, key=lambda version: version.fullness) if len(versions) > 1 else versions[0]


def _add_whole(versions: list[Version], whole: Version) -> Effect:
    if any(version.started and version.digest == whole.digest for version in versions):
        return "same"
    effect: Effect = "changed" if versions else "new"
    for known in list(versions):
        if not known.started:
            _add_to(whole, known.form)
        elif END not in known.form and known.process is not None and known.process == whole.process:
            if ATTRIBUTES in known.form:
                whole.form[ATTRIBUTES] = merge_maps(known.form[ATTRIBUTES], whole.form.get(ATTRIBUTES, {}))
        else:
            continue
        versions.remove(known)
    versions.append(whole)
    return effect


def _target(versions: list[Version], kind: str, process: str | None, form: Form) -> Version:
    def rank(version: Version) -> tuple[bool, bool, bool]:
        return (kind != "close" or END not in version.form, version.process == process, version.current)

    wanted = [version for version in versions if version.process == process or kind == "patch"]
    if not wanted:  # a span handed to a forked child is closed in the child's journal
        wanted = [version for version in versions if version.started and END not in version.form]
    if wanted:
        return max(wanted, key=rank)
    empty = Version(form={TRACE: form[TRACE], SPAN: form[SPAN]}, origin=RECORDER, process=process, started=False)
    versions.append(empty)
    return empty


def _add_to(version: Version, addition: Form) -> None:
    version.known_digest = None
    form = version.form
    for key in (END, STATUS, MESSAGE, NAME):
        if key in addition:
            form[key] = addition[key]
    if ATTRIBUTES in addition:
        form[ATTRIBUTES] = merge_maps(form.get(ATTRIBUTES, {}), addition[ATTRIBUTES])
    for key in (EVENTS, LINKS):
        if key in addition:
            form[key] = [*form.get(key, ()), *addition[key]]
    if DROPPED in addition:
        form[DROPPED] = _sum(form.get(DROPPED, (0, 0, 0)), addition[DROPPED])


def _sum(first: Sequence[int], second: Sequence[int]) -> list[Json]:
    return [one + two for one, two in zip(first, second, strict=True)]

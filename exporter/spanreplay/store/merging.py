"""Several records of one span become its versions: pieces of one are put together, differing ones are kept apart.

What processes of this store recorded stays the current version, whatever is imported beside it; unless it never ended and the other did.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from spanreplay.semconv.attributes import STEP_DIGESTS
from spanreplay.store.encoding import Json, merge_maps, to_sorted_json
from spanreplay.store.form import ATTRIBUTES, DROPPED, END, EVENTS, LINKS, MESSAGE, NAME, SPAN, STATUS, TRACE, Form
from spanreplay.store.journal_reader import LOST, TYPE
from spanreplay.store.span_rows import Version

Effect: TypeAlias = Literal["new", "same", "changed", "beside"]
"""``beside``: it differs from what was recorded here, which stays the current version."""

RECORDER: Final = "recorder"
OWN: Final = frozenset({RECORDER, "exporter"})
"""Who delivers what was recorded here; anything else is imported."""


def apply(versions: list[Version], record: Form, process: str | None) -> Effect:
    """Works one record into the versions of its span, in place.

    Args:
        versions: what is known of the span so far, the current one first.
        record: an ``open``, ``close``, ``span`` or ``patch`` record.
        process: random id of the process whose journal it is from.

    Returns:
        Whether the span was unknown, known just so, or known otherwise; and whether what is known otherwise was recorded here.
    """
    kind = record[TYPE]
    form = dict(record)
    for key in (TYPE, LOST, "origin"):
        form.pop(key, None)
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
    """The fullest of the ended ones that were recorded here, else of the ended ones, else of those recorded here; of equals the first."""
    return (
        max(versions, key=lambda version: (END in version.form, _is_recorded(version), version.fullness))
        if len(versions) > 1
        else versions[0]
    )


def _is_recorded(version: Version) -> bool:
    return version.started and version.origin in OWN


def _is_copy(whole: Version, recorded: Version) -> bool:
    """Whether it says nothing that was not recorded: an export has digests beside the content, and may leave content off."""
    if whole.digest == recorded.digest:
        return True
    form, known = dict(whole.form), dict(recorded.form)
    given, had = form.pop(ATTRIBUTES, {}), known.pop(ATTRIBUTES, {})
    return form == known and all(name == STEP_DIGESTS or (name in had and _same(had[name], value)) for name, value in given.items())


def _same(one: Json, other: Json) -> bool:
    return to_sorted_json(one) == to_sorted_json(other)  # 1 is not 1.0


def _may_equal(known: Version, whole: Version) -> bool:
    """False where the ends differ, which is much cheaper to see than by digests; that of what was loaded may be older than its form."""
    return known.known_digest is not None or known.form.get(END) == whole.form.get(END)


def _add_whole(versions: list[Version], whole: Version) -> Effect:
    if not versions:
        versions.append(whole)
        return "new"
    if any(version.started and _may_equal(version, whole) and version.digest == whole.digest for version in versions):
        return "same"
    recorded = [] if _is_recorded(whole) else [version for version in versions if _is_recorded(version)]
    if any(_is_copy(whole, version) for version in recorded):
        return "same"
    effect: Effect = "changed" if versions else "new"
    for known in list(versions):
        if not known.started:
            _add_to(whole, known.form)
        elif (
            END not in known.form
            and known.process is not None
            and known.process == whole.process
            and not (recorded and _is_recorded(known))
        ):
            if ATTRIBUTES in known.form:
                whole.form[ATTRIBUTES] = merge_maps(known.form[ATTRIBUTES], whole.form.get(ATTRIBUTES, {}))
                whole.known_digest = None
        else:
            continue
        versions.remove(known)
    versions.append(whole)
    return "beside" if recorded and choose(versions) in recorded else effect


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

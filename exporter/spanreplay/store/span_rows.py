"""A span between its JSON form and its row: columns that people ask for, and the rest so that nothing is lost."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from spanreplay.semconv import attributes as names
from spanreplay.store.encoding import Json, WrittenMap, digest_of, map_pairs, to_readable_json, to_sorted_json, written_map
from spanreplay.store.form import (
    ATTRIBUTES,
    DROPPED,
    END,
    EVENTS,
    FLAGS,
    KIND,
    LINKS,
    MESSAGE,
    NAME,
    PARENT,
    RESOURCE,
    SCOPE,
    SPAN,
    START,
    STATE,
    STATUS,
    TRACE,
    VERSION,
    Form,
)

HOT_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run_id": (names.RUN_ID,),
    "command_id": (names.RUN_COMMAND_ID,),
    "path": (names.STEP_PATH,),
    "step_kind": (names.STEP_KIND,),
    "op": (names.GEN_AI_OPERATION_NAME,),
    "agent": (names.GEN_AI_AGENT_NAME,),
    "provider": (names.GEN_AI_PROVIDER_NAME,),
    "model": (names.GEN_AI_REQUEST_MODEL, names.GEN_AI_RESPONSE_MODEL),
    "tool": (names.GEN_AI_TOOL_NAME,),
    "call_id": (names.GEN_AI_TOOL_CALL_ID,),
    "conversation": (names.GEN_AI_CONVERSATION_ID,),
    "prompt_name": (names.GEN_AI_PROMPT_NAME,),
    "prompt_version": (names.GEN_AI_PROMPT_VERSION,),
    "error_type": (names.ERROR_TYPE,),
    "outcome": (names.STEP_OUTCOME,),
    "effect": (names.STEP_EFFECT,),
}
"""Column of a text to the attributes it is taken from, the first that is there."""

HOT_INTEGERS: Final[Mapping[str, tuple[str, ...]]] = {
    "seq_start": (names.STEP_SEQ_START,),
    "seq_end": (names.STEP_SEQ_END,),
    "input_tokens": (names.GEN_AI_USAGE_INPUT_TOKENS,),
    "output_tokens": (names.GEN_AI_USAGE_OUTPUT_TOKENS,),
}

COLUMNS: Final = (
    *("trace_id", "span_id", "parent_span_id", "name", "kind", "start_ns", "end_ns", "status", "status_message", "process", "service"),
    *HOT_TEXTS,
    *HOT_INTEGERS,
    *("attributes", "events", "links", "resource", "scope", "scope_version", "scope_json", "trace_state", "flags"),
    *("dropped_attributes", "dropped_events", "dropped_links", "exact", "origin", "complete", "started", "digest"),
)

_SMALL: Final = 2**15
_BIG: Final = 2**63
_NONE_DROPPED: Final = (0, 0, 0)
NO_HOT: Final = (None,) * (len(HOT_TEXTS) + len(HOT_INTEGERS))
"""The values of these columns where there are none."""
_SHAPES: Final = 2048
_BETWEEN: Final = ',"'
"""What stands before the name of each member of a JSON object but the first."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What follows from the names of attributes."""

    hot: tuple[tuple[int, str], ...]
    """Which columns they may fill, and from which of them."""
    sort: Callable[[list[str]], Sequence[str]]
    """Brings what belongs to the names into their order."""


_shapes: Final[dict[tuple[str, ...], Shape]] = {}
"""By these names: those of most spans are those of one before."""


@dataclass(slots=True, kw_only=True)
class Version:
    """One version of a span: what has arrived of it."""

    form: Form
    origin: str | None
    process: str | None
    """Random id of the process that recorded it."""
    started: bool = True
    """Its start has arrived; without, name, kind and start time are not known."""
    current: bool = False
    known_digest: str | None = None

    @property
    def digest(self) -> str:
        """sha256 of the whole content; equal spans have equal digests, whoever delivered them."""
        if self.known_digest is None:
            self.known_digest = digest_of(_sorted_json(self.form).encode("ascii"))
        return self.known_digest

    @property
    def fullness(self) -> tuple[bool, bool, int, int]:
        """Sorts versions: an ended one is fuller than an open one, then the one with more in it."""
        form = self.form
        parts = len(form.get(ATTRIBUTES, ())) + len(form.get(EVENTS, ())) + len(form.get(LINKS, ()))
        return END in form, self.started, parts, len(to_sorted_json(form))


def row_of(version: Version, service: str | None) -> tuple[Any, ...]:
    """The row of a version, in the order of :data:`COLUMNS`."""
    form = version.form
    exact: dict[str, Json] = {}
    attributes = form.get(ATTRIBUTES, {})
    scope = form.get(SCOPE, {})
    dropped = form.get(DROPPED, _NONE_DROPPED)
    plain = attributes if "$map" not in attributes else _plain_pairs(attributes)
    shape = shape_of(plain)
    if version.known_digest is None:
        version.known_digest = digest_of(_sorted_json(form, shape if plain is attributes else None).encode("ascii"))
    end = _number(form, END, _BIG, exact, None)
    name, kind = _text(form, NAME, exact), _number(form, KIND, _SMALL, exact, 0)
    start = _number(form, START, _BIG, exact, end or 0)
    status, message = _number(form, STATUS, _SMALL, exact, 0), _text(form, MESSAGE, exact)
    state, flags = _text(form, STATE, exact), _number(form, FLAGS, _BIG, exact, 0)
    if dropped is not _NONE_DROPPED and not all(abs(count) < _BIG for count in dropped):
        exact[DROPPED] = dropped
        dropped = (None, None, None)
    return (
        form[TRACE],
        form[SPAN],
        form.get(PARENT),
        name,
        kind,
        start,
        end,
        status,
        message,
        version.process,
        service,
        *hot_values(plain, shape),
        to_readable_json(attributes) if attributes else None,
        to_readable_json(form[EVENTS]) if form.get(EVENTS) else None,
        to_readable_json(form[LINKS]) if form.get(LINKS) else None,
        form.get(RESOURCE),
        _plain_text(scope.get(NAME)),
        _plain_text(scope.get(VERSION)),
        None if _is_plain_scope(scope) else to_readable_json(scope),
        state,
        flags,
        *dropped,
        to_readable_json(exact) if exact else None,
        version.origin,
        version.started and END in form,
        version.started,
        version.known_digest,
    )


def version_of(row: Mapping[str, Any], *, current: bool) -> Version:
    """The version that :func:`row_of` made this row of."""
    form: Form = {TRACE: row["trace_id"], SPAN: row["span_id"]}
    if row["started"]:
        form[START] = row["start_ns"]
    if row["started"] or row["name"]:
        form[NAME] = row["name"]
    for key, column in _PLAIN_COLUMNS:
        if row[column]:
            form[key] = row[column]
    if row["parent_span_id"] is not None:
        form[PARENT] = row["parent_span_id"]
    if row["end_ns"] is not None:
        form[END] = row["end_ns"]
    for key, column in _JSON_COLUMNS:
        if row[column] is not None:
            form[key] = json.loads(row[column])
    if SCOPE not in form:
        scope = {key: row[column] for key, column in ((NAME, "scope"), (VERSION, "scope_version")) if row[column]}
        if scope:
            form[SCOPE] = scope
    dropped = [row["dropped_attributes"] or 0, row["dropped_events"] or 0, row["dropped_links"] or 0]
    if any(dropped):
        form[DROPPED] = dropped
    if row["exact"] is not None:
        form.update(json.loads(row["exact"]))
    return Version(
        form=form,
        origin=row["origin"],
        process=row["process"],
        started=row["started"],
        current=current,
        known_digest=row["digest"],
    )


_PLAIN_COLUMNS: Final = (
    (KIND, "kind"),
    (STATUS, "status"),
    (MESSAGE, "status_message"),
    (RESOURCE, "resource"),
    (STATE, "trace_state"),
    (FLAGS, "flags"),
)
_JSON_COLUMNS: Final = ((ATTRIBUTES, "attributes"), (EVENTS, "events"), (LINKS, "links"), (SCOPE, "scope_json"))


def _text(form: Form, key: str, exact: dict[str, Json]) -> str:
    value = form.get(key, "")
    if isinstance(value, str):
        return value
    exact[key] = value
    return ""


def _plain_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number(form: Form, key: str, limit: int, exact: dict[str, Json], default: int | None) -> int | None:
    value = form.get(key, default)
    if value is None or -limit <= value < limit:
        return value
    exact[key] = value
    return default


def _is_plain_scope(scope: Form) -> bool:
    return all(key in (NAME, VERSION) and isinstance(value, str) for key, value in scope.items())


def service_of(attributes: Json) -> str | None:
    """The service that the form of a resource's attributes names."""
    service = (attributes if "$map" not in attributes else _plain_pairs(attributes)).get(names.SERVICE_NAME)
    return service if isinstance(service, str) else None


def _plain_pairs(attributes: Json) -> dict[str, Json]:
    return {key: value for key, value in map_pairs(attributes) if isinstance(key, str)}


def shape_of(attributes: Mapping[str, Json]) -> Shape:
    """What follows from the names of these attributes."""
    names_there = tuple(attributes)
    shape = _shapes.get(names_there)
    if shape is None:
        if len(_shapes) >= _SHAPES:
            _shapes.clear()
        order = sorted(range(len(names_there)), key=names_there.__getitem__)
        shape = _shapes[names_there] = Shape(
            hot=tuple(
                (column, source)
                for column, sources in enumerate((*HOT_TEXTS.values(), *HOT_INTEGERS.values()))
                for source in sources
                if source in attributes
            ),
            # An item getter of one place gives the item and not a tuple of it.
            sort=itemgetter(*order) if len(order) > 1 else tuple,
        )
    return shape


def hot_values(attributes: Mapping[str, Json], shape: Shape) -> list[Any]:
    """The values of the columns of :data:`HOT_TEXTS` and :data:`HOT_INTEGERS`."""
    found: list[Any] = [*NO_HOT]
    for column, source in shape.hot:
        value = attributes[source]
        if column >= len(HOT_TEXTS):
            if type(value) is int and -_BIG <= value < _BIG:
                found[column] = value
        elif found[column] is None and isinstance(value, str):
            found[column] = value
    return found


def digest_found(version: Version, attributes: str | None) -> str:
    """The digest of what a version made of a row says now; its :attr:`~Version.digest` is what it was when it was written.

    Args:
        version: as :func:`version_of` made it.
        attributes: their JSON in the row. To put that in order takes a tenth of the time that making it anew takes.
    """
    form = version.form
    if attributes is not None and isinstance(form.get(ATTRIBUTES), dict):
        in_order = _sorted_json({**form, ATTRIBUTES: written_map(form[ATTRIBUTES], attributes)})
        found = digest_of(in_order.encode("ascii"))
        if found == version.known_digest:
            return found
    return digest_of(to_sorted_json(form).encode("ascii"))


def _sorted_json(form: Form, shape: Shape | None = None) -> str:
    """What :func:`to_sorted_json` gives of it; attributes whose JSON is at hand are not encoded again.

    Args:
        form: of a span.
        shape: of its attributes, where it is at hand.
    """
    attributes = form.get(ATTRIBUTES)
    if type(attributes) is WrittenMap and attributes.text.isascii() and min(form) == ATTRIBUTES:
        in_order = sorted_members(attributes.text, len(attributes), shape or shape_of(attributes))
        if in_order is not None:
            rest = to_sorted_json({key: value for key, value in form.items() if key != ATTRIBUTES})
            return f'{{"{ATTRIBUTES}":{in_order},{rest[1:]}'
    return to_sorted_json(form)


def sorted_members(text: str, count: int, shape: Shape) -> str | None:
    """The JSON of attributes with its members in the order of their names; ``None`` where that takes encoding them again.

    Args:
        text: their JSON, of nothing but ASCII.
        count: how many they are.
        shape: of them.
    """
    # A quote in a string has a backslash before it: where there are as many as there are names, it stands between members alone.
    members = text[2:-1].split(_BETWEEN)
    return f'{{"{_BETWEEN.join(shape.sort(members))}}}' if len(members) == count else None

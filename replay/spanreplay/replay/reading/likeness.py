"""Is what an agent asks now what somebody else recorded that it asked?

A difference that the record can show is a difference. What the instrumentation left out, or wrote another way, is none: what was left out
is named, so that nobody takes for compared what was not.
"""

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, NamedTuple

from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json
from spanreplay.replay.model import Json
from spanreplay.replay.reading.asking import Request, Turn, decoded, plain_value
from spanreplay.replay.reading.fields import not_captured
from spanreplay.replay.reading.naming import same_model
from spanreplay.replay.reading.settings import has_parameter, same_setting

SYSTEM: Final = "the system prompt"
TOOLS: Final = "the tools offered"
MEDIA: Final = "attachments"
CALLS: Final = "the calls of tools in the messages"
SETTING: Final = "the setting {}"
TYPES: Final = "whether a value is a number or its text"
REST: Final = "what was behind the cut"
WITHHELD: Final = "values that were withheld"
UNSAID: Final = "what messages said that were recorded without content"

_SCRUBBED: Final = "[Scrubbed due to "
"""How Logfire begins what it puts for a value that looks secret."""
_INJECTED: Final = frozenset({"self", "cls", "ctx", "context", "run_context", "runtime", "config", "run_manager", "callbacks"}) | frozenset(
    {"tool_context", "tool_call_id", "state", "store", "agent", "cancellation_token"}
)
"""Parameters that frameworks fill in themselves, and their instrumentations show or do not."""
_CALL: Final = frozenset({"args", "kwargs"})


class Shows(NamedTuple):
    """What the record of a run shows of its model calls at all."""

    system: bool
    tools: bool
    media: bool
    settings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How a live call and a recorded one compare."""

    equal: bool
    closeness: int
    """How much is equal; only to compare."""
    recorded: Json
    """Both sides, alike but for what differs."""
    actual: Json
    left_out: frozenset[str] = frozenset()
    """What the live call has and the record does not show."""


def shows(requests: Iterable[Request]) -> Shows:
    """What some requests of one record show."""
    found = list(requests)
    return Shows(
        system=any(request.system for request in found),
        tools=any(request.tools for request in found),
        media=any(turn.kind == "media" for request in found for turn in request.turns),
        settings=frozenset(name for request in found for name in request.settings),
    )


# ---- model calls -------------------------------------------------------------------------------------------------


def alike(recorded: Request, live: Request, shown: Shows, *, cut: bool = False, goes_on: bool = False) -> Likeness:
    """Compare two requests.

    Args:
        recorded: as recorded.
        live: as asked now.
        shown: what the record shows at all.
        cut: something of the record is known to be missing: texts may end before their end, and results stand without their calls.
        goes_on: the messages of the record are cut, and only their beginning is compared.
    """
    same = _Same(cut=cut)
    wanted: dict[str, Json] = {}
    actual: dict[str, Json] = {}
    left_out: set[str] = set()
    if recorded.model and live.model and not same_model(recorded.model, live.model):
        wanted["model"], actual["model"] = recorded.model, live.model
    if not shown.system:
        left_out |= {SYSTEM} if live.system else set()
    elif not same.texts(recorded.system, live.system):
        wanted["system"], actual["system"] = "\n".join(recorded.system), "\n".join(live.system)
    turns = live.turns
    if not shown.media and any(turn.kind == "media" for turn in turns):
        left_out.add(MEDIA)
        turns = tuple(turn for turn in turns if turn.kind != "media")
    told = recorded.turns
    if any(turn.kind == "unknown" for turn in told):
        left_out.add(UNSAID)
        told, turns = _without_unknown(told, turns)
    if goes_on:
        left_out.add(REST)
        told = told[:-1] if told and told[-1].kind != "text" else told
        turns = turns[: len(told)]
    said = {turn.kind for turn in told}
    if cut and "result" in said and "call" not in said:
        left_out.add(CALLS)
        turns = tuple(turn for turn in turns if turn.kind != "call")
    closeness = len(told) + len(turns) if not wanted else 0
    pairs = list(zip_longest(told, turns))
    first = next((place for place, (one, other) in enumerate(pairs) if not same.turns(one, other)), None)
    if first is not None:
        closeness = 0 if wanted else first
        ahead: list[Json] = [None] * (live.lead + first)
        wanted["messages"] = ahead + [_shown(turn) for turn in told[first:]]
        actual["messages"] = ahead + [_shown(turn) for turn in turns[first:]]
    if not shown.tools:
        left_out |= {TOOLS} if live.tools else set()
    else:
        differing = [name for name in {**recorded.tools, **live.tools} if not same.tools(recorded.tools.get(name), live.tools.get(name))]
        if differing:
            wanted["tools"] = {name: recorded.tools[name] for name in differing if name in recorded.tools}
            actual["tools"] = {name: live.tools[name] for name in differing if name in live.tools}
    for name, set_to, given in _differing_settings(recorded, live, same):
        if set_to is None and not _is_known_unset(name, recorded, live, shown):
            left_out.add(SETTING.format(name))
        else:
            wanted |= {} if set_to is None else {name: set_to}
            actual |= {} if given is None else {name: given}
    left_out |= same.left_out
    return Likeness(equal=not wanted and not actual, closeness=closeness, recorded=wanted, actual=actual, left_out=frozenset(left_out))


def _without_unknown(told: Iterable[Turn], live: Iterable[Turn]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The turns of a record and of a live call without those of which the record does not say what they said."""
    known: list[Turn] = []
    left = list(live)
    for turn in told:
        if turn.kind != "unknown":
            known.append(turn)
            continue
        while len(known) < len(left) and left[len(known)].role == turn.role and left[len(known)].kind in ("text", "media"):
            del left[len(known)]
    return tuple(known), tuple(left)


def _differing_settings(recorded: Request, live: Request, same: "_Same") -> Iterator[tuple[str, Json, Json]]:
    """Name, recorded and live value, ``None`` where it is not set; of those without a common name only what is set now."""
    for name in sorted(recorded.settings.keys() | live.settings.keys()):
        one, other = recorded.settings.get(name), live.settings.get(name)
        if not same_setting(name, one, other):
            yield name, one, other
    for name, other in live.others.items():
        one = recorded.others.get(name)
        if one is None or not same.values(one, other):
            yield name, one, other


def _is_known_unset(name: str, recorded: Request, live: Request, shown: Shows) -> bool:
    """Whether a setting that a record does not show was not set."""
    if name in live.others:
        return False
    return name in shown.settings or (recorded.all_settings and has_parameter(live.provider, name))


def _shown(turn: Turn) -> Json:
    if turn.kind == "call":
        return {"role": turn.role, "tool_call": turn.value}
    return {"role": turn.role, "content": "\n".join(turn.value) if turn.kind == "text" else turn.value}


class _Same:
    """Comparisons that notice what was withheld."""

    def __init__(self, *, cut: bool, goes_on: bool = False) -> None:
        self.withheld = False
        self.retyped = False
        """A number or truth value was compared with its text: some instrumentations write all values as text."""
        self._cut = cut
        self._goes_on = goes_on

    @property
    def left_out(self) -> set[str]:
        """What was not compared."""
        return ({WITHHELD} if self.withheld else set()) | ({TYPES} if self.retyped else set())

    def text(self, recorded: str, live: str) -> bool:
        if recorded == live or (self._cut and recorded and live.startswith(recorded)):
            return True
        if not_captured(recorded) or recorded.startswith(_SCRUBBED):
            self.withheld = True
            return True
        return False

    def texts(self, recorded: Iterable[str], live: Iterable[str]) -> bool:
        """Texts that stand together; where one side has them in other pieces, whitespace is not compared."""
        one, other = list(recorded), list(live)
        if len(one) == len(other):
            return all(map(self.text, one, other))
        left, right = ("".join("".join(side).split()) for side in (one, other))
        return bool(one) == bool(other) and (left == right or (self._cut and right.startswith(left)))

    def turns(self, recorded: Turn | None, live: Turn | None) -> bool:
        if recorded is None or live is None or recorded.kind != live.kind:
            return False
        if recorded.kind == "text":
            return recorded.role == live.role and self.texts(recorded.value, live.value)
        return self.values(recorded.value, live.value)

    def values(self, recorded: Json, live: Json, depth: int = 50) -> bool:
        """JSON values; a number or a truth value may be its text, and what is null may be absent."""
        if isinstance(recorded, str) and isinstance(live, str):
            return self.text(recorded, live) or _json_equal(plain_value(recorded), plain_value(live))
        if isinstance(recorded, str):
            equal = self.text(recorded, json.dumps(live)) or recorded == str(live) or _json_equal(plain_value(recorded), live)
            self.retyped |= equal and isinstance(live, int | float)
            return equal
        if isinstance(live, str):
            equal = json.dumps(recorded) == live or str(recorded) == live or _json_equal(recorded, plain_value(live))
            self.retyped |= equal and isinstance(recorded, int | float)
            return equal
        if depth and isinstance(recorded, dict) and isinstance(live, dict):
            names = recorded if self._goes_on else {**recorded, **live}
            return all(self.values(recorded.get(key), live.get(key), depth - 1) for key in names)
        if depth and isinstance(recorded, list) and isinstance(live, list):
            known = live[: len(recorded)] if self._goes_on else live
            return len(recorded) == len(known) and all(self.values(a, b, depth - 1) for a, b in zip(recorded, known, strict=True))
        return _json_equal(recorded, live)

    def tools(self, recorded: Json, live: Json) -> bool:
        """Definitions of one tool: its description; of its parameters the names, types, choices and descriptions that both sides show."""
        if recorded is None or live is None:
            return False
        return _said_the_same(recorded, live) and self._parameters(recorded.get("parameters"), live.get("parameters"))

    def _parameters(self, recorded: Json, live: Json) -> bool:
        one, other = _properties(recorded), _properties(live)
        if one is None or other is None:
            return True
        return one.keys() == other.keys() and all(_same_schema(one[name], other[name]) for name in one)


def _json_equal(one: Json, other: Json) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return one == other or canonical_json(one) == canonical_json(other)


def _properties(schema: Json) -> dict[str, Json] | None:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else None


def _same_schema(one: Json, other: Json) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return True
    types = (one.get("type"), other.get("type"))
    if all(isinstance(kind, str) for kind in types) and str(types[0]).lower() != str(types[1]).lower():
        return False
    if "enum" in one and "enum" in other and one["enum"] != other["enum"]:
        return False
    return _said_the_same(one, other)


def _said_the_same(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    said = [found["description"].split() for found in (one, other) if isinstance(found.get("description"), str)]
    return len(said) < 2 or said[0] == said[1]


# ---- tool calls --------------------------------------------------------------------------------------------------


def alike_arguments(
    recorded: Json, live: str | None, signature: inspect.Signature | None, *, cut: bool = False, goes_on: bool = False
) -> Likeness:
    """Compare the arguments of a tool call with those that were recorded.

    Args:
        recorded: in whatever way: an object, a list or its text, ``{"args", "kwargs"}``, the lone argument itself.
        live: typed JSON text of the arguments by name.
        signature: of the tool.
        cut: texts of the record may end before their end.
        goes_on: arguments of the record, and members of them, may be missing.
    """
    typed = json.loads(live) if live is not None else {}
    given = json.loads(codec.plain(live)) if live is not None else {}
    if not isinstance(given, dict) or not isinstance(typed, dict):
        typed, given = {"value": typed}, {"value": given}
    defaults = _defaults(signature)
    named = _named(recorded, given, list(given) or list(signature.parameters if signature is not None else ()))
    same = _Same(cut=cut, goes_on=goes_on)
    wanted: dict[str, Json] = {}
    actual: dict[str, Json] = {}
    equal = 0
    for name in {**named, **given}:
        sides = [side[name] for side in (named, given) if name in side]
        if len(sides) == 2:
            fits = same.values(named[name], given[name])
        else:
            hidden = name in _INJECTED or (name in given and not _is_plain(typed.get(name)))
            fits = hidden or (goes_on and name in given) or (name in defaults and same.values(sides[0], defaults[name]))
        if fits:
            equal += 1
            continue
        wanted |= {name: named[name]} if name in named else {}
        actual |= {name: given[name]} if name in given else {}
    left_out = frozenset(same.left_out | ({REST} if goes_on else set()))
    return Likeness(equal=not wanted and not actual, closeness=equal, recorded=wanted, actual=actual, left_out=left_out)


def _defaults(signature: inspect.Signature | None) -> dict[str, Json]:
    parameters = {} if signature is None else signature.parameters
    given = {name: parameter.default for name, parameter in parameters.items() if parameter.default is not inspect.Parameter.empty}
    return {name: json.loads(codec.plain(codec.encode(default).text)) for name, default in given.items()}


def _is_plain(typed: Json) -> bool:
    """Is a value one that a trace shows as it is? An object that a framework hands in is not."""
    return '"$t"' not in json.dumps(typed)


def _named(recorded: Json, given: Mapping[str, Json], names: list[str]) -> dict[str, Json]:
    """Recorded arguments by name.

    Args:
        recorded: as recorded.
        given: the arguments given now.
        names: of the arguments, in order.
    """
    value = decoded(recorded)
    if isinstance(value, dict):
        args, kwargs = value.get("args", []), value.get("kwargs", {})
        if value and value.keys() <= _CALL and not _CALL & set(names) and isinstance(args, list) and isinstance(kwargs, dict):
            return {**dict(zip(names, args, strict=False)), **kwargs}
        return value
    if value is None or value == "":
        return {}
    if len(names) == 1 and (not isinstance(value, list) or len(value) != 1 or isinstance(given.get(names[0]), list)):
        return {names[0]: recorded if isinstance(recorded, str) else value}
    if isinstance(value, list) and len(value) <= len(names):
        return dict(zip(names, value, strict=False))
    return {"arguments": value}

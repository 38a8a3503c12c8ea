"""A framework's tool call as the Boundary takes it: what every adapter shares.

An adapter only says what the framework knows of the tool and of the call::

    scope = here()
    call = None if scope is None else framework.tool_call(scope, offered, arguments, layer="acme", call_id=call_id)
    if call is None:
        return await original(...)
    return await acall(scope, call, lambda: original(...))

Agents are :func:`spanreplay.instrumentation.manual.agent_run`.
"""

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Final, TypeVar, get_type_hints
from weakref import ref

from spanreplay.boundary.asked import claim
from spanreplay.boundary.boundary import begin, here
from spanreplay.boundary.call import AttributeValue, Call, Effect, OutcomeName
from spanreplay.boundary.layers import is_inner_layer
from spanreplay.boundary.scope import Scope
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json, digest
from spanreplay.content.codec import Encoded
from spanreplay.instrumentation._remembered import remembered
from spanreplay.instrumentation.tools import ToolInfo
from spanreplay.semconv import attributes as names

T = TypeVar("T")

_DESCRIBED: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool as a framework offers it to a model.

    Attributes:
        name: as the model knows it.
        description: what the model is told of it.
        parameters: its JSON schema, as a JSON value.
        function: what runs in the end, where the framework knows; its source is digested, and what ``@tool`` says of it counts.
        effect: what the framework says that a call does outside (MCP annotations, read-only flags).
        attributes: anything else known of it: its server, its kind.
    """

    name: str
    description: str | None = None
    parameters: object = None
    function: Callable[..., Any] | None = None
    effect: Effect = "unknown"
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


_offered: Final[dict[int, tuple[ref[Any], tuple[object, ...], Offered]]] = {}
"""By the address of the tool: the tool, what it was made from, and what was made."""


def once(tool: object, made_from: tuple[object, ...], make: Callable[[], Offered]) -> Offered:
    """What ``make`` gives, kept of this very tool: many frameworks have pydantic make the schema anew for each who asks, and that is dear.

    Args:
        tool: as the framework has it.
        made_from: all that ``make`` looks at. It makes anew where one of these is not equal any more.
        make: describes the tool.
    """
    known = _offered.get(id(tool))
    if known is not None and known[0]() is tool and known[1] == made_from:
        return known[2]
    offered = make()
    if len(_offered) >= _DESCRIBED:
        _offered.clear()
    with contextlib.suppress(TypeError):  # one with slots may have no weak references
        _offered[id(tool)] = ref(tool), made_from, offered
    return offered


def tool_call(
    scope: Scope,
    offered: Offered,
    arguments: object,
    *,
    layer: str,
    call_id: str | None = None,
    annotation: object = None,
    streams: bool = False,
    ending: Callable[[object], OutcomeName | None] | None = None,
) -> Call | None:
    """The call to make, or ``None`` where it goes straight through: it is a step already, or cannot be described.

    Args:
        scope: where it is made.
        offered: the tool.
        arguments: by name, or their JSON text as the model gave it.
        layer: the seam that sees the call, such as ``langgraph.ToolNode``; see :mod:`spanreplay.boundary.layers`.
        call_id: the model's id of the call.
        annotation: declared type of the result, so that a replay gives the same type.
        streams: the call gives its answer as a stream.
        ending: how it ended, from what it returned or raised, see :class:`~spanreplay.boundary.call.Call`.

    Raises:
        Exception: in a replay, where the arguments cannot be encoded.
    """
    try:
        if is_inner_layer(scope, offered.name, layer):
            return None
        encoded = _encoded(arguments)
        asked = claim(scope, offered.name, encoded.text, call_id) if call_id is not None else None
        asked = asked or claim(scope, offered.name, encoded.text)
        info: ToolInfo | None = getattr(offered.function, "__spanreplay_tool__", None)
        attributes: dict[str, Any] = {**_shown(offered, info), **offered.attributes}
        if asked is not None:
            attributes[names.STEP_REQUESTED_BY] = asked.span_id
            if scope.run is not None and asked.run_id != scope.run.run_id:
                attributes[names.STEP_REQUESTED_IN] = asked.run_id
        return Call(
            kind="tool_call",
            name=offered.name,
            input=encoded,
            input_attribute=names.GEN_AI_TOOL_CALL_ARGUMENTS,
            result_attribute=names.GEN_AI_TOOL_CALL_RESULT,
            attributes=attributes,
            call_id=call_id if call_id is not None or asked is None else asked.call_id,
            effect=offered.effect if info is None else info.effect,
            annotation=annotation,
            streams=streams,
            layer=layer,
            tool_below=info is not None,
            ending=ending,
        )
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the arguments of {offered.name}")
        return None


def is_running(agent: str) -> bool:
    """Is what happens here the run of that agent: its framework passes a second seam of the same run?"""
    scope = here()
    around = None if scope is None else scope.step
    return around is not None and around.call.kind == "agent" and around.call.name == around.session.name(agent)


def attempt(scope: Scope, what: str, make: Callable[[], T]) -> T | None:
    """What ``make`` gives, or ``None`` where a framework is not as it is known here: counted, and the agent is not affected.

    Args:
        scope: where the call is made.
        what: what could not be recorded then.
        make: looks at objects of the framework.

    Raises:
        Exception: in a replay, what ``make`` raises.
    """
    try:
        return make()
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(what)
        return None


def not_made(
    scope: Scope,
    offered: Offered,
    arguments: object,
    outcome: OutcomeName,
    *,
    layer: str,
    call_id: str | None = None,
    error: BaseException | None = None,
    told: object = None,
) -> None:
    """Keep a call that a model asked for and that never reached the tool.

    Args:
        scope: where it would have been made.
        offered: the tool; of one that does not exist, the name.
        arguments: by name, or their JSON text as the model gave it.
        outcome: ``malformed``, ``rejected``, or ``deferred`` to another system.
        layer: the seam that says so.
        call_id: the model's id of the call.
        error: what the framework raised instead.
        told: what it told the model instead, where it raised nothing.
    """
    call = tool_call(scope, offered, arguments, layer=layer, call_id=call_id)
    if call is None:
        return
    call.passed = True  # there is nothing that a replay could keep from running
    step = begin(scope, call)
    if step is None:
        return
    step.ask()
    if error is not None:
        step.fail(error, outcome=outcome)
    elif told is not None:
        step.succeed(told, outcome=outcome)
    else:
        step.end(outcome)


def returned(function: Callable[..., Any] | None) -> object:
    """The declared type of a function's result: what ``tool_call`` takes as ``annotation`` where a seam hands that result on as it is.

    ``None`` where there is none or it cannot be resolved.
    """
    try:
        return None if function is None else _returned(function)
    except Exception:  # noqa: BLE001 — a name that only a type checker sees; a callable that cannot be hashed
        return None


@functools.lru_cache(maxsize=_DESCRIBED)
def _returned(function: Callable[..., Any]) -> object:
    return get_type_hints(inspect.unwrap(function)).get("return")


def _encoded(arguments: object) -> Encoded:
    if not isinstance(arguments, str):
        return codec.encode(arguments)
    try:
        return codec.encode(json.loads(arguments) if arguments else {})
    except ValueError:  # a model wrote it, and it is no JSON: kept as it is
        return codec.encode(arguments)


def _shown(offered: Offered, info: ToolInfo | None) -> dict[str, Any]:
    schema = remembered((offered.name, offered.description, offered.parameters), _schema_digest)
    made: dict[str, Any] = {names.GEN_AI_TOOL_TYPE: "function", names.TOOL_SCHEMA_DIGEST: schema}
    if offered.description:
        made[names.GEN_AI_TOOL_DESCRIPTION] = offered.description
    if info is not None:
        known = info.attributes
        made |= {name: known[name] for name in (names.TOOL_CODE_DIGEST, names.TOOL_VERSION) if name in known}
    elif offered.function is not None and (code := _code_digest(offered.function)) is not None:
        made[names.TOOL_CODE_DIGEST] = code
    return made


def _schema_digest(shown: tuple[str, str | None, object]) -> str:
    name, description, parameters = shown
    return digest(canonical_json({"name": name, "description": description, "parameters": parameters}))


def _code_digest(function: Callable[..., Any]) -> str | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else _digest_of_code(code)


@functools.lru_cache(maxsize=_DESCRIBED)
def _digest_of_code(code: CodeType) -> str | None:
    with contextlib.suppress(OSError, TypeError):  # typed at a prompt, or built in
        return digest(inspect.getsource(code))
    return None

"""``@tool``: a function whose calls are steps."""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar, cast, get_type_hints, overload
from weakref import WeakSet

from spanreplay.boundary import boundary, streams
from spanreplay.boundary.asked import claim
from spanreplay.boundary.call import EFFECTS, Call, Effect
from spanreplay.boundary.layers import is_inner_layer
from spanreplay.boundary.scope import Scope, process
from spanreplay.content import codec
from spanreplay.content.canonical import canonical_json, digest
from spanreplay.instrumentation.changed_in_place import Held
from spanreplay.semconv import attributes as names

P = ParamSpec("P")
R = TypeVar("R")

_LAYER: Final = "@tool"
_SELF: Final = frozenset({"self", "cls"})
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


_known: WeakSet["ToolInfo"] = WeakSet()


class ToolInfo:
    """What is known of a tool without calling it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        effect: Effect,
        version: str | None,
        idempotency_key: str | Callable[..., str] | None,
    ) -> None:
        self.function = function
        self.code = _code_of(function)
        """The function that is written somewhere, behind partials and callable objects."""
        self.name: str = name or _name_of(function)
        self.effect: Effect = effect
        self.version = version
        self.idempotency_key = idempotency_key
        self.signature = inspect.signature(function)
        self.streams = inspect.isgeneratorfunction(self.code) or inspect.isasyncgenfunction(self.code)
        parameters = self.signature.parameters.values()
        self._first = next(iter(self.signature.parameters), None)
        plain = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        self._plain = tuple(self.signature.parameters) if plain else None
        _known.add(self)
        self._needed = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)

    @functools.cached_property
    def attributes(self) -> dict[str, str]:
        """Versions of the tool: digests of what a model is shown of it and of its code. Computed at the first recorded call."""
        description = inspect.getdoc(self.code) or ""
        shown = {"name": self.name, "description": description, "signature": _ADDRESS.sub("", str(self.signature))}
        made = {names.GEN_AI_TOOL_TYPE: "function", names.TOOL_SCHEMA_DIGEST: digest(canonical_json(shown))}
        if description:
            made[names.GEN_AI_TOOL_DESCRIPTION] = description
        with contextlib.suppress(OSError, TypeError):  # typed at a prompt, or built in
            made[names.TOOL_CODE_DIGEST] = digest(inspect.getsource(self.code))
        if self.version is not None:
            made[names.TOOL_VERSION] = self.version
        return made

    @functools.cached_property
    def annotation(self) -> object:
        """Declared type of the result; ``None`` where there is none or it cannot be resolved."""
        try:
            return get_type_hints(self.code).get("return")
        except Exception:  # noqa: BLE001 — a name that only a type checker sees
            return None

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The call's arguments by name, in order, without ``self``; as given where they do not fit the signature."""
        bound = self._quickly_bound(args, kwargs)
        if bound is None:
            try:
                bound = self.signature.bind(*args, **kwargs).arguments
            except TypeError:
                return {"args": list(args), "kwargs": kwargs}
        if self._first in _SELF:
            bound.pop(self._first, None)
        return bound

    def _quickly_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """What ``bind`` would give, for a call that fits a plain list of parameters; else ``None``."""
        wanted = self._plain
        if wanted is None or len(args) > len(wanted):
            return None
        bound = dict(zip(wanted, args, strict=False))
        if kwargs:
            for name in wanted[len(args) :]:
                if name in kwargs:
                    bound[name] = kwargs[name]
            if len(bound) != len(args) + len(kwargs):
                return None
            return bound if all(name in bound for name in wanted[: self._needed]) else None
        return bound if len(args) >= self._needed else None

    def call(self, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The call as the Boundary takes it."""
        arguments = self.arguments(args, kwargs)
        encoded = codec.encode(arguments)
        held = Held(arguments, args[0] if self._first == "self" and args else None)
        attributes: Mapping[str, Any] = self.attributes
        asked = claim(scope, self.name, encoded.text)
        if asked is not None:
            attributes = {**attributes, names.STEP_REQUESTED_BY: asked.span_id}
        return Call(
            kind="tool_call",
            name=self.name,
            input=encoded,
            input_attribute=names.GEN_AI_TOOL_CALL_ARGUMENTS,
            result_attribute=names.GEN_AI_TOOL_CALL_RESULT,
            attributes=attributes,
            call_id=None if asked is None else asked.call_id,
            effect=self.effect,
            idempotency_key=self._key(scope, args, kwargs),
            annotation=self.annotation,
            signature=self.signature,
            streams=self.streams,
            layer=_LAYER,
            held=held or None,
        )

    def _key(self, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        wanted = self.idempotency_key
        if wanted is None:
            return None
        try:
            if not isinstance(wanted, str):
                return str(wanted(*args, **kwargs))
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return wanted.format(**bound.arguments)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            scope.session.failed(f"the idempotency key of {self.name}")
            return None


def known(name: str) -> list[ToolInfo]:
    """The tools of this process that have a name: several modules may each have one."""
    return [info for info in list(_known) if info.name == name]


def _whole(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _code_of(function: Any) -> Any:
    whole = _whole(function)
    return whole if hasattr(whole, "__name__") else type(whole).__call__


def _name_of(function: Any) -> str:
    whole = _whole(function)
    return str(getattr(whole, "__name__", type(whole).__name__))


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *,
    effect: Effect = "unknown",
    name: str | None = None,
    version: str | None = None,
    idempotency_key: str | Callable[..., str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "unknown",
    name: str | None = None,
    version: str | None = None,
    idempotency_key: str | Callable[..., str] | None = None,
) -> Any:
    """Make every call of a function a step; a replay answers it from the record and does not run it.

    Works on functions, methods, coroutines, generators and asynchronous generators, and keeps their kind.

    Args:
        function: the tool, when used without parentheses.
        effect: what a call does outside: ``read``, ``write``, ``irreversible``, or ``unknown``, which counts as a write.
        name: the tool's name as the model knows it; the function's own by default.
        version: the tool's version; digests of its signature and source are kept anyway.
        idempotency_key: ``"refund-{order_id}"`` filled from the arguments, or a function of them.

    Raises:
        ValueError: ``effect`` is none of the four.
    """
    if effect not in EFFECTS:
        raise ValueError(f"a tool's effect is one of {', '.join(EFFECTS)}; found {effect!r}")
    if function is None:
        return functools.partial(_wrap, effect=effect, name=name, version=version, idempotency_key=idempotency_key)
    return _wrap(function, effect=effect, name=name, version=version, idempotency_key=idempotency_key)


Ready = Callable[[tuple[Any, ...], dict[str, Any]], tuple[Scope, Call] | None]
"""Makes the call that a tool's arguments are; ``None`` where it goes straight through."""


def _wrap(
    function: Callable[..., Any], *, effect: Effect, name: str | None, version: str | None, idempotency_key: str | Callable[..., str] | None
) -> Callable[..., Any]:
    if isinstance(function, staticmethod | classmethod):
        inner = _wrap(function.__func__, effect=effect, name=name, version=version, idempotency_key=idempotency_key)
        return cast("Callable[..., Any]", type(function)(inner))
    info = ToolInfo(function, name=name, effect=effect, version=version, idempotency_key=idempotency_key)

    def ready(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Scope, Call] | None:
        scope = boundary.here()
        if scope is None or is_inner_layer(scope, info.name, _LAYER):
            return None
        try:
            return scope, info.call(scope, args, kwargs)
        except Exception:
            if scope.session.mode == "replay":
                raise
            scope.session.failed(f"the arguments of {info.name}")
            return None

    if inspect.isasyncgenfunction(info.code):
        wrapper = _asynchronous_stream(function, ready)
    elif inspect.isgeneratorfunction(info.code):
        wrapper = _synchronous_stream(function, ready)
    elif inspect.iscoroutinefunction(info.code):
        wrapper = _asynchronous(function, ready)
    else:
        wrapper = _synchronous(function, ready)
    wrapper.__spanreplay_tool__ = info  # type: ignore[attr-defined]
    return wrapper


def _asynchronous_stream(function: Callable[..., Any], ready: Ready) -> Callable[..., Any]:
    @functools.wraps(function)
    async def asynchronous_stream(*args: Any, **kwargs: Any) -> Any:
        made = ready(args, kwargs)
        invoke = functools.partial(function, *args, **kwargs)
        source: streams.Source[Any] = streams.Plain(invoke) if made is None else streams.AsyncStream(*made, invoke)
        # What streams.shell does; a wrapper that only returned it would be no generator function.
        try:
            item = await source.asend(None)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    await source.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 — handed on
                    item = await source.athrow(error)
                else:
                    item = await source.asend(sent)
        except StopAsyncIteration:
            return

    return asynchronous_stream


def _synchronous_stream(function: Callable[..., Any], ready: Ready) -> Callable[..., Any]:
    @functools.wraps(function)
    def synchronous_stream(*args: Any, **kwargs: Any) -> Any:
        made = ready(args, kwargs)
        if made is None:
            return (yield from function(*args, **kwargs))
        return (yield from streams.stream(*made, lambda: function(*args, **kwargs)))

    return synchronous_stream


def _asynchronous(function: Callable[..., Any], ready: Ready) -> Callable[..., Any]:
    @functools.wraps(function)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        made = ready(args, kwargs)
        if made is None:
            return await function(*args, **kwargs)
        return await boundary.acall(*made, lambda: function(*args, **kwargs))

    return asynchronous


def _synchronous(function: Callable[..., Any], ready: Ready) -> Callable[..., Any]:
    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        if not process.active:
            return function(*args, **kwargs)
        made = ready(args, kwargs)
        if made is None:
            return function(*args, **kwargs)
        return boundary.call(*made, lambda: function(*args, **kwargs))

    return synchronous

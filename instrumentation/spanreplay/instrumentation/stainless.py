"""What the SDKs of OpenAI and Anthropic have in common, which one generator writes (Stainless): arguments, clients, objects.

Seen in openai 3.57 and anthropic 2.14.
"""

import copy
import functools
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, TypeAlias

from spanreplay.content.canonical import canonical_writer
from spanreplay.instrumentation.hooks import UnsupportedError, expect
from spanreplay.instrumentation.patching import Patches
from spanreplay.instrumentation.shims.callbacks import out_of_order
from spanreplay.instrumentation.shims.randomness import left_out
from spanreplay.instrumentation.shortcut import Foreseen, Method, begun, foreseen

_MORE: Final = ("extra_query", "extra_body")
"""Arguments that add to a request what is not among the others."""
_NO_BODY: Final = frozenset({"extra_headers", "timeout", *_MORE})
"""Arguments that no answer is found by."""
_RAW: Final = "x-stainless-raw-response"
"""Header by which an SDK is asked for another kind of object."""
_OWN: Final = ("_custom_query", "_provider", "workload_identity", "_api_key_provider", "_strict_response_validation")
"""What a client has that changes its requests, or checks responses."""

Unlike: TypeAlias = Callable[[Mapping[str, Any]], bool]


def _never(_: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted(Method):
    """A method that gives a stream, or the response itself, where it is asked to."""

    sdk: "Stainless"
    streams: tuple[Any, Any]
    """The SDK's class of a stream, and of an asynchronous one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What it always says of its request."""


class Stainless:
    """An :class:`spanreplay.instrumentation.shortcut.Sdk`.

    Args:
        package: the SDK.
        clients: names of its plain client classes.
        ids: what an object of a response has of its headers: attribute to name of the header.
        unlike: tells of arguments for which a method does more than send them.
    """

    def __init__(self, package: ModuleType, clients: Collection[str], ids: Mapping[str, str], unlike: Unlike = _never) -> None:
        module: Any = package
        models = module._models
        self._construct: Callable[..., Any] = expect(models, "construct_type", ["value", "type_"])
        self._options: Callable[..., Any] = expect(module._base_client, "make_request_options", ["extra_headers", "timeout"])
        self._known_options = frozenset(inspect.signature(self._options).parameters)
        self._ids = ids
        self._base: Any = models.BaseModel
        self._absent: Any = tuple(getattr(module._types, name) for name in ("NotGiven", "Omit"))
        self._clients: Any = tuple(getattr(module, name) for name in clients)
        self._unlike = unlike
        self._url: tuple[object, str] = None, ""
        """The base URL that was asked for last, and its text."""
        self.write = canonical_writer(self._as_sent)

    def known(self, **options: Any) -> Mapping[str, Any]:
        """Those options of a request that this release of the SDK knows: older ones have fewer."""
        return {name: value for name, value in options.items() if name in self._known_options}

    def endpoint(self, client: Any) -> str | None:
        """The base URL of a plain client, which sends what it is given and nothing else."""
        if type(client) not in self._clients:
            return None
        for name in _OWN:
            if getattr(client, name, None):
                return None
        library: Any = getattr(client, "_client", None)
        hooks = getattr(library, "event_hooks", None)
        if not isinstance(hooks, dict) or any(hooks.values()) or getattr(library, "auth", True) is not None:
            return None
        url = client.base_url
        known = self._url
        if known[0] is not url:  # it takes as long to write it as all the rest here
            known = self._url = url, str(url)
        return known[1]

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The arguments that were given, but those about the request itself."""
        if any(arguments.get(name) for name in _MORE) or self._unlike(arguments):
            return None
        return {name: value for name, value in arguments.items() if name not in _NO_BODY and not isinstance(value, self._absent)}

    def _as_sent(self, value: Any) -> Any:
        """An object that the SDK gave, as it sends it again."""
        if isinstance(value, self._base):
            return value.model_dump(mode="json", exclude_unset=True, exclude=getattr(value, "__api_exclude__", None))
        raise TypeError(type(value).__name__)

    def post(self, method: "Posted", client: Any, arguments: Mapping[str, Any], body: Mapping[str, Any], *, is_async: bool) -> Any:
        """As the method does once it has looked at each argument: most of its work, which changes nothing of what was recorded so."""
        given = {name: arguments[name] for name in ("extra_headers", "timeout") if name in arguments}
        return client.post(
            method.path,
            body=json.loads(self.write(body)),
            options=self._options(**given, **method.options),
            cast_to=method.returned,
            stream=arguments.get("stream") is True,
            stream_cls=method.streams[is_async],
        )

    def build(self, returned: Any, data: object, headers: Mapping[str, str]) -> Any:
        """As the SDK does where it checks nothing."""
        made = self._construct(value=data, type_=returned)
        if not isinstance(made, self._base):
            raise UnsupportedError(f"wanted a {returned.__name__}, made a {type(made).__name__}")
        for name, header in self._ids.items():
            setattr(made, name, headers.get(header))
        return made

    def copies(self, made: Any) -> Callable[[], Any]:
        """What gives deep copies, as pydantic's ``model_copy(deep=True)``, twenty times as fast."""
        return _copies(made) or (lambda: made)


_ATOMS: Final = frozenset({str, int, float, bool, type(None)})


def _copies(value: Any) -> Callable[[], Any] | None:
    """What gives copies of a value; ``None`` where it is its own. What is built from JSON has no cycles, and little else in it."""
    kind = type(value)
    if kind in _ATOMS:
        return None
    if kind is dict:
        return _filled(value.copy, [(name, make) for name, item in value.items() if (make := _copies(item))])
    if kind is list:
        return _filled(value.copy, [(place, make) for place, item in enumerate(value) if (make := _copies(item))])
    if not hasattr(kind, "__pydantic_fields__"):
        return lambda: copy.deepcopy(value)
    fields, extra, private = (_copies(getattr(value, name)) for name in ("__dict__", "__pydantic_extra__", "__pydantic_private__"))
    given = value.__pydantic_fields_set__
    put = object.__setattr__

    def model() -> Any:
        made = object.__new__(kind)
        put(made, "__dict__", {} if fields is None else fields())
        put(made, "__pydantic_extra__", None if extra is None else extra())
        put(made, "__pydantic_fields_set__", given.copy())
        put(made, "__pydantic_private__", None if private is None else private())
        return made

    return model


def _filled(empty: Callable[[], Any], parts: list[tuple[Any, Callable[[], Any]]]) -> Callable[[], Any]:
    """What copies a dict or list, and in it those parts that are no atoms."""
    if not parts:
        return empty

    def filled() -> Any:
        made = empty()
        for place, make in parts:
            made[place] = make()
        return made

    return filled


def shorten(owner: Any, name: str, method: Posted, patches: Patches) -> None:
    """Put the shortcut before the method ``owner.name``, sync or async.

    Raises:
        UnsupportedError: it is not the SDK's own: what somebody else has put there has to run.
    """
    original = expect(owner, name, ["self"])
    code = getattr(original, "__code__", None)
    package = owner.__module__.partition(".")[0]
    if code is None or f"/{package}/" not in code.co_filename.replace("\\", "/"):
        raise UnsupportedError(f"wanted {package}'s own {owner.__name__}.{name}, found one that is patched")
    patches.replace(owner, name, lambda original: _observed(original, owner, method))


def _observed(original: Callable[..., Any], owner: Any, method: Posted) -> Callable[..., Any]:
    def known(resource: Any, args: tuple[Any, ...], arguments: Mapping[str, Any]) -> Foreseen | None:
        return None if args or type(resource) is not owner else foreseen(method, getattr(resource, "_client", None), arguments)

    if inspect.iscoroutinefunction(inspect.unwrap(original)):

        @functools.wraps(original)
        async def acreate(self: Any, *args: Any, **arguments: Any) -> Any:
            found = known(self, args, arguments)
            if found is None:
                with out_of_order():  # a new client looks in a thread where it runs
                    return await original(self, *args, **arguments)
            if _is_more_than_an_object(arguments):
                return await method.sdk.post(method, self._client, arguments, found.body, is_async=True)
            left_out(found.scope)  # the key that each of their requests gets
            return await begun(method, found).value_async()

        return acreate

    @functools.wraps(original)
    def create(self: Any, *args: Any, **arguments: Any) -> Any:
        found = known(self, args, arguments)
        if found is None:
            return original(self, *args, **arguments)
        if _is_more_than_an_object(arguments):
            return method.sdk.post(method, self._client, arguments, found.body, is_async=False)
        left_out(found.scope)
        return begun(method, found).value()

    return create


def _is_more_than_an_object(arguments: Mapping[str, Any]) -> bool:
    """Whether the caller gets a stream, or the response itself."""
    return arguments.get("stream") is True or any(str(name).lower() == _RAW for name in arguments.get("extra_headers") or ())

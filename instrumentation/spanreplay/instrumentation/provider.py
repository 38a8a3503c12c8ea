"""What a model API's codec offers, and how the codec of an exchange is found.

A provider turns the bodies of one model API into the ``gen_ai.*`` view and back. It is pure: no network, no clock, no state.
A new provider is one new file under ``providers/`` that defines ``PROVIDER``, a :class:`spanreplay.instrumentation._codec.Codec`.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from spanreplay.instrumentation import providers
from spanreplay.instrumentation._conversations import loads

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
"""What a span attribute holds here: 64-bit integers, finite floats, strings that UTF-8 can write."""


ProviderKind: TypeAlias = Literal["model_call", "retrieval"]


class ToolCallRef(NamedTuple):
    """One tool call that a model asked for."""

    id: str | None
    """The id that the model gave, or ``None``; ids are not unique within a run."""
    name: str
    arguments: object
    """The JSON object or array; the text as received where it is neither."""


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every model call, and that would take twice as long
class ModelRequest:
    """The ``gen_ai.*`` view of a request body."""

    model: str | None
    stream: bool
    attributes: Mapping[str, AttributeValue]


@dataclass(slots=True, kw_only=True)  # not frozen: one is made for every model call, and that would take twice as long
class ModelResponse:
    """The ``gen_ai.*`` view of a response."""

    attributes: Mapping[str, AttributeValue]
    outcome: Literal["ok", "malformed", "error"]
    """``error``: the other side reported one, by status, body or event. ``malformed``: a 2xx body that is not this API's."""
    complete: bool
    """``False`` only for a stream that ended before its terminal event; a plain body cannot tell that it was cut."""
    tool_calls: tuple[ToolCallRef, ...] = ()
    """In the order of the output."""
    error: tuple[str, str] | None = None
    """(type, message) unless the outcome is ``ok``."""


@runtime_checkable
class Provider(Protocol):
    """The codec of one model API. No method but :meth:`render` may meet anything but JSON; none raises on any of it."""

    NAME: ClassVar[str]
    """For example ``openai.chat``; kept in ``spanreplay.wire.provider``, so it is never changed."""
    KIND: ClassVar[ProviderKind]
    """What a call is: of a model, or for vectors to find something with."""
    PATHS: ClassVar[tuple[str, ...]]
    """Path suffixes, without query and trailing slash; a body is parsed only for a path that ends in one of them."""
    LOCAL_IDS: ClassVar[tuple[str, ...]]
    """Places of the request body, as ``messages[*].tool_call_id``, with ids that programs may make themselves: others each time."""
    LOCAL_TIMES: ClassVar[tuple[str, ...]]
    """The same of times."""

    def matches(self, method: str, path: str, body: object) -> bool:
        """Is this a model call of this API, on any host and under any prefix?

        Args:
            method: HTTP method, in any case.
            path: URL path, with or without its query.
            body: the parsed request body.
        """
        ...

    def asked(self, path: str, body: object) -> object:
        """The parsed request body with what the path says beside it (a model, that it is streamed) in the body's own words.

        Args:
            path: URL path and query.
            body: the parsed request body.
        """
        ...

    def request(self, body: object) -> ModelRequest:
        """Reads what was :meth:`asked`."""
        ...

    def response(self, status: int, content_type: str, body: bytes, request: object) -> ModelResponse:
        """Reads a response, plain or as server-sent events.

        Args:
            status: HTTP status.
            content_type: value of the header; may be empty.
            body: the bytes after content decoding (gzip, br, …), as far as they were received.
            request: what was :meth:`asked`.
        """
        ...

    def terminal(self, tail: bytes) -> bool:
        """Does a stream that ends in ``tail`` end in its terminal event?

        An event that reports an error counts: nothing follows it.

        Args:
            tail: the end of the content-decoded stream, holding the last event whole; the entire stream is fine, only its end is read.
        """
        ...

    def render(
        self,
        output_messages: Sequence[Mapping[str, object]],
        *,
        request: object,
        response_id: str | None,
        model: str | None,
        usage: Mapping[str, int],
    ) -> tuple[str, bytes]:
        """A response body made of messages alone, plain or as events, as the request's ``stream`` asks.

        Deterministic: ids that are missing are digests of the content, times are 0.

        Args:
            output_messages: ``gen_ai.output.messages``, parsed.
            request: what was :meth:`asked` in the request to answer.
            response_id: ``gen_ai.response.id``.
            model: ``gen_ai.response.model``; the requested model if ``None``.
            usage: token counts by attribute name, or as ``Step.usage`` names them (``cache_read_input_tokens``).

        Returns:
            Content type and body.
        """
        ...


@cache
def registry() -> tuple[Provider, ...]:
    """All providers found under ``providers/``, in the order of their names.

    Raises:
        TypeError: a file there defines no ``PROVIDER``, or one that is none.
    """
    found: list[Provider] = []
    for module in pkgutil.iter_modules(providers.__path__):
        candidate = getattr(importlib.import_module(f"{providers.__name__}.{module.name}"), "PROVIDER", None)
        if not isinstance(candidate, Provider):
            raise TypeError(f"wanted a Provider as PROVIDER in providers/{module.name}.py, found {type(candidate).__name__}")
        found.append(candidate)
    return tuple(sorted(found, key=lambda provider: provider.NAME))


def by_name(name: str) -> Provider | None:
    """The provider of that name, for example as read from ``spanreplay.wire.provider``."""
    return next((provider for provider in registry() if name == provider.NAME), None)


@cache
def _suffixes() -> tuple[str, ...]:
    return tuple(suffix for provider in registry() for suffix in provider.PATHS)


def recognise(method: str, path: str, content_type: str, body: bytes) -> tuple[Provider, object] | None:
    """The provider of a request and what it is asked, or ``None`` for anything that is no model call.

    Cheap for other traffic: the body is parsed only where method, path and content type fit.

    Args:
        method: HTTP method, in any case.
        path: URL path and query; an API may say in either what it is asked.
        content_type: value of the request header; may be empty.
        body: the request body, after content decoding.
    """
    if not trimmed(path).endswith(_suffixes()) or method.upper() != "POST":
        return None
    if content_type.lower().startswith(("multipart/", "application/x-www-form-urlencoded")):
        return None
    try:
        parsed = loads(body)
    except ValueError:
        return None
    return recognise_parsed(method, path, parsed)


def recognise_parsed(method: str, path: str, parsed: object) -> tuple[Provider, object] | None:
    """As :func:`recognise`, for a body that is JSON already."""
    found = next((provider for provider in _at(trimmed(path)) if provider.matches(method, path, parsed)), None)
    return None if found is None else (found, found.asked(path, parsed))


@lru_cache(maxsize=256)
def _at(path: str) -> tuple[Provider, ...]:
    """The providers that such a path may be of."""
    return tuple(provider for provider in registry() if path.endswith(provider.PATHS))


def trimmed(path: str) -> str:
    """A URL path without query, fragment and trailing slashes."""
    return path.partition("?")[0].partition("#")[0].rstrip("/")

"""What becomes of an HTTP request, whatever the client library: sent as it is, dropped, or made a step.

A transport of a client library asks :func:`consider` what to do with a request, opens its step with :func:`begin`, and tells the
:class:`~spanreplay.instrumentation.http_exchange.Exchange` it gets what happens.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Final

from spanreplay.boundary import boundary
from spanreplay.boundary.call import Call
from spanreplay.boundary.scope import Scope
from spanreplay.boundary.step import Step
from spanreplay.content.canonical import canonical_json
from spanreplay.content.codec import Encoded
from spanreplay.content.redaction import Redactor
from spanreplay.instrumentation import http_attempts, http_telemetry, http_vendors
from spanreplay.instrumentation.http_body import MAX_BODY, Kept, content_decoded, header, headers_json
from spanreplay.instrumentation.http_exchange import Exchange, Opening, RanOut, end_collected, is_watched, never
from spanreplay.instrumentation.http_request import Head, learn_credentials, matching_form
from spanreplay.instrumentation.provider import Provider, recognise, registry, trimmed
from spanreplay.semconv import attributes as names

_CONTAINERS: Final = frozenset({"agent", "handoff"})
"""Kinds whose bodies are the agent's own code. Any other step is answered whole in a replay, and what it sends belongs to it."""
_UPLOADS: Final = ("multipart/", "application/octet-stream", "image/", "audio/", "video/")


class Course(Enum):
    """What becomes of a request."""

    THROUGH = auto()
    """It goes to the network as if spanreplay were not there."""
    DROP = auto()
    """It is answered with an empty 200 and counted."""
    STEP = auto()
    """Its body decides; :func:`begin` is next."""


# ---- deciding -----------------------------------------------------------------------------------------------------


def consider(scope: Scope, head: Head) -> Course:
    """What becomes of a request, as far as can be told without its body."""
    try:
        replaying = scope.session.mode == "replay"
        if http_telemetry.is_telemetry(head):
            return _drop(scope, head) if replaying else Course.THROUGH
        if replaying:
            return Course.STEP
        if (http_telemetry.is_suppressed() and not _may_be_a_model_call(head)) or _unread_by_us(scope, head):
            return Course.THROUGH
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed("an HTTP request")
        return Course.THROUGH
    return Course.STEP


def _drop(scope: Scope, head: Head) -> Course:
    http_telemetry.drop(scope.session, head)
    return Course.DROP


def _may_be_a_model_call(head: Head) -> bool:
    return head.method == "POST" and trimmed(head.path).endswith(tuple(suffix for provider in registry() for suffix in provider.PATHS))


def _unread_by_us(scope: Scope, head: Head) -> bool:
    """Inside another step only model calls are of interest, and these are JSON: an upload need not be read into memory."""
    return _owner(scope) is not None and head.content_type.lower().startswith(_UPLOADS)


def _owner(scope: Scope) -> Step | None:
    """The step whose body sends the request and answers for it, or ``None`` in the agent's own code."""
    step = scope.step
    return None if step is None or step.call.passed or step.call.kind in _CONTAINERS else step


def begin(scope: Scope, head: Head, body: bytes, ran_out: RanOut = never) -> Exchange | Course:
    """Open the step of a request, or say that there is none.

    Args:
        scope: where the request is made.
        head: all of the request but its body.
        body: the body as it will be sent.
        ran_out: tells of an exception of the client library whether it says that a time ran out.

    Raises:
        Exception: the step of a replayed request could not be made.
    """
    try:
        end_collected()
        return _begin(scope, head, body, ran_out)
    except Exception:
        if scope.session.mode == "replay":
            raise
        scope.session.failed(f"the start of an HTTP request to {head.host}")
        return Course.THROUGH


def _begin(scope: Scope, head: Head, body: bytes, ran_out: RanOut) -> Exchange | Course:
    view = content_decoded(body, header(head.headers, "content-encoding")) if body else body
    known = recognise(head.method, head.target, head.content_type, view) if view else None
    owner = _owner(scope)
    replaying = scope.session.mode == "replay"
    if owner is not None and (names.HTTP_REQUEST_METHOD in owner.call.attributes or (known is None and not replaying)):
        return Course.THROUGH
    if known is None and head.inside:
        return Course.THROUGH
    # Instrumentation that suppresses others around a model call (Logfire's) makes one span of it; the exchange is only here.
    if known is None and http_telemetry.is_suppressed():
        return _drop(scope, head) if replaying else Course.THROUGH
    return _opened(scope, head, _call(scope, head, body, body if view is None else view, known), known, ran_out)


def known_call(scope: Scope, head: Head, known: tuple[Provider, object], write: Callable[[object], str]) -> Call | None:
    """The call that a request to a model API would be in a replay that only compares; ``None`` where it would be no step.

    Args:
        scope: where it is made.
        head: all of the request but its body; no telemetry.
        known: the codec of the API, and what it is asked: a body that need not yet be JSON everywhere.
        write: as :func:`~spanreplay.content.canonical.canonical_json`, for that body.

    Raises:
        Exception: what ``write`` raises.
    """
    owner = _owner(scope)
    if owner is not None and names.HTTP_REQUEST_METHOD in owner.call.attributes:
        return None
    return _call(scope, head, b"", b"", known, write)


def begin_known(scope: Scope, head: Head, call: Call, known: tuple[Provider, object]) -> Exchange:
    """Open the step of a :func:`known_call`."""
    end_collected()
    exchange = _opened(scope, head, call, known, never)
    assert isinstance(exchange, Exchange)  # noqa: S101 — a replay raises where a step cannot be made
    return exchange


def _opened(scope: Scope, head: Head, call: Call, known: tuple[Provider, object] | None, ran_out: RanOut) -> Exchange | Course:
    attempt, retry_of = http_attempts.take(scope, call)
    extra: dict[str, Any] = {names.STEP_ATTEMPT: attempt}
    if retry_of is not None:
        extra[names.STEP_RETRY_OF] = retry_of
    with Opening() as may_be:
        step = boundary.begin(scope, call, extra) if may_be else None
        if step is None:
            return Course.THROUGH
        provider, parsed = known if known is not None else (None, None)
        return Exchange(step, head, provider=provider, request=parsed, attempt=attempt, ran_out=ran_out)


def rewritten(exchange: Exchange, target: str, body: bytes) -> None:
    """A fork sends another request than the agent has made: its step is kept as that one, with what the agent asked as its input.

    Args:
        exchange: of the request as it was made; asked, and not yet sent.
        target: path and query that are sent.
        body: the body that is sent, not encoded.
    """
    step = exchange.step
    left = [(name, value) for name, value in exchange.head.headers if name.lower() not in ("content-encoding", "content-length")]
    head = replace(exchange.head, target=target, headers=left)
    known = recognise(head.method, head.target, head.content_type, body)
    call = _call(step.scope, head, body, body, known)
    made: dict[str, Any] = {**call.attributes, names.STEP_NAME: call.name}
    if call.input is not None:
        made[names.STEP_SENT] = call.input.text
    step.learn({name: value for name, value in made.items() if step.attributes.get(name) != value})
    exchange.head, exchange.request = head, known[1] if known is not None else exchange.request


def _call(
    scope: Scope,
    head: Head,
    body: bytes,
    view: bytes,
    known: tuple[Provider, object] | None,
    write: Callable[[object], str] = canonical_json,
) -> Call:
    redactor = scope.session.redactor
    learn_credentials(head, redactor)
    url, _ = redactor.url(head.url)
    place = url.removeprefix(f"{head.scheme}://")
    target = place[place.find("/") :] if "/" in place else "/"
    attributes: dict[str, Any] = {names.HTTP_REQUEST_METHOD: head.method, names.SERVER_ADDRESS: head.host}
    if head.effective_port is not None:
        attributes[names.SERVER_PORT] = head.effective_port
    watched = is_watched(scope.session)
    if watched:
        attributes[names.URL_FULL] = url
        attributes[names.WIRE_REQUEST_HEADERS] = headers_json(redactor.headers(head.headers)[0])
        _put_request_body(attributes, head, body, view, redactor)
    if known is None:
        name = f"{head.method} {head.host}{target.partition('?')[0]}"
        form = matching_form(head, target, view, model=False)
        return Call(kind="io", name=name, input=_plain(form), attributes=attributes, span_name=name, client=True)
    provider, parsed = known
    model = parsed.get("model") if isinstance(parsed, dict) and not watched else None
    if not isinstance(model, str):
        asked = provider.request(parsed)
        model = asked.model
        attributes.update(asked.attributes)
    vendor = http_vendors.at(head.host)
    if vendor is not None and names.GEN_AI_PROVIDER_NAME in attributes:
        attributes[names.GEN_AI_PROVIDER_NAME] = vendor
    attributes[names.WIRE_PROVIDER] = provider.NAME
    form = matching_form(head, target, view, parsed=parsed, model=True, write=write)
    return Call(kind=provider.KIND, name=model or provider.NAME, input=_plain(form), attributes=attributes, client=True)


def _put_request_body(attributes: dict[str, Any], head: Head, body: bytes, view: bytes, redactor: Redactor) -> None:
    if len(body) > MAX_BODY:
        attributes[names.STEP_LOSSY] = canonical_json([names.WIRE_REQUEST_BODY])
        return
    kept = Kept(body, head.headers, redactor, view)
    attributes[names.WIRE_REQUEST_BODY] = kept.text
    attributes[names.WIRE_REQUEST_BODY_ENCODING] = kept.encoding


def _plain(text: str) -> Encoded:
    return Encoded(text=text, lossy=False, typed=False)

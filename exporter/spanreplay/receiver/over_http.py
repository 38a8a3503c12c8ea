"""OTLP over HTTP: ``/v1/traces``, ``/v1/logs`` and ``/healthz``, as an ASGI application."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spanreplay.receiver.answers import JSON, Answer, Form, Signal, body
from spanreplay.receiver.intake import Intake, busy, too_large
from spanreplay.receiver.reading import Request
from spanreplay.receiver.settings import Settings
from spanreplay.receiver.unpacking import ENCODINGS

SERVICE: Final = "spanreplay"
"""What ``/healthz`` says it is."""
_FORMS: Final[dict[str, Form]] = {"application/x-protobuf": "protobuf", "application/protobuf": "protobuf", JSON: "json"}
_METRICS: Final = "spanreplay keeps traces and logs; there is nothing at {}. For metrics: OTEL_METRICS_EXPORTER=none"
_CLOSED: Final = 499
"""Nobody reads it: the client has gone."""


class _Refused(Exception):  # noqa: N818 — an answer, not a fault
    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def application(intake: Intake, settings: Settings) -> Starlette:
    """The application."""

    def export(signal: Signal) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        async def endpoint(request: HttpRequest) -> Response:
            form = _form(request)
            try:
                answer = await _taken(intake, settings, request, signal, form)
            except _Refused as refused:
                answer = refused.answer
            except ClientDisconnect:
                return Response(status_code=_CLOSED)
            return _response(answer, signal, form, request)

        return endpoint

    async def healthz(_: HttpRequest) -> Response:
        state = {
            "status": "failing" if intake.failing else "ok",
            "service": SERVICE,
            "version": _version(),
            "max_request_bytes": settings.limit,
        }
        return JSONResponse({**state, "reason": intake.failing} if intake.failing else state, 503 if intake.failing else 200)

    async def no_such_page(request: HttpRequest, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        if status == 405:
            return _response(Answer(verdict="wrong-method", message="wanted POST"), "spans", _form(request), request)
        return _response(Answer(verdict="unknown-path", message=_METRICS.format(request.url.path)[:200]), "spans", _form(request), request)

    async def fault(request: HttpRequest, _: Exception) -> Response:
        return _response(Answer(verdict="failed", message="a fault of spanreplay; its log says more"), "spans", _form(request), request)

    return Starlette(
        routes=[
            Route("/v1/traces", export("spans"), methods=["POST"]),
            Route("/v1/logs", export("logs"), methods=["POST"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        exception_handlers={HTTPException: no_such_page, Exception: fault},
    )


async def _taken(intake: Intake, settings: Settings, request: HttpRequest, signal: Signal, form: Form | None) -> Answer:
    """Everything that can be told from the head of a request is, before its body is read."""
    if not settings.lets_in(request.headers.get("authorization")):
        return Answer(verdict="unauthorized", message="wanted the header Authorization: Bearer TOKEN, with a token of this receiver")
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if form is None:
        wanted = "application/x-protobuf or application/json"
        return Answer(verdict="unsupported", message=f"Content-Type: wanted {wanted}, found {_said(request, 'content-type')}")
    if encoding not in ENCODINGS:
        return Answer(
            verdict="unsupported", message=f"Content-Encoding: wanted gzip, zstd or none, found {_said(request, 'content-encoding')}"
        )
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > settings.limit):
        return too_large(settings.limit)
    data, reserved = await _body(intake, settings, request)
    return await intake.take(Request(signal=signal, form=form, encoding=encoding, body=data), reserved)


async def _body(intake: Intake, settings: Settings, request: HttpRequest) -> tuple[bytes, int]:
    """The body as it was sent, and how much room it has been given."""
    loop = asyncio.get_running_loop()
    end = loop.time() + settings.body_s
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.idle_s) as patience:
            async for chunk in request.stream():
                _reserve(intake, settings, size, len(chunk))
                size += len(chunk)
                chunks.append(chunk)
                patience.reschedule(min(loop.time() + settings.idle_s, end))
    except TimeoutError:
        intake.release(size)
        raise _Refused(Answer(verdict="too-slow", message=f"after {size} bytes the body did not go on")) from None
    except BaseException:
        intake.release(size)
        raise
    return b"".join(chunks), size


def _reserve(intake: Intake, settings: Settings, size: int, more: int) -> None:
    if size + more > settings.limit:
        raise _Refused(too_large(settings.limit))
    if not intake.reserve(more):
        raise _Refused(busy())


def _form(request: HttpRequest) -> Form | None:
    return _FORMS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())


def _said(request: HttpRequest, header: str) -> str:
    return repr(request.headers[header][:80]) if header in request.headers else "none"


def _response(answer: Answer, signal: Signal, form: Form | None, request: HttpRequest) -> Response:
    """In the encoding of the request; in JSON where that is none of ours."""
    headers = {}
    if answer.retry_s is not None:
        headers["Retry-After"] = str(answer.retry_s)
    if answer.verdict == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if answer.verdict == "unsupported":
        headers["Accept-Encoding"] = "gzip, zstd, deflate"
    if answer.verdict == "wrong-method":
        headers["Allow"] = "GET" if request.url.path == "/healthz" else "POST"
    if answer.verdict == "too-slow":
        headers["Connection"] = "close"
    kind = request.headers["content-type"].partition(";")[0].strip().lower() if form is not None else JSON
    return Response(body(answer, signal, form or "json"), answer.http, headers, kind)


def _version() -> str:
    try:
        return version("spanreplay")
    except PackageNotFoundError:
        return "unknown"

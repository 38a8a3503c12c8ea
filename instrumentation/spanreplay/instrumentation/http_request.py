"""A request on its way out: what identifies it, what is kept of it, and which of its headers carry credentials."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from spanreplay.content.canonical import canonical_json
from spanreplay.content.credentials import says_credential
from spanreplay.instrumentation._conversations import canonical
from spanreplay.instrumentation.http_body import Headers, header

CREDENTIAL_HEADERS: Final = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-auth-token",
        "x-amz-security-token",
        "ocp-apim-subscription-key",
        "x-subscription-token",
    }
)
CREDENTIAL_PARAMETERS: Final = frozenset({"key", "api_key", "api-key", "apikey", "access_token"})
"""Query parameters that hold a credential at a model API, so that a replay with another key, or none, finds its record."""

PLACEHOLDERS: Final = frozenset(
    {
        "anything",
        "lm-studio",
        "no-api-key",
        "no-key-required",
        "not-needed",
        "not-required",
        "placeholder",
        "sk-no-key-required",
        "undefined",
    }
)
"""Keys that people give to servers that want none; as words of a text they are no secrets."""

MIN_SECRET: Final = 8
"""Characters below which a credential is not looked for in texts: it would be found in the middle of ordinary words."""

_SIGNATURE_PARAMETER: Final = re.compile(r"x-(?:amz|goog)-|(?:signature|sig|expires|awsaccesskeyid|googleaccessid)$", re.IGNORECASE)
_BOUNDARY: Final = re.compile(r'multipart/[^;]+;(?:.*;)?\s*boundary="?([^";]+)"?', re.IGNORECASE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class SecretKeeper(Protocol):
    """The part of a redactor that a request needs."""

    def headers(self, pairs: Sequence[tuple[str, str]], /) -> tuple[list[tuple[str, str]], int]:
        """The headers without secrets, and how many were replaced."""
        ...

    def url(self, url: str, /) -> tuple[str, int]:
        """The URL without secrets, and how many were replaced."""
        ...

    def learn(self, secret: str, /) -> None:
        """Replace this secret from now on wherever it appears."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Everything of a request but its body. User name and password of the URL are left out; clients turn them into a header."""

    method: str
    """Upper case."""
    scheme: str
    host: str
    port: int | None
    """``None`` where the URL names none."""
    target: str
    """Path and query, as sent."""
    headers: Headers
    inside: bool = False
    """It is answered by an application in this very process, which runs in a replay as the rest of the program does."""

    @property
    def path(self) -> str:
        """The path alone."""
        return self.target.partition("?")[0]

    @property
    def content_type(self) -> str:
        """Value of the header; may be empty."""
        return header(self.headers, "content-type")

    @property
    def authority(self) -> str:
        """Host, and port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None or self.port == _DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL, secrets and all."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def effective_port(self) -> int | None:
        """The port connected to."""
        return self.port if self.port is not None else _DEFAULT_PORTS.get(self.scheme)


def learn_credentials(head: Head, redactor: SecretKeeper) -> None:
    """Tell the redactor the credentials of this request, so that it knows them again in bodies and exception texts."""
    for name, value in head.headers:
        if _holds_credential(name):
            scheme, _, rest = value.strip().partition(" ")
            secret = rest.strip() or scheme
            if scheme.lower() == "basic":
                _learn(_password(secret), redactor)
            if scheme.upper().startswith("AWS4-"):
                secret = secret.rpartition("Signature=")[2]
            _learn(secret, redactor)
    if "=" in head.target:
        for name, value in parse_qsl(head.target.partition("?")[2]):
            if name.lower() in CREDENTIAL_PARAMETERS:
                _learn(value, redactor)


@lru_cache(maxsize=1024)
def _holds_credential(header: str) -> bool:
    return header.lower() in CREDENTIAL_HEADERS or says_credential(header)


_AWS_KEY: Final = b"ccessKeyId"
"""In every document of AWS that hands out credentials, JSON or XML, as long as they are of AWS's own making."""
_AWS_SECRET: Final = re.compile(rb"(?:secretaccesskey|sessiontoken|[\"']token)[\"']?\s*[:>]\s*[\"']?([^\"'<\s]+)", re.IGNORECASE)


_AWS_HANDS_OUT: Final = "/latest/api/token"
"""Where the instance metadata service hands out the token for further requests, as text."""


def learn_returned(head: Head, body: bytes, redactor: SecretKeeper) -> None:
    """Tell the redactor the credentials that a response hands out: those of AWS, which no name gives away (STS, instance metadata, SSO).

    Args:
        head: the request.
        body: of the response, after content decoding.
        redactor: the session's.
    """
    if head.path == _AWS_HANDS_OUT:
        _learn(body.decode("utf-8", "replace").strip(), redactor)
    if _AWS_KEY in body:
        for secret in _AWS_SECRET.findall(body):
            _learn(secret.decode("utf-8", "replace"), redactor)


_learnt: Final[WeakKeyDictionary[SecretKeeper, set[str]]] = WeakKeyDictionary()


def _learn(secret: str, redactor: SecretKeeper) -> None:
    known = _learnt.get(redactor)
    if known is None:
        known = _learnt.setdefault(redactor, set())
    if secret not in known and len(secret) >= MIN_SECRET and secret.lower() not in PLACEHOLDERS:
        redactor.learn(secret)
        known.add(secret)


def _password(basic: str) -> str:
    try:
        return b64decode(basic, validate=True).decode("utf-8").partition(":")[2]
    except ValueError:
        return ""


# ---- the form that a replay compares ------------------------------------------------------------------------------


def matching_form(
    head: Head, target: str, body: bytes, *, parsed: object = None, model: bool, write: Callable[[object], str] = canonical_json
) -> str:
    """What of a request must be equal for a recorded answer to fit, as canonical JSON.

    ``{"method": "POST", "url": "/v1/chat/completions", "body": {…}}``: ``url`` is path and query. The body is under ``body`` if it is
    JSON, under ``text`` if it is other UTF-8 text, under ``base64`` otherwise; there is none of the three if it is empty. A request
    that is no model call has ``host`` (and port, unless it is the scheme's own) too: a model may be served elsewhere in a replay, other
    services may not. No header is in it. Left out as well are parameters that sign a URL, a model call's API key and what it is to be
    cached by, and a multipart body's random boundary: they differ every time.

    Args:
        head: the request.
        target: its path and query without secrets.
        body: its body after content decoding.
        parsed: the body as JSON, where somebody has parsed it already.
        model: it is a model call.
        write: as :func:`~spanreplay.content.canonical.canonical_json`, for a body that is not yet JSON everywhere.
    """
    form: dict[str, object] = {"method": head.method, "url": _steady(target, model=model)}
    if not model:
        form["host"] = head.authority
    if parsed is not None:
        form["body"] = parsed
    elif body:
        form.update(_body_form(head, body))
    asked = form.get("body")
    if model and isinstance(asked, dict) and not _CACHED_BY.isdisjoint(asked):
        form["body"] = {name: value for name, value in asked.items() if name not in _CACHED_BY}
    if write is canonical_json and isinstance(form.get("body"), dict):
        return canonical(form, levels=2)
    return write(form)


_CACHED_BY: Final = frozenset({"prompt_cache_key"})
"""Fields of OpenAI's APIs that change where an answer is computed and not what it is; the Agents SDK makes a random one for each run."""


def _steady(target: str, *, model: bool) -> str:
    path, mark, query = target.partition("?")
    if not mark:
        return target
    kept = [part for part in query.split("&") if not _is_volatile(part.partition("=")[0], model=model)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def _is_volatile(parameter: str, *, model: bool) -> bool:
    return _SIGNATURE_PARAMETER.match(parameter) is not None or (model and parameter.lower() in CREDENTIAL_PARAMETERS)


def _body_form(head: Head, body: bytes) -> dict[str, object]:
    content_type = head.content_type
    boundary = _BOUNDARY.match(content_type)
    if boundary:
        body = body.replace(boundary[1].encode("latin-1"), b"boundary")
    elif "json" in content_type.lower() or body[:1] in (b"{", b"["):
        try:
            return {"body": json.loads(body)}
        except (ValueError, RecursionError):
            pass
    try:
        return {"text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(body).decode("ascii")}

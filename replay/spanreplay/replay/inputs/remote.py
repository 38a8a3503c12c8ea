"""Fetching traces from a running back end, by id or by search: ``jaeger+https://HOST/TRACEID``, ``tempo+http://HOST:3200/?q={…}``.

A back end is one module in :mod:`spanreplay.replay.inputs.remotes` that satisfies :class:`Remote`. It only asks; what comes back is
recognised and read as any file is, so there is one way in.
"""

import importlib
import io
import pkgutil
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast
from urllib.parse import unquote, unquote_plus, urlsplit

from spanreplay.replay.inputs import remotes
from spanreplay.replay.inputs.input_stream import DEFAULT_LIMITS, Limits
from spanreplay.replay.inputs.report import UnreadableSource
from spanreplay.replay.inputs.source import Opened, open_documents
from spanreplay.spans.record import Record

if TYPE_CHECKING:
    import requests

DEFAULT_LIMIT: Final = 20
"""Traces that a search gives unless it says otherwise."""
DEFAULT_SINCE: Final = timedelta(hours=24)

_URL: Final = re.compile(r"(?P<scheme>[a-z]+)\+(?P<rest>[a-z]+://.*)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"(?<!&)&(?=[A-Za-z_.-]+=|$)")
_AGO: Final = re.compile(r"(\d{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TRACE_ID: Final = re.compile(r"[0-9a-f]{1,32}")
OTHER_TRACE: Final = "other-trace"
"""A back end gave a trace that nobody asked for."""
_CHUNK: Final = 1 << 16
_MOST: Final = 256 << 20
"""Bytes of one answer, unpacked. A trace that is larger has to come as a file, which is read in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach a back end, and as whom. Sent to the host of the URL only: redirects are not followed."""

    headers: Mapping[str, str] = field(default_factory=dict)
    bearer: str | None = None
    basic: tuple[str, str] | None = None
    """User and password."""
    tenant: str | None = None
    """Sent in the header that the back end has for it."""
    ca: Path | None = None
    """Certificates that are trusted instead of the system's."""
    cert: Path | None = None
    key: Path | None = None
    timeout_s: float = 30.0
    """Seconds for each whole answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A URL of a back end, taken apart."""

    text: str
    """As it was given."""
    scheme: str
    base: str
    """``https://HOST[:PORT]``."""
    path: tuple[str, ...]
    """Segments."""
    query: Mapping[str, str]

    @property
    def searches(self) -> bool:
        """Whether it asks for whatever fits, and not for one trace."""
        return bool(self.query) or not self.path

    def under(self, *segments: str) -> str:
        """A URL of the back end: below the whole path where the URL searches, else below what stands before the trace id."""
        before = self.path if self.searches else self.path[:-1]
        return "/".join([self.base, *before, *segments])

    def wrong(self, expected: str, found: str, hint: str = "") -> UnreadableSource:
        """An error about it."""
        return UnreadableSource(self.text, "", expected, found, hint=hint)

    def known(self, *names: str) -> Mapping[str, str]:
        """The query, all of whose keys have to be among ``names``.

        Raises:
            UnreadableSource: one is not.
        """
        odd = [name for name in self.query if name not in names]
        if odd:
            raise self.wrong(f"a search by {', '.join(names)}", odd[0])
        return self.query

    def limit(self) -> int:
        """How many traces a search may give.

        Raises:
            UnreadableSource: it is no number above 0.
        """
        text = self.query.get("limit", str(DEFAULT_LIMIT))
        if not text.isdecimal() or not 0 < len(text) < 8 or int(text) == 0:
            raise self.wrong("a limit such as limit=20", f"limit={text}")
        return int(text)

    def period(self) -> tuple[datetime, datetime]:
        """From when to when a search looks: ``since`` and ``until``, each an RFC 3339 time or how long ago, such as ``2h``.

        Raises:
            UnreadableSource: one of them is neither.
        """
        now = datetime.now(UTC)
        return self._moment("since", now, now - DEFAULT_SINCE), self._moment("until", now, now)

    def _moment(self, name: str, now: datetime, otherwise: datetime) -> datetime:
        text = self.query.get(name)
        if text is None:
            return otherwise
        ago = _AGO.fullmatch(text)
        if ago is not None:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self.wrong(f"{name}=2h or {name}=2026-11-29T10:00:00Z", f"{name}={text}") from None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class Fetch(Protocol):
    """Gets one URL."""

    def __call__(self, url: str, params: Mapping[str, Any] | None = None) -> bytes | None:
        """The body; ``None`` where there is nothing of that name (404).

        Raises:
            UnreadableSource: it cannot be reached, refuses, or gives more than the limit.
        """
        ...


class Remote(Protocol):
    """One back end: what a module in :mod:`spanreplay.replay.inputs.remotes` offers."""

    @property
    def SCHEME(self) -> str:  # noqa: N802 (a constant of the module)
        """What stands before the ``+`` of a URL."""
        ...

    @property
    def TENANT_HEADER(self) -> str:  # noqa: N802
        """The header that names the tenant."""
        ...

    def documents(self, location: Location, fetch: Fetch) -> Iterator[tuple[str, bytes]]:
        """What it has of a trace or a search: a name and a body each, in any readable format.

        Raises:
            UnreadableSource: the URL does not say what is wanted, or as ``fetch`` raises it.
        """
        ...


@cache
def registry() -> Mapping[str, Remote]:
    """All back ends by their scheme."""
    names = sorted(module.name for module in pkgutil.iter_modules(remotes.__path__) if not module.name.startswith("_"))
    found = [cast("Remote", importlib.import_module(f"{remotes.__name__}.{name}")) for name in names]
    return {remote.SCHEME: remote for remote in found}


def is_remote(target: str) -> bool:
    """Whether a SOURCE is the URL of a back end, known or not."""
    return _URL.fullmatch(target) is not None


def locate(url: str) -> Location:
    """Takes a URL apart.

    Raises:
        UnreadableSource: it is none, or of an unknown back end.
    """
    found = _URL.fullmatch(url)
    known = ", ".join(f"{scheme}+http://…" for scheme in registry())
    if found is None or found["scheme"] not in registry():
        raise UnreadableSource(url, "", f"a URL of a back end ({known})", "another")
    try:
        parts = urlsplit(found["rest"])
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UnreadableSource(url, "", "a URL", str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise UnreadableSource(url, "", f"{found['scheme']}+http:// or {found['scheme']}+https://", f"{parts.scheme}://")
    if not host:
        raise UnreadableSource(url, "", "a URL with a host", "none")
    if parts.username is not None:
        hint = "use --basic-auth-env, so that the password is not in the shell's history"
        shown = url.replace(parts.netloc.rpartition("@")[0], "…", 1)
        raise UnreadableSource(shown, "", "a URL without user and password", "one with them", hint=hint)
    shown = f"[{host}]" if ":" in host else host
    return Location(
        text=url,
        scheme=found["scheme"],
        base=f"{parts.scheme}://{shown}{f':{port}' if port else ''}",
        path=tuple(unquote(segment) for segment in parts.path.split("/") if segment),
        query=_query(parts.query),
    )


def _query(text: str) -> dict[str, str]:
    """The parameters of a URL, of which a value may be TraceQL as people write it: ``&&``, and ``&`` before a space, are its own."""
    pairs = (part.partition("=") for part in _SEPARATOR.split(text) if part)
    return {unquote_plus(name): unquote_plus(value) for name, _, value in pairs}


def open_remote(url: str, access: Access, *, limits: Limits = DEFAULT_LIMITS) -> Opened:
    """Fetches what a URL names and opens it as a source.

    Raises:
        UnreadableSource: there is nothing, it cannot be reached, or it refuses.
    """
    import requests

    location = locate(url)
    remote = registry()[location.scheme]
    session = requests.Session()
    session.trust_env = False  # no credentials from ~/.netrc, no proxy for what may be inside
    session.headers.update({"Accept": "application/json", **access.headers})
    if access.bearer is not None:
        session.headers["Authorization"] = f"Bearer {access.bearer}"
    elif access.basic is not None:
        session.auth = access.basic
    if access.tenant is not None:
        session.headers[remote.TENANT_HEADER] = access.tenant
    if access.ca is not None:
        session.verify = str(access.ca)
    if access.cert is not None:
        session.cert = (str(access.cert), str(access.key)) if access.key is not None else str(access.cert)
    fetch = _Fetching(session, location, access.timeout_s, min(limits.document, _MOST))
    bodies = ((name, cast("BinaryIO", io.BytesIO(body))) for name, body in remote.documents(location, fetch))
    opened = open_documents(url, bodies, limits=limits)
    asked = _trace_asked_for(location)
    return opened if asked is None else replace(opened, records=_watched(opened, asked))


def _trace_asked_for(location: Location) -> str | None:
    named = "" if location.searches else location.path[-1].lower()
    return named.rjust(32, "0") if _TRACE_ID.fullmatch(named) else None


def _watched(opened: Opened, asked: str) -> Iterator[Record]:
    for record in opened.records:
        if record.trace_id is not None and record.trace_id != asked:
            opened.report.note(OTHER_TRACE, f"is of another trace than {asked}, which was asked for")
        yield record


class _Fetching:
    """Fetches with one session, never more than ``most`` bytes a body."""

    def __init__(self, session: "requests.Session", location: Location, timeout_s: float, most: int) -> None:
        self._session = session
        self._location = location
        self._timeout_s = timeout_s
        self._most = most

    def __call__(self, url: str, params: Mapping[str, Any] | None = None) -> bytes | None:
        import requests

        wrong = self._location.wrong
        until = time.monotonic() + self._timeout_s
        try:
            with self._session.get(url, params=params, timeout=self._timeout_s, allow_redirects=False, stream=True) as answer:
                if answer.status_code == requests.codes.not_found:
                    return None
                body = self._body(answer, until)
        except requests.Timeout:
            raise wrong(f"an answer within {self._timeout_s:g} s", "none", "--timeout waits longer") from None
        except requests.exceptions.SSLError as error:
            raise wrong("a certificate that is trusted", _reason(error), "--ca FILE names another authority") from None
        except (requests.RequestException, OSError, ValueError) as error:
            raise wrong(f"an answer from {self._location.base}", _reason(error)) from None
        if answer.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            hint = "give --bearer-token-env, --basic-auth-env, --header or --tenant"
            raise wrong("to be let in", f"{answer.status_code} {answer.reason}{_said(body)}", hint)
        if answer.status_code != requests.codes.ok:
            moved = f" to {answer.headers['Location']}" if "Location" in answer.headers else ""
            raise wrong(f"200 from {url}", f"{answer.status_code} {answer.reason}{moved}{_said(body)}")
        return body

    def _body(self, answer: "requests.Response", until: float) -> bytes:
        import requests

        body = bytearray()
        # One read of the socket at a time: what drips in would else never come to an end.
        while part := answer.raw.read1(_CHUNK, decode_content=True):
            body += part
            if len(body) > self._most:
                hint = "save it to a file, and give that"
                raise self._location.wrong(f"an answer of at most {self._most} bytes", "a longer one", hint)
            if time.monotonic() > until:
                raise requests.Timeout
        return bytes(body)


def _said(body: bytes) -> str:
    text = body[:200].decode("utf-8", "replace").strip()
    return f": {text}" if text else ""


def _reason(error: BaseException) -> str:
    inner: BaseException = error
    while inner.args and isinstance(inner.args[0], BaseException):
        inner = inner.args[0]
    reason = getattr(inner, "reason", inner)
    return re.sub(r"^(<[^>]*>|\w+\([^)]*\)): ", "", str(reason))

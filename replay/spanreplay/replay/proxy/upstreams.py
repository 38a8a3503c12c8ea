"""Where a model proxy sends what it gets: by the first segment of the path, or everything to one place."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
_URL: Final = re.compile(r"https?://[^/?#\s@]+(/[^?#\s]*)?")


class UpstreamError(ValueError):
    """What was given is no upstream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A model API.

    Attributes:
        name: first segment of the path at the proxy; empty: all paths that no other has.
        url: where it is, without a slash at the end.
        variables: in which SDKs look for its address; the first is looked at for where it is.
    """

    name: str
    url: str
    variables: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}={self.url}" if self.name else self.url


KNOWN: Final = (
    Upstream(name="openai", url="https://api.openai.com/v1", variables=("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Upstream(name="anthropic", url="https://api.anthropic.com", variables=("ANTHROPIC_BASE_URL",)),
    Upstream(name="gemini", url="https://generativelanguage.googleapis.com", variables=("GOOGLE_GEMINI_BASE_URL",)),
    Upstream(name="mistral", url="https://api.mistral.ai"),
    Upstream(name="cohere", url="https://api.cohere.com", variables=("CO_API_URL",)),
    Upstream(name="groq", url="https://api.groq.com", variables=("GROQ_BASE_URL",)),
    Upstream(name="ollama", url="http://127.0.0.1:11434", variables=("OLLAMA_HOST",)),
)
"""Bedrock is not among them: AWS clients sign the host they send to, so what a proxy passes on is refused there."""


def upstreams(given: Iterable[str], environment: Mapping[str, str] | None = None) -> tuple[Upstream, ...]:
    """The upstreams of a proxy: the known ones, where the environment has one of them elsewhere there, and those given.

    Args:
        given: ``URL`` or ``NAME=URL``.
        environment: variables; this process's by default.

    Raises:
        UpstreamError: one is neither.
    """
    found = os.environ if environment is None else environment
    made = {known.name: _placed(known, found) for known in KNOWN}
    for text in given:
        name, _, url = text.rpartition("=") if re.match(r"[^/:]*=", text) else ("", "", text)
        if name and not _NAME.fullmatch(name):
            raise UpstreamError(f"an upstream is URL or NAME=URL, the name of lower-case letters, digits, - and _; found {text!r}")
        if not _URL.fullmatch(url):
            raise UpstreamError(f"an upstream is http(s)://HOST[/PATH], without user, query or fragment; found {url!r}")
        made[name] = Upstream(name=name, url=url.rstrip("/"), variables=made[name].variables if name in made else ())
    return tuple(made.values())


def _placed(known: Upstream, environment: Mapping[str, str]) -> Upstream:
    url = next((environment[name] for name in known.variables[:1] if environment.get(name)), "").rstrip("/")
    return Upstream(name=known.name, url=url, variables=known.variables) if _URL.fullmatch(url) else known


def addresses(proxy: str, found: Iterable[Upstream]) -> dict[str, str]:
    """The variables that send SDKs to a proxy.

    Args:
        proxy: its URL.
        found: its upstreams.
    """
    return {variable: f"{proxy}/{upstream.name}" for upstream in found for variable in upstream.variables}

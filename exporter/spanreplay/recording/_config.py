"""What a recording is started with: arguments first, then environment variables, then defaults."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from spanreplay.boundary.session import RunPer, SpanContent
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.redacting import Redaction, redactor_for
from spanreplay.semconv import attributes as names
from spanreplay.store.journal_file import Durability

Adapters: TypeAlias = Literal["auto", "none"] | Sequence[str]

_CONTENT: Final[tuple[SpanContent, ...]] = ("full", "view", "none")
_RUN_PER: Final[tuple[RunPer, ...]] = ("auto", "agent", "command")
_DURABILITY: Final[tuple[Durability, ...]] = ("process", "disk", "batch")
_SHUTDOWN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A recording's settings, all decided."""

    store: Path
    adapters: Adapters
    content: SpanContent
    run_per: RunPer
    durability: Durability
    shutdown_s: float
    """How long the process may take at its end to load what it has recorded."""
    redactor: Redactor
    attributes: Mapping[str, Any]
    """On every step: session, user, whatever the caller gave."""


def configure(
    *,
    store: str | Path | None,
    adapters: Adapters,
    content: SpanContent | None,
    redaction: Redaction | None,
    run_per: RunPer | None,
    session_attributes: Mapping[str, Any] | None,
    durability: Durability | None,
) -> Config:
    """Decide the settings.

    Raises:
        ValueError: an argument is none of its choices. A wrong environment variable only warns.
    """
    for name, given, choices in (
        ("content", content, _CONTENT),
        ("run_per", run_per, _RUN_PER),
        ("durability", durability, _DURABILITY),
    ):
        if given is not None and given not in choices:
            raise ValueError(f"{name} is {given!r}; it is one of {', '.join(choices)}")
    if redaction is not None and not isinstance(redaction, RedactionPolicy) and redaction not in ("default", "none"):
        raise ValueError(f"redaction is {redaction!r}; it is default, none or a RedactionPolicy")
    attributes: dict[str, Any] = {}
    for variable, name in ((env.SPANREPLAY_SESSION, names.SESSION_ID), (env.SPANREPLAY_USER, names.USER_ID)):
        value = os.environ.get(variable)
        if value:
            attributes[name] = value
    attributes.update(session_attributes or {})
    return Config(
        store=env.store_folder(store),
        adapters=adapters,
        content=content or env.choice(env.SPANREPLAY_SPAN_CONTENT, _CONTENT, "view"),
        run_per=run_per or env.choice(env.SPANREPLAY_RUN_PER, _RUN_PER, "auto"),
        durability=durability or env.choice(env.SPANREPLAY_DURABILITY, _DURABILITY, "process"),
        shutdown_s=env.seconds(env.SPANREPLAY_SHUTDOWN_SECONDS, _SHUTDOWN_SECONDS),
        redactor=redactor_for(redaction),
        attributes=attributes,
    )

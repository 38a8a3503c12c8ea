"""Which redaction policy is in force: one for each process, so that the same secret has the same replacement everywhere."""

import os
import sys
from typing import Final, Literal, TypeAlias

from spanreplay.content.redaction import RedactionPolicy, Redactor, argument_secrets, environment_secrets
from spanreplay.exporter.environment_variables import SPANREPLAY_REDACTION, warn_once

Redaction: TypeAlias = Literal["default", "none"] | RedactionPolicy

_redactors: Final[dict[str, Redactor]] = {}


def policy_of(given: str | RedactionPolicy | None = None) -> RedactionPolicy:
    """The policy named by an argument, else by ``SPANREPLAY_REDACTION``, else the default one."""
    if isinstance(given, RedactionPolicy):
        return given
    found = (given or os.environ.get(SPANREPLAY_REDACTION, "")).strip()
    if found.startswith("{"):
        try:
            return RedactionPolicy.from_json(found)
        except Exception:  # noqa: BLE001 — telemetry never breaks the agent
            warn_once(SPANREPLAY_REDACTION, "default, none, a policy as JSON", found, "default")
            return RedactionPolicy.default()
    if found.lower() == "none":
        return RedactionPolicy.none()
    if found and found.lower() != "default":
        warn_once(SPANREPLAY_REDACTION, "default, none, a policy as JSON", found, "default")
    return RedactionPolicy.default()


def redactor_for(given: str | RedactionPolicy | None = None) -> Redactor:
    """The process's redactor of that policy."""
    if isinstance(given, RedactionPolicy):
        return _knowing(Redactor(given))
    key = (given or os.environ.get(SPANREPLAY_REDACTION, "")).strip()
    redactor = _redactors.get(key)
    if redactor is None:
        redactor = _redactors.setdefault(key, _knowing(Redactor(policy_of(given))))
    return redactor


def _knowing(redactor: Redactor) -> Redactor:
    for secret in (*environment_secrets(os.environ), *argument_secrets(sys.orig_argv)):
        redactor.learn(secret)
    return redactor

"""Which redaction policy is in force: one for each process, so that the same secret has the same replacement everywhere."""

import os
import sys
from typing import Any, Final, Literal, TypeAlias

from spanreplay.content.credentials import argument_secrets, environment_secrets
from spanreplay.content.redaction import RedactionPolicy, Redactor
from spanreplay.exporter.environment_variables import SPANREPLAY_REDACTION, warn_once

Redaction: TypeAlias = Literal["default", "none"] | RedactionPolicy

_redactors: Final[dict[str, Redactor]] = {}
_POLICIES: Final = 16
"""How many policies are known together with the secrets of this process."""


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
    """The process's redactor of that policy; for a policy that is given itself, such as that of a recorded run, one of its own."""
    if isinstance(given, RedactionPolicy):
        return _bases.of(given).sharing()
    key = (given or os.environ.get(SPANREPLAY_REDACTION, "")).strip()
    redactor = _redactors.get(key)
    if redactor is None:
        redactor = _redactors.setdefault(key, _knowing(Redactor(policy_of(given))))
    return redactor


class _Bases:
    """Redactors that know the secrets of this process as it is: its variables, which may be set at any time, and its arguments."""

    def __init__(self) -> None:
        self._variables: dict[Any, Any] = {}
        self._of: dict[RedactionPolicy, Redactor] = {}

    def of(self, policy: RedactionPolicy) -> Redactor:
        """The one of a policy; it is never asked itself, and so learns nothing of what a run says."""
        variables = getattr(os.environ, "_data", os.environ)  # decoding them all takes ten times as long as comparing them
        if self._variables != variables or len(self._of) >= _POLICIES:
            self._variables, self._of = dict(variables), {}
        known = self._of.get(policy)
        if known is None:
            known = self._of.setdefault(policy, _knowing(Redactor(policy)))
        return known


_bases: Final = _Bases()


def _knowing(redactor: Redactor) -> Redactor:
    for secret in (*environment_secrets(os.environ), *argument_secrets(sys.orig_argv)):
        redactor.learn(secret)
    return redactor

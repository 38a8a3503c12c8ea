"""Which live calls may act: those whose effect is ``read``, and those that the user has named, elsewhere than where the run was recorded.

The effect of a call is what its tool declares (``@tool(effect=…)``, the annotations of MCP, what a framework says of it), else
``unknown``, which counts as more than ``read``. HTTP requests of the agent's own have that of their method (RFC 9110, section 9.2.1).

Where calls act is ``spanreplay.target`` on their steps, else ``deployment.environment.name`` of the process that recorded them. What
no record names is the user's word: ``--target`` says where live calls act, and is kept with their steps.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Final

from spanreplay.boundary.call import Effect
from spanreplay.boundary.errors import ControlSignal
from spanreplay.boundary.step import Step as LiveStep
from spanreplay.replay.isolation.callers import thread_name, user_line_of_all
from spanreplay.replay.model import Run, Step
from spanreplay.replay.reexecution.contradictions import acts_as_recorded, targets_of
from spanreplay.replay.reexecution.ledger import CALL, Ledger
from spanreplay.replay.reexecution.policy import Policy
from spanreplay.semconv import attributes as names

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_READING: Final = frozenset({"retrieval", "decision", "human", "model_call"})
"""Kinds that act on nothing, or that ask a person who is there."""

ACTION: Final = "effect"
"""``action`` of such a refusal in the ledger."""


class CallRefused(ControlSignal):
    """A live call was not allowed to act. A ``BaseException``, as every refusal of a replay."""


def effect_of(step: LiveStep) -> Effect:
    """What a call does outside."""
    if step.call.effect is not None:
        return step.call.effect
    if step.call.kind in _READING:
        return "read"
    return "read" if str(step.call.attributes.get(names.HTTP_REQUEST_METHOD)).upper() in _SAFE_METHODS else "unknown"


def why_closed(step: LiveStep, policy: Policy, runs: Sequence[Run]) -> str | None:
    """Why a live call may not act, with the line that would let it; ``None`` where it may."""
    name = step.call.name
    if name in policy.refuse:
        return f"{name} is refused, as --refuse {shlex.quote(name)} says"
    effect = effect_of(step)
    if effect == "read":
        return None
    what = f"{name} has the effect {effect}" + (", which counts as more than read" if effect == "unknown" else "")
    if policy.finish:
        return None  # the run goes on where it was recorded, as it would have
    if name in policy.live_read and name not in policy.allow_effect:
        return f"{what}, and --live-read lets tools be live that only read"
    line = f"--allow-effect {shlex.quote(name)}"
    recorded = ", ".join(sorted(targets_of(runs, name)))
    if name not in policy.allow_effect:
        where = f", where NAME is not {recorded}" if recorded else ""
        return f"{what}, so it stays closed; to let it act: {line} --target NAME{where}"
    if acts_as_recorded(policy, runs, name):
        return f"{what} and would act where it was recorded, on {policy.target}; let the agent act elsewhere, and name that with --target"
    return None


def refused(step: LiveStep, why: str, ledger: Ledger, *, action: str = ACTION, expected: Step | None = None) -> CallRefused:
    """Enter a refusal, and give what is to be raised; ``expected`` is the recorded step at the place of the call."""
    where = user_line_of_all(sys._getframe(1)) or "unknown"
    text = f"{step.call.kind.replace('_', ' ')} at {where}: {why}"
    facts = {} if expected is None else {"step": expected.seq}
    ledger.enter(
        "refused", event=CALL, action=action, target=step.call.name, fatal="True", where=where, thread=thread_name(), text=text, **facts
    )
    step.fail(CallRefused(why), outcome="rejected")
    return CallRefused(why)

"""What a policy was to do and did not come to: a test of a fault that never happened is no test."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from spanreplay.replay.reexecution.ledger import CALL, Totals
from spanreplay.replay.reexecution.policy import RESULT, Policy

Unmet: TypeAlias = dict[str, Any]
"""``what`` was to happen, ``step`` (``None`` for no certain one) and ``value``: which fault, field or tool. ``refused``: it was come to."""


def never_reached(policy: Policy, totals: Totals) -> tuple[Unmet, ...]:
    """The faults, changes, decisions and live parts that a re-execution has not come to, in that order.

    Args:
        policy: what was to be live.
        totals: what it did.
    """
    if not policy or not totals.processes:
        return ()
    refused = [refusal for refusal in totals.refusals if refusal.get("event") == CALL]
    return tuple({**unmet, "refused": True} if any(_is_of(unmet, r) for r in refused) else unmet for unmet in _unmet(policy, totals))


def _is_of(unmet: Unmet, refusal: Mapping[str, Any]) -> bool:
    """Is a refused call the one that something was to happen to?"""
    if unmet["what"] == "set" and unmet["step"] is None:
        return refusal.get("action") == "change"
    if unmet["what"] != "live":
        return unmet["step"] is not None and unmet["step"] == refusal.get("step")
    return refusal["target"] == unmet["value"] or (unmet["value"] == "models" and str(refusal["text"]).startswith("model call "))


def _unmet(policy: Policy, totals: Totals) -> Iterator[Unmet]:
    if policy.at is not None and not totals.left:
        yield {"what": "fork", "step": policy.at, "value": None}
    steps = {call["step"] for call in totals.live}
    injected = {(call["step"], call["injected"]) for call in totals.live}
    for fault in policy.faults:
        if (fault.step, fault.kind) not in injected:
            yield {"what": "fault", "step": fault.step, "value": fault.kind}
    changed = {key for call in totals.live for key in call["changed"]}
    for key in policy.changes:
        if key not in changed:
            yield {"what": "set", "step": policy.at if key == RESULT else None, "value": key}
    for decision in policy.decisions:
        if not any(decision.is_on(str(call["run"]), call["step"] or 0, policy.run) for call in totals.live):
            yield {"what": "decide", "step": decision.step, "value": decision.choice}
    if policy.only is not None and policy.only not in steps:
        yield {"what": "only", "step": policy.only, "value": None}
    called = {str(call["name"]).partition(" ")[2] for call in totals.live}
    for name in dict.fromkeys((*policy.live, *policy.live_read)):
        if name not in called:
            yield {"what": "live", "step": None, "value": name}
    if policy.models and not any(str(call["name"]).startswith("model_call ") for call in totals.live):
        yield {"what": "live", "step": None, "value": "models"}

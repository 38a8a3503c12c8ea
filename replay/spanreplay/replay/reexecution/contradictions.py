"""What is asked of a re-execution and cannot be meant: names that name nothing, and wishes that exclude each other.

All of it is found before anything is executed: a live call costs money, and may have acted.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.policy import RESULT, Policy, PolicyError

T = TypeVar("T")

_TOOLS: Final = {
    "live": "--live",
    "live_read": "--live-read",
    "stub": "--recorded",
    "allow_effect": "--allow-effect",
    "refuse": "--refuse",
}
"""The fields of a policy that name tools, and their options."""


def check(policy: Policy, runs: Sequence[Run]) -> None:
    """Refuse a policy that contradicts itself.

    Raises:
        PolicyError: it does.
    """
    _check_names(policy)
    for name, option in _TOOLS.items():
        both = sorted(set(getattr(policy, name)) & set(policy.refuse)) if name != "refuse" else []
        if both:
            raise PolicyError(f"{option} {both[0]} and --refuse {both[0]} contradict each other; leave one out")
    if policy.allow_effect and policy.target is None:
        tools = ", ".join(policy.allow_effect)
        recorded = ", ".join(sorted({target for name in policy.allow_effect for target in targets_of(runs, name)}))
        where = f", which is not {recorded}" if recorded else ""
        raise PolicyError(f"{tools} may act, but it is not said where; add --target NAME, the place where it acts now{where}")
    for name in policy.allow_effect:
        if acts_as_recorded(policy, runs, name):
            told = f"{name} would act where it was recorded, on {policy.target}"
            raise PolicyError(f"{told}; let the agent act elsewhere, and name that with --target")
    if policy.leave and (policy.models or policy.live or policy.live_read or policy.only is not None):
        why = "--mode from-here answers everything up to the first difference, and all is live after it"
        raise PolicyError(f"{why}; leave out --live, --live-read and --only")
    once([(fault.step, fault) for fault in policy.faults], lambda step: f"step {step} has more than one fault")
    once([(decision.place, decision) for decision in policy.decisions], lambda step: f"step {step} is decided in more than one way")
    if RESULT in policy.changes and (fault := next((fault for fault in policy.faults if fault.step == policy.at), None)):
        raise PolicyError(f"step {fault.step} cannot both give a result and have the fault {fault.kind}; leave one out")


def once(given: Iterable[tuple[Hashable, T]], told: Callable[[Any], str]) -> list[T]:
    """What is given, each thing once: the same said twice does no harm.

    Args:
        given: what is decided, and how.
        told: what is wrong where something is decided in several ways.

    Raises:
        PolicyError: it is.
    """
    found: dict[Hashable, T] = {}
    for key, value in given:
        if found.setdefault(key, value) != value:
            raise PolicyError(f"{told(key)}; say it once")
    return list(found.values())


def targets_of(runs: Sequence[Run], name: str) -> set[str]:
    """Where the calls of a tool acted when they were recorded; of all tools, where none of that name says so."""
    told = [(s.name, s.target) for run in runs for s in run.steps if s.target]
    return {target for tool, target in told if tool == name} or {target for _, target in told}


def acts_as_recorded(policy: Policy, runs: Sequence[Run], name: str) -> bool:
    """Whether a tool would act where it was recorded."""
    return policy.target is not None and same_place(policy.target, targets_of(runs, name))


def same_place(target: str, others: Iterable[str]) -> bool:
    """Whether a place is one of these: its name is the same in any letter case."""
    return target.strip().casefold() in {other.strip().casefold() for other in others}


def _check_names(policy: Policy) -> None:
    if policy.target is not None and not policy.target.strip():
        raise PolicyError("--target names no place; name the one where live tools act now")
    for name, option in _TOOLS.items():
        if not all(tool.strip() for tool in getattr(policy, name)):
            raise PolicyError(f"{option} names no tool; it is empty")

"""Options of every command that re-executes and lets something of it be live."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from spanreplay.cli.options import WrongUse, say
from spanreplay.cli.sections import under

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.reexecution.options import Options

F = TypeVar("F", bound=Callable[..., Any])

_MODELS: Final = "models"

_SET: Final = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="What live model calls are sent with: model=NAME, prompt=TEXT, temperature=0, any field of the request. May be repeated.",
)
_ALLOW_EFFECT: Final = click.option(
    "--allow-effect",
    multiple=True,
    metavar="TOOL",
    help="A tool that may act, though it does more than read. Needs --target. May be repeated.",
)
_TARGET: Final = click.option(
    "--target", "acts_on", metavar="NAME", help="Where live tools act now. It must not be where the run was recorded."
)
_REFUSE: Final = click.option(
    "--refuse", multiple=True, metavar="TOOL", help="A tool that may not be called: a call of it ends the run. May be repeated."
)
_ALLOW_HOST: Final = click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST[:PORT]",
    help="A host the command may connect to, besides those of the recorded models where they are live. May be repeated.",
)

_LIVE: Final = (_SET, _ALLOW_EFFECT, _TARGET, _REFUSE, _ALLOW_HOST)
_MIXED: Final = (
    click.option(
        "--live",
        multiple=True,
        metavar="models|TOOL",
        help="Let it run: every model call, or the calls of a tool. What it gives is compared with the record. May be repeated.",
    ),
    click.option("--live-read", multiple=True, metavar="TOOL", help="As --live TOOL, as long as the tool only reads. May be repeated."),
    click.option("--only", type=click.IntRange(1), metavar="N", help="Let step N alone run, and compare what it gives."),
    *_LIVE,
)
_FORKED: Final = (
    click.option(
        "--at", type=click.IntRange(1), metavar="N", help="The step that is the first live one.  [default: that of the first fault]"
    ),
    click.option(
        "--fault",
        "injected",
        multiple=True,
        metavar="KIND[@N]",
        help="What goes wrong at step N: timeout, error, malformed, rejected, or slow:SECONDS (or 1). Default: at --at. May be repeated.",
    ),
    click.option(
        "--recorded",
        "stub",
        multiple=True,
        metavar="TOOL",
        help="A tool that is answered in the live part too, where the very call is in the record.",
    ),
    *_LIVE,
)


def mixing(function: F) -> F:
    """``--live`` and what goes with it: put into the command's ``options`` as a policy. Stands below ``how``."""

    @functools.wraps(function)
    def gathered(*args: Any, options: "Options", live: tuple[str, ...], live_read: tuple[str, ...], only: int | None, **kwargs: Any) -> Any:
        tools = tuple(name for name in live if name != _MODELS)
        given = {"models": _MODELS in live, "live": tools, "live_read": live_read, "only": only}
        options = _with(options, kwargs, **given)
        policy = options.policy
        if not policy.is_kept and (policy.changes or policy.allow_effect or policy.target):
            raise click.UsageError("--set, --allow-effect and --target are for what is live: name that with --live, --live-read or --only")
        return function(*args, options=options, **kwargs)

    return cast("F", under("Live", *_MIXED)(gathered))


def forking(function: F) -> F:
    """``--at`` and what goes with it: put into the command's ``options`` as a policy. Stands below ``how``."""

    @functools.wraps(function)
    def gathered(*args: Any, options: "Options", at: int | None, injected: tuple[str, ...], stub: tuple[str, ...], **kwargs: Any) -> Any:
        from spanreplay.replay.reexecution.policy import Fault, PolicyError

        not_from_here(options)
        try:
            faults = tuple(Fault.read(text, at) for text in injected)
        except PolicyError as error:
            raise click.UsageError(str(error)) from error
        at = at if at is not None else min((fault.step for fault in faults), default=None)
        if at is None:
            raise click.UsageError("say where it is to leave the record: --at N, the first live step")
        return function(*args, options=_with(options, kwargs, at=at, faults=faults, stub=stub), **kwargs)

    return cast("F", under("Live", *_FORKED)(gathered))


def not_from_here(options: "Options") -> None:
    """Refuse ``--mode from-here`` where it is said otherwise from where on something is live.

    Raises:
        UsageError: it was given.
    """
    if options.policy.leave:
        raise click.UsageError("--mode from-here is for replay: it leaves the record at the first difference")


def _with(options: "Options", given: dict[str, Any], **policy: Any) -> "Options":
    from spanreplay.replay.reexecution.contradictions import once
    from spanreplay.replay.reexecution.hosts import address
    from spanreplay.replay.reexecution.policy import PolicyError, read_change

    try:
        read = [read_change(text) for text in given.pop("changes")]
        changes = dict(once(((key, (key, value)) for key, value in read), lambda key: f"--set {key} has more than one value"))
    except PolicyError as error:
        raise click.UsageError(str(error)) from error
    hosts = []
    for text in given.pop("allow_host"):
        found = address(text)
        if found is None:
            raise click.UsageError(f"--allow-host: wanted HOST or HOST:PORT, found {text!r}")
        hosts.append(found)
    names: dict[str, Any] = {name: tuple(given.pop(name)) for name in ("allow_effect", "refuse")}
    made = replace(options.policy, changes=changes, target=given.pop("acts_on"), **names, **policy)
    return replace(options, policy=made, allow_connect=(*options.allow_connect, *hosts))


def of_target(options: "Options", loaded: "Loaded") -> "Options":
    """The options, with the run that the TARGET names as the one whose steps are meant by their numbers.

    Raises:
        WrongUse: what is to be live does not fit it.
    """
    from spanreplay.replay.reexecution.cut import cut_of
    from spanreplay.replay.reexecution.policy import PolicyError

    if not options.policy:
        return options
    policy = options.policy
    by_number = policy.at is not None or policy.only is not None or bool(policy.faults)
    one = loaded.runs[0] if len(loaded.runs) == 1 else None
    named = one.run_id if one is not None and (loaded.asked or (by_number and one.steps)) else None  # `last` is one run, as `show` shows it
    policy = replace(policy, run=policy.run or named)
    tools = {step.name for run in loaded.siblings for step in run.steps if step.kind not in ("model_call", "agent", "handoff")}
    unknown = [name for name in (*policy.live, *policy.live_read, *policy.stub) if name not in tools]
    if unknown:
        raise WrongUse(f"the record has no call of {', '.join(unknown)}; it has those of {', '.join(sorted(tools)) or 'no tool'}")
    try:
        cut_of(loaded.siblings, policy)
    except PolicyError as error:
        raise WrongUse(str(error)) from error
    for option, wanted in (("--allow-effect", policy.allow_effect), ("--refuse", policy.refuse)):
        for name in dict.fromkeys(wanted):
            if name not in tools:
                say(f"{option} {name}: the record has no call of it; it has those of {', '.join(sorted(tools)) or 'no tool'}")
    return replace(options, policy=policy)

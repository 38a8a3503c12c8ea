"""Inside a replayed command: begin to answer its calls from the record before its first line runs.

Loaded by the start-up shim through the entry point group ``spanreplay_bootstrap``.
"""

import atexit
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

from spanreplay.boundary import session as sessions
from spanreplay.boundary.scope import current_scope, enter, enter_thread
from spanreplay.boundary.session import RunContext, Session
from spanreplay.content import codec
from spanreplay.exporter import environment_variables as env
from spanreplay.instrumentation.shims import processes, randomness
from spanreplay.recording import plugins
from spanreplay.recording.children import child_env
from spanreplay.recording.place import find_place
from spanreplay.replay.isolation import kernel, naming, network
from spanreplay.replay.isolation.guard import Guard
from spanreplay.replay.isolation.reachable import Reachable
from spanreplay.replay.isolation.refusal import Refusal
from spanreplay.replay.isolation.state import Restored, paths_of, put_back
from spanreplay.replay.model import Run
from spanreplay.replay.reexecution.answering import prepared
from spanreplay.replay.reexecution.claims import Claims
from spanreplay.replay.reexecution.clock import RecordedClock
from spanreplay.replay.reexecution.crashes import crash
from spanreplay.replay.reexecution.ending import GRACE_S, Ends, leave_mark
from spanreplay.replay.reexecution.engine import ISOLATION, finish, stopped_by_replay
from spanreplay.replay.reexecution.forking import follow, may_start
from spanreplay.replay.reexecution.keeping import Keeping
from spanreplay.replay.reexecution.ledger import Ledger
from spanreplay.replay.reexecution.missing_state import IN_PLACE
from spanreplay.replay.reexecution.plan import CLAIMS, ENDS, ENVIRONMENT, LEDGERS, TEMPORARY, Plan, read_code, read_plan, read_recording
from spanreplay.replay.reexecution.stepping import Inner, Stepper
from spanreplay.replay.reexecution.stubs import RecordedCalls
from spanreplay.replay.reexecution.versions_now import compare, recorded_redactor
from spanreplay.replay.showing import safe_lines

RESTORED: Final = "SPANREPLAY_STATE_RESTORED"
"""Set in the environment of a process that sees the recorded state, for its children: they do too."""
_HANDED_ON: Final = (ENVIRONMENT, kernel.CONFINED, RESTORED, "TMPDIR", "TEMP", "TMP", "SQLITE_TMPDIR")
"""What a program of the agent's own needs to take part, whatever environment it is given."""
KERNEL: Final = "level 2: a Python audit hook, Landlock and seccomp; handles opened before are not covered"
NETWORK: Final = "; a network of its own"
UNNAMED: Final = (
    "level 2: a Python audit hook, Landlock and seccomp, whose refusals are not named; modes and times of files, shared memory and "
    "handles opened before are not covered"
)


def start() -> None:
    """Begin the replay that the environment describes. Does nothing where it describes none.

    A process in which that fails ends at once with exit code 125: going on would act on the world.
    """
    folder = os.environ.get(ENVIRONMENT)
    if folder is None:
        return
    try:
        _start(Path(folder))
    except Exception as error:  # noqa: BLE001 — whatever it is
        leave_mark(Path(folder) / ENDS, "whole")
        os.write(2, f"spanreplay: nothing can be replayed in {sys.executable}: {type(error).__name__}: {error}\n".encode())
        os._exit(125)


def _start(scratch: Path) -> None:
    plan = read_plan(scratch)
    ledger = Ledger(scratch / LEDGERS / f"{os.getpid()}-{os.urandom(4).hex()}.ledger")
    place = find_place()
    runs = read_recording(scratch, plan)
    claims = Claims(scratch / CLAIMS)
    if claims.take("versions", "compared"):
        _compare_versions(scratch, plan, runs, ledger)
    clock = RecordedClock(runs)
    enough = partial(_end_soon, scratch / ENDS, "alone" if plan.options.comparing.all_differences else "whole")
    stop = _nothing if plan.options.stepping.break_at is not None else enough  # who looks at it takes their time
    temporary = str(scratch / TEMPORARY)
    made = prepared(
        runs,
        ledger,
        focus=plan.focus,
        claims=claims,
        place=place.path,
        options=plan.options,
        on_stop=stop,
        clock=clock,
        temporary=temporary,
        keeping=lambda redactor: Keeping(env.store_folder(None), place, redactor, ledger),
    )
    session, kept = made.session, made.keeping
    _around(session, made.interceptor, plan, runs, ledger, clock, enough)
    command = RunContext(run_id=place.run_id, name="command", fallback=True) if kept is None else kept.context()
    plugins.install("auto", shortcuts=True)
    processes.complete_with(_child_environment)
    _quiet_stops(lambda error: ledger.enter("crashed", **crash(error), error=_typed(session, error) if place.top else None))
    seed = os.environ.pop(env.SPANREPLAY_SEED, None) if place.top else None
    if seed is not None:
        randomness.install(seed, fresh=True, secrets=os.environ.get(env.SPANREPLAY_SEED_SECRETS) == "1")
    os.environ.update(place.environment())
    if kept is not None:
        kept.open(runs, seed, {})
        atexit.register(kept.close, whole=False)
        if plan.options.policy.target is not None:
            os.environ[env.SPANREPLAY_TARGET] = plan.options.policy.target
    sessions.activate(session.root(command, place.path))
    clock.start()
    if not plan.options.guard:
        ledger.enter("started", pid=os.getpid(), argv=sys.orig_argv, isolation="none", first=place.top)
        return
    tempfile.tempdir = temporary
    sys.dont_write_bytecode = True

    options, ledgers = plan.options, [ledger]
    isolation, restored = (ISOLATION, Restored()) if options.isolate == "hook" else _confined(scratch, plan, runs)

    def refused(refusal: Refusal) -> None:
        ledgers[-1].refuse(refusal)  # a copy of the process has another
        if refusal.fatal:
            leave_mark(scratch / ENDS, "alone")

    guard = Guard(
        scratch=scratch,
        state=restored.paths,
        allow_write=options.allow_write,
        allow_connect=options.allow_connect,
        permits=made.permits,
        may_start=partial(may_start, confined=bool(os.environ.get(kernel.CONFINED))),
        on_refusal=refused,
    )

    def go_on(path: str, run_id: str) -> None:
        """In a copy of this process."""
        try:
            begin(path, run_id)
        except Exception:
            leave_mark(scratch / ENDS, "whole")
            raise

    def begin(path: str, run_id: str) -> None:
        mine = Ledger(scratch / LEDGERS / f"{os.getpid()}-{os.urandom(4).hex()}.ledger")
        ledgers.append(mine)
        copied = prepared(
            runs,
            mine,
            focus=plan.focus,
            claims=Claims(scratch / CLAIMS),
            place=path,
            options=options,
            on_stop=stop,
            clock=clock,
            temporary=temporary,
        )
        _around(copied.session, copied.interceptor, plan, runs, mine, clock, enough)
        os.environ.update(replace(place, path=path, run_id=run_id).environment())
        root = copied.session.root(replace(command, run_id=run_id), path)
        sessions.activate(root)
        enter(root)
        enter_thread(None)
        mine.enter("started", pid=os.getpid(), argv=sys.orig_argv, isolation=isolation)

    if kept is None:
        follow(go_on)
    atexit.register(finish, session, guard, ledger)
    guard.arm_process()
    ledger.enter("started", pid=os.getpid(), argv=sys.orig_argv, isolation=isolation, first=place.top)


def _around(
    session: Session,
    interceptor: RecordedCalls,
    plan: Plan,
    runs: Sequence[Run],
    ledger: Ledger,
    clock: RecordedClock,
    on_enough: Callable[[], None],
) -> None:
    """What is done besides answering, where it was asked for."""
    options = plan.options
    inner: Inner = interceptor
    if options.stepping:
        from spanreplay.replay.reexecution.breaking import debug

        inner = Stepper(inner, options.stepping, runs, focus=plan.focus, ledger=ledger, on_enough=on_enough, debug=debug)
    if options.shuffled is not None:
        from spanreplay.replay.reexecution.shuffling import Shuffled

        inner = Shuffled(inner, options.shuffled)
    if options.fast:
        from spanreplay.replay.reexecution.waits import skip_waits

        skip_waits(clock)
    if inner is not interceptor:
        session.interceptors = (inner,)
        session.foresees = None  # every call is seen


def _child_environment(given: Mapping[str, str] | None) -> dict[str, str]:
    """What a process that the agent starts is given: it takes part, or, started by a live call, is recorded."""
    made = child_env(given)
    scope = current_scope()
    if scope is not None and scope.session.mode == "record":
        made[env.SPANREPLAY_BOOTSTRAP] = "record"
        made.pop(ENVIRONMENT, None)
        return made
    return {**made, **{name: os.environ[name] for name in _HANDED_ON if name in os.environ}}


def _compare_versions(scratch: Path, plan: Plan, runs: Sequence[Run], ledger: Ledger) -> None:
    """Enter what is not as it was when the runs were recorded, and say it; only the first process of a command does."""
    compared = compare(runs, recorded_redactor(runs), read_code(scratch))
    if compared is None:
        return
    ledger.enter("versions", **compared.entry())
    lines = compared.lines() if plan.announce else []
    if lines:
        os.write(2, safe_lines("\n".join([f"spanreplay: {lines[0]}", *lines[1:]]) + "\n").encode("utf-8", "backslashreplace"))


def _confined(scratch: Path, plan: Plan, runs: Sequence[Run]) -> tuple[str, Restored]:
    """Take what the machine offers beside the hook, and put the recorded state back; tells what holds."""
    of_its_own = plan.options.isolate == "net"
    state = next((run.state for run in runs if run.state is not None), None)
    restored, how = Restored(), ""
    inherited = os.environ.get(kernel.CONFINED)  # by the process that started this one
    if inherited:
        named = inherited == "named"
        if os.environ.get(RESTORED):
            restored, how = Restored(paths=paths_of(state)), f"; {IN_PLACE}"
    else:
        hand_over = naming.HandOver(scratch)  # before it leaves the network
        if state is not None:
            try:
                restored = put_back(scratch, state, plan.options.allow_write)
                os.environ[RESTORED], how = "1", f"; {IN_PLACE}"
            except kernel.NotOfferedError as error:
                how = f"; {error}"
        if of_its_own:
            network.leave_network()
        try:
            ports = Reachable(plan.options.allow_connect, scratch).ports
            named = kernel.confine([scratch, *plan.options.allow_write, *restored.overlaid], hand_over, ports=ports)
        except kernel.NotOfferedError as error:
            return f"{ISOLATION}{NETWORK if of_its_own else ''}{how} ({error})", restored
    return f"{KERNEL if named else UNNAMED}{NETWORK if of_its_own else ''}{how}", restored


def _nothing() -> None:
    """Nobody ends a process that is looked at."""


def _end_soon(marks: Path, ends: Ends) -> None:
    """A process that the replay has stopped ends, also where the stop only reached a task or a thread that others wait for."""
    leave_mark(marks, ends)

    def end() -> None:
        time.sleep(GRACE_S)
        os.write(2, f"spanreplay: stopped, and ended: the agent went on for {GRACE_S:g} s\n".encode())
        os._exit(1)

    threading.Thread(target=end, name="spanreplay-stop", daemon=True).start()


def _quiet_stops(on_crash: Callable[[BaseException], None]) -> None:
    """A process that the replay stops says so in one line; the command that started the replay prints the rest.

    Args:
        on_crash: told of what else ends it.
    """
    before, before_in_thread = sys.excepthook, threading.excepthook

    def stopped(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if stopped_by_replay(error):
            print(f"spanreplay: stopped here: {_first(error)}", file=sys.stderr)  # noqa: T201 — there is no other way out
        else:
            with suppress(Exception):
                on_crash(error)
            before(kind, error, trace)

    def stopped_in_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is None or not stopped_by_replay(arguments.exc_value):
            before_in_thread(arguments)

    sys.excepthook, threading.excepthook = stopped, stopped_in_thread


def _typed(session: Session, error: BaseException) -> str:
    return session.redactor.typed(codec.encode_exception(error).text)[0]


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = next((e for e in error.exceptions if stopped_by_replay(e)), error.exceptions[0])
    return error

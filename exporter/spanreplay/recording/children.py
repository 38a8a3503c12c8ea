"""The environment of recorded commands and of the processes they start."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from spanreplay.exporter import environment_variables as env
from spanreplay.exporter.redacting import policy_of
from spanreplay.recording.definition import HASH_SEED
from spanreplay.recording.place import Place, find_place, traceparent
from spanreplay.spans.record import Value

SITE: Final = str(Path(__file__).parent / "_site")
"""Folder whose ``sitecustomize.py`` starts recording in every Python process that has it first on ``PYTHONPATH``."""

_HANDED_ON: Final = (
    env.SPANREPLAY_BOOTSTRAP,
    env.SPANREPLAY_STORE,
    env.SPANREPLAY_SPAN_CONTENT,
    env.SPANREPLAY_RUN_PER,
    env.SPANREPLAY_DURABILITY,
    env.SPANREPLAY_REDACTION,
    env.SPANREPLAY_SESSION,
    env.SPANREPLAY_USER,
    env.SPANREPLAY_COMMAND_ID,
    env.SPANREPLAY_COMMAND_RUN,
    env.SPANREPLAY_COMMAND_ROOT,
    env.SPANREPLAY_RUN_ID,
    env.SPANREPLAY_RUN_PATH,
    env.SPANREPLAY_PLACE,
    env.TRACEPARENT,
)


def child_environment(
    command_id: str,
    run_id: str,
    store: Path,
    mode: Literal["record", "replay"],
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment for a command that is to be recorded or replayed.

    Args:
        command_id: 32 hex digits, new for each command.
        run_id: 32 hex digits, of the run that the command itself is.
        store: folder of the store.
        mode: what its Python processes do when they start.
        extra: variables to add.
    """
    made = dict(os.environ)
    outer = traceparent(made.get(env.TRACEPARENT, ""))
    for name in (env.SPANREPLAY_RUN_PATH, env.SPANREPLAY_PLACE):
        made.pop(name, None)
    place = Place(
        command_id=command_id,
        command_run=run_id,
        run_id=run_id,
        path="",
        trace_id=outer[0] if outer else os.urandom(16).hex(),
        span_id=os.urandom(8).hex(),
        parent_span_id=outer[1] if outer else None,
    )
    made.update(place.environment())
    del made[env.SPANREPLAY_PLACE]  # this process is no part of the command
    made[env.TRACEPARENT] = f"00-{place.trace_id}-{place.span_id}-{outer[2] if outer else 1:02x}"
    made[env.SPANREPLAY_BOOTSTRAP] = mode
    made.pop(env.SPANREPLAY_SEED, None)
    if mode == "record" and made.get(HASH_SEED, "random") == "random":
        made[HASH_SEED] = made[env.SPANREPLAY_HASH_SEED] = str(1 + int.from_bytes(os.urandom(3), "big"))
    made[env.SPANREPLAY_STORE] = str(env.store_folder(store))
    # One policy for all processes, salt included, so that a secret has the same replacement in each.
    made[env.SPANREPLAY_REDACTION] = policy_of().to_json()
    made["PYTHONPATH"] = with_site(made.get("PYTHONPATH"))
    made.update(extra or {})
    return made


def child_env(current: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a process started from a recorded or replayed one, so that it takes part too.

    An agent may start a child with an environment of its own making; what its processes need is put back into it. Outside a recorded
    command, and in a process that recording was started in by hand, the environment comes back as it is.

    Args:
        current: what the agent wants the child to have; this process's environment by default.
    """
    made = dict(os.environ if current is None else current)
    if os.environ.get(env.SPANREPLAY_BOOTSTRAP):
        for name in _HANDED_ON:
            value = os.environ.get(name)
            if value is not None:
                made.setdefault(name, value)
        made["PYTHONPATH"] = with_site(made.get("PYTHONPATH"))
    return made


def with_site(pythonpath: str | None) -> str:
    """``PYTHONPATH`` with our folder first, once."""
    return os.pathsep.join([SITE, *(part for part in (pythonpath or "").split(os.pathsep) if part and part != SITE)])


def begin_command(environment: Mapping[str, str], folder: Path, state: Sequence[str] = ()) -> dict[str, Any] | None:
    """Write from which code and which state a command is started. Before it is: it may change both. Raises nothing.

    Args:
        environment: what the command will be started with.
        folder: where.
        state: paths whose content is kept, see :mod:`spanreplay.recording.state`.

    Returns the state that was taken, if any was asked for.
    """
    from spanreplay.content.canonical import canonical_json
    from spanreplay.exporter.redacting import redactor_for
    from spanreplay.recording.code import code_of
    from spanreplay.recording.state import state_of
    from spanreplay.semconv.attributes import RUN_CODE, RUN_STATE
    from spanreplay.store.journal import get_writer

    redactor = redactor_for(environment[env.SPANREPLAY_REDACTION])
    code = code_of(folder, redactor)
    taken = state_of(state, folder, redactor) if state else None
    known = {RUN_CODE: None if code is None else code.to_json(), RUN_STATE: taken}
    attributes: dict[str, Value] = {name: canonical_json(value) for name, value in known.items() if value is not None}
    if not attributes:
        return None
    place = find_place(environment, pid=0)
    writer = get_writer(Path(environment[env.SPANREPLAY_STORE]))
    log = logging.getLogger("spanreplay.journal")
    before, log.disabled = log.disabled, True  # the command's own processes say it
    try:
        writer.patch_span(place.trace_id, place.span_id, attributes=attributes)
    finally:
        log.disabled = before
    return taken


def finish_command(environment: Mapping[str, str], exit_code: int) -> bool:
    """Write the exit code of a command that was started with :func:`child_environment`.

    For the program that started it, which alone knows how it ended. Raises nothing; ``False`` if it could not be written, which whoever
    watches the command then says.

    Args:
        environment: what the command was started with.
        exit_code: negative for a signal, as ``subprocess`` has it.
    """
    from spanreplay.recording.root import close_root
    from spanreplay.store.journal import get_writer

    writer = get_writer(Path(environment[env.SPANREPLAY_STORE]))
    log = logging.getLogger("spanreplay.journal")
    before, log.disabled = log.disabled, True  # the command's own processes have said it
    try:
        close_root(writer, find_place(environment, pid=0), exit_code=exit_code)
        writer.close()
    finally:
        log.disabled = before
    return not writer.dropped

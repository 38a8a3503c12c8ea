"""Shims that carry the scope to where a call is made: tasks, threads, pools, child processes."""

from spanreplay.instrumentation.patching import Removals, looking_once
from spanreplay.instrumentation.shims import (
    alarms,
    asyncio_deadlines,
    callbacks,
    cancel_scopes,
    cancelled_jobs,
    commands,
    commands_asyncio,
    completions,
    given_up,
    locks,
    nurseries,
    ordered_sets,
    process_pools,
    processes,
    queues,
    registered,
    task_queues,
    tasks,
    thread_pools,
    threads,
    timed_waits,
    untaped,
)

_installed = False


def install() -> None:
    """Install every shim; once, however often called."""
    global _installed  # noqa: PLW0603 — process-wide by nature
    if not _installed:
        _installed = True
        tasks.install()
        registered.install()
        with looking_once():
            completions.install()
            callbacks.install()
            ordered_sets.install()
            asyncio_deadlines.install()
            cancel_scopes.install()
            alarms.install()
        locks.install()  # below what keeps who gives up to wait
        task_queues.install()
        given_up.install()
        queues.install()
        timed_waits.install()
        cancelled_jobs.install()
        nurseries.install()
        threads.install()
        process_pools.install()
        thread_pools.install()
        processes.install()
        commands.install()
        commands_asyncio.install()
        untaped.install()


def uninstall() -> None:
    """Take every shim out again."""
    global _installed  # noqa: PLW0603
    if _installed:
        _installed = False
        Removals.times += 1
        untaped.uninstall()
        commands_asyncio.uninstall()
        commands.uninstall()
        processes.uninstall()
        thread_pools.uninstall()
        process_pools.uninstall()
        threads.uninstall()
        nurseries.uninstall()
        cancelled_jobs.uninstall()
        timed_waits.uninstall()
        queues.uninstall()
        given_up.uninstall()
        task_queues.uninstall()
        locks.uninstall()
        alarms.uninstall()
        asyncio_deadlines.uninstall()
        cancel_scopes.uninstall()
        ordered_sets.uninstall()
        callbacks.uninstall()
        completions.uninstall()
        registered.uninstall()
        tasks.uninstall()

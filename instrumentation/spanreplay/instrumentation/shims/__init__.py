"""Shims that carry the scope to where a call is made: tasks, threads, pools, child processes."""

from spanreplay.instrumentation.shims import processes, tasks, thread_pools, threads, untaped

_installed = False


def install() -> None:
    """Install every shim; once, however often called."""
    global _installed  # noqa: PLW0603 — process-wide by nature
    if not _installed:
        _installed = True
        tasks.install()
        threads.install()
        thread_pools.install()
        processes.install()
        untaped.install()


def uninstall() -> None:
    """Take every shim out again."""
    global _installed  # noqa: PLW0603
    if _installed:
        _installed = False
        untaped.uninstall()
        processes.uninstall()
        thread_pools.uninstall()
        threads.uninstall()
        tasks.uninstall()

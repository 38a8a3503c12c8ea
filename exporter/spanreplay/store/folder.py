"""The folder of a store: what lies where, and who may look inside."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from typing import Final

from spanreplay.store.errors import FullStoreError, ReadOnlyStoreError, StoreError

DATABASE: Final = "runs.duckdb"
JOURNALS: Final = "journal"
JOURNAL_SUFFIX: Final = ".journal"
LOCK: Final = "store.lock"
HOLDER: Final = "store.holder"
"""Who holds the lock: one JSON object with pid, host and since_ns. Only for messages; the lock itself is what counts."""
_PROBE_BYTES: Final = 4096


def make_folder(store: Path) -> None:
    """Makes the folder private to its user and invisible to git.

    Raises:
        OSError: it cannot be made.
    """
    journals = store / JOURNALS
    if journals.is_dir():
        return
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    journals.mkdir(mode=0o700, exist_ok=True)
    ignore = store / ".gitignore"
    if not ignore.exists():
        descriptor = os.open(ignore, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, b"*\n")
        finally:
            os.close(descriptor)


def check_writable(store: Path) -> None:
    """Make sure that a process can keep something here, and that it can be loaded; a database that is in use is no obstacle.

    Raises:
        StoreError: it cannot; the text says why, and what to do.
    """
    wanted = "nothing can be kept"
    try:
        make_folder(store)
        descriptor, probe = tempfile.mkstemp(prefix=".writable-", dir=store / JOURNALS)
        try:
            os.write(descriptor, bytes(_PROBE_BYTES))
        finally:
            os.close(descriptor)
            Path(probe).unlink()
    except OSError as error:
        raise folder_error(error, wanted, store) from error
    for path in (store, store / DATABASE, store / LOCK):
        if path.exists() and not os.access(path, os.W_OK):
            raise folder_error(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), wanted, path)


def make_private(store: Path) -> None:
    """Takes from others what they may do with the files of a store, those of older versions too. The folder itself may be anybody's."""
    for path, mode in (
        (store / JOURNALS, 0o700),
        *((store / name, 0o600) for name in (DATABASE, f"{DATABASE}.wal", LOCK, HOLDER, ".gitignore")),
    ):
        with contextlib.suppress(OSError):
            if path.stat().st_mode & 0o077 and not path.is_symlink():
                path.chmod(mode)


def is_store(path: Path) -> bool:
    """Whether this folder holds a store: a database or journals."""
    return (path / DATABASE).is_file() or (path / JOURNALS).is_dir()


def no_store(path: Path) -> str:
    """The text for a folder without a store."""
    return f"there is no store at {path}. Record or import something first, or name another one with --store."


def folder_error(error: OSError, wanted: str, path: Path) -> StoreError:
    """The store error that an operating system error at ``path`` amounts to."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return FullStoreError(f"{wanted}: {reason} ({path}). Free some space, then try again; nothing that was stored is lost.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyStoreError(f"{wanted}: {reason} ({path}). Make the folder writable, or name another one with --store.")
    return StoreError(f"{wanted}: {reason} ({path}). Name another folder with --store.")

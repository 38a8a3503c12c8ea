"""Files that a command writes where the user has said."""

import os
from pathlib import Path

from spanreplay.cli.options import WrongUse


def write_whole(path: Path, data: bytes, *, folder: bool = False) -> None:
    """Write a file whole or not at all. What is no file, such as a pipe, is written to as it is.

    Args:
        path: of the file.
        data: all that is to be in it.
        folder: make the folder where it is not there.

    Raises:
        WrongUse: it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        if folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(data)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WrongUse(f"{path} cannot be written: {error.strerror or error}") from error

"""Starts spanreplay in this Python process, then goes on with the sitecustomize that would have run without it.

Python imports ``sitecustomize`` from the first folder on its path that has one. This file uses nothing but the standard library until it
knows that spanreplay is installed in this interpreter.
"""
# Every process of the command runs this; pathlib would be half of what it costs.
# ruff: noqa: PTH100, PTH103, PTH118, PTH120

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _report(error: ImportError) -> None:
    """Leave a note in the store that this interpreter cannot record, for the command line to show."""
    import json

    try:
        folder = os.path.join(os.environ["SPANREPLAY_STORE"], "reports")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"{os.environ['SPANREPLAY_COMMAND_ID']}-{os.getpid()}.json")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            json.dump({"executable": sys.executable, "version": sys.version.split()[0], "error": str(error)}, stream)
    except (OSError, KeyError):
        return


def _boot() -> None:
    mode = os.environ.get("SPANREPLAY_BOOTSTRAP")
    if mode not in ("record", "replay"):
        return
    try:
        from spanreplay.recording.bootstrap import boot
    except ImportError as error:
        if mode == "replay":  # going on would act on the world
            os.write(2, f"spanreplay: not installed in {sys.executable}, so nothing there can be replayed ({error})\n".encode())
            os._exit(125)
        _report(error)
        return
    boot()


def _chain() -> None:
    """Run the next sitecustomize on the path, under its own name."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE])
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_boot()
_chain()

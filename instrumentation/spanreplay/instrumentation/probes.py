"""Data: who starts a process, or looks up a name, only to look at the machine. The one place to add a probe.

A recording does not name a probe, and a replay refuses it as an ``OSError`` that counts as no attempt. An entry names a module and, where
the module does other things too, the functions meant.
"""

import os
import sysconfig
from collections.abc import Mapping
from types import FrameType
from typing import Final

PROBES: Final[Mapping[str, frozenset[str]]] = {
    "platform": frozenset(),  # `uname -p`: openai's first call builds its user agent with it
    "ctypes.util": frozenset(),  # ldconfig, gcc, ld, objdump: trio loads libc through it
    "uuid": frozenset({"_get_command_stdout"}),  # ifconfig, ip, arp for the hardware address
    "webbrowser": frozenset({"register_standard_browsers", "register_X_browsers"}),  # xdg-settings
    "socket": frozenset({"getfqdn"}),  # smtplib, http.server, email.utils ask for the machine's own name
    "multiprocessing.resource_tracker": frozenset({"register"}),  # starts a helper that only cleans up; tqdm makes such a lock
}
"""Standard library modules whose acts only look at the machine, and whose callers take an ``OSError`` for "not found".

Module name to the functions meant; an empty set means all of them.
"""

_CORES: Final = frozenset({"_count_physical_cores", "_count_physical_cores_linux", "_count_physical_cores_darwin"})

LIBRARY_PROBES: Final[Mapping[str, frozenset[str]]] = {
    "logfire._internal.config": frozenset({"get_git_revision_hash"}),  # `git rev-parse HEAD` in every logfire.configure()
    "opentelemetry.sdk.resources": frozenset({"_run_command"}),  # the host's id: ioreg, kenv
    "sentry_sdk.utils": frozenset({"get_git_revision"}),  # `git rev-parse HEAD` in sentry_sdk.init()
    "langsmith.env._git": frozenset({"exec_git"}),  # `git remote get-url`, `git log -1`
    "distro.distro": frozenset({"_lsb_release_info", "_uname_info"}),  # openai, anthropic and posthog name the system
    "google.auth._cloud_sdk": frozenset({"get_project_id"}),  # `gcloud config get project`
    "dspy.clients.model_metadata": frozenset({"_load"}),  # a newer table of models and prices than the one it brings
    "joblib.externals.loky.backend.context": _CORES,  # lscpu
    "loky.backend.context": _CORES,
}
"""The same of installed packages: each catches an ``OSError`` and does without. They are probes wherever the agent calls the package."""

WRAPPERS: Final[Mapping[str, frozenset[str]]] = {
    "sentry_sdk.integrations.stdlib": frozenset(),
    "sentry_sdk.utils": frozenset({"sentry_patched_function"}),
    "wrapt": frozenset(),
}
"""Packages that stand in for functions of the standard library, so that a frame of theirs says nothing about who acts."""

IMPORT: Final = "<frozen importlib._bootstrap>"
"""``co_filename`` of the code that runs imports."""

_OURS: Final = ("spanreplay.instrumentation.", "spanreplay.boundary.", "spanreplay.recording.")
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD: Final = (
    "<frozen ",
    *{os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")}
    | {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")},
)


def is_standard(file: str) -> bool:
    """Whether a ``co_filename`` is the standard library's."""
    return file.startswith(_STANDARD) and not is_installed(file)


def is_installed(file: str) -> bool:
    """Whether a ``co_filename`` is an installed package's."""
    return any(part in file for part in _INSTALLED)


def is_named(table: Mapping[str, frozenset[str]], module: str, function: str) -> bool:
    """Whether a table names a function, by its module or by a package around it."""
    name = module
    while name:
        functions = table.get(name)
        if functions is not None:
            return not functions or function in functions
        name = name.rpartition(".")[0]
    return False


class Look:
    """Reads a stack outwards, frame by frame: do the frames before the user's own code look at the machine only?"""

    __slots__ = ("_ends", "_installed", "importing", "probing")

    def __init__(self) -> None:
        self.importing = False
        """An import runs between the act and the nearest frame of the user's own code (neither standard library nor site-packages)."""
        self.probing = False
        """The act is one of :data:`PROBES` or :data:`LIBRARY_PROBES`."""
        self._installed = False
        self._ends = False

    def at(self, module: str, function: str, file: str) -> bool:
        """Take the next frame.

        Returns whether it is a frame of the user's own code.
        """
        standard = is_standard(file)
        installed = not standard and is_installed(file)
        if not self._ends:
            if standard:
                self.importing = self.importing or file == IMPORT
                self.probing = self.probing or (not self._installed and is_named(PROBES, module, function))
            elif installed:
                self.probing = self.probing or is_named(LIBRARY_PROBES, module, function)
                self._installed = self._installed or not is_named(WRAPPERS, module, function)
            else:
                self._ends = True
        return not standard and not installed


def only_looks(frame: FrameType | None) -> bool:
    """Whether what is done in ``frame`` is a probe, or an import does it."""
    look = Look()
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if not module.startswith(_OURS) and look.at(module, frame.f_code.co_name, frame.f_code.co_filename):
            break
        frame = frame.f_back
    return look.probing or look.importing

"""Starts programs in forks of a process that has imported what takes long, as a server that forks its workers does.

Its arguments are the modules; ``package.*`` is all that are in a package. Reads jobs from stdin, a line of JSON each, ``{"argv",
"environment", "folder", "in", "out", "err"}``, where ``argv`` is what would follow ``python``; writes the exit code of each, a line,
negative for a signal. Uses the standard library alone, so that a program finds nothing of ours that it was not told to import.
"""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import sys


def _become(job: dict[str, object]) -> None:
    os.chdir(str(job["folder"]))
    os.environ.clear()
    os.environ.update(job["environment"])  # type: ignore[call-overload]
    for number, name in enumerate(("in", "out", "err")):
        descriptor = os.open(str(job[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = list(job["argv"])  # type: ignore[call-overload]


def _import(name: str) -> None:
    package = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")


for wanted in sys.argv[1:]:
    _import(wanted)
gc.freeze()  # the forks need not look at it
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        break
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    raise SystemExit
_become(job)
if sys.argv[0] == "-m":
    sys.path[0] = os.getcwd()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")

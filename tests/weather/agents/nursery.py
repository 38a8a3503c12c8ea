"""Starts agents in forks of a process that has imported what takes long, as a server that forks its workers does.

Reads jobs from stdin, a line of JSON each, ``{"argv", "environment", "folder", "out", "err"}``; writes the exit code of each, a line.
Nothing of ours is imported here, so that every agent decides itself when recording starts.
"""

import json
import os
import runpy
import sys

import httpx
import logfire
import openai
import openai.resources.chat.completions
import opentelemetry.exporter.otlp.proto.http.trace_exporter
import opentelemetry.sdk.trace

__all__ = ["httpx", "logfire", "openai", "opentelemetry"]


def _become(job: dict[str, object]) -> None:
    os.chdir(str(job["folder"]))
    os.environ.clear()
    os.environ.update(job["environment"])  # type: ignore[call-overload]
    for number, name in ((1, "out"), (2, "err")):
        descriptor = os.open(str(job[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.argv = list(job["argv"])  # type: ignore[call-overload]


assert not any(name.startswith("spanreplay") for name in sys.modules)
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
runpy.run_path(sys.argv[0], run_name="__main__")

"""A program that starts programs, in steps of theirs, that call tools outside every agent run: DEPTH WORD."""

import os
import shlex
import subprocess
import sys

from spanreplay.instrumentation import tool


@tool(effect="write")
def put(word: str) -> str:
    return f"put {word}"


depth, word = int(sys.argv[1]), sys.argv[2]
if depth:
    print(put(word))
if depth == 2:
    sys.exit(
        os.system(shlex.join([sys.executable, __file__, "3", f"{word}c"]))
        + os.system(shlex.join([sys.executable, __file__, "3", f"{word}d"]))
    )
if depth < 2:
    started = [subprocess.Popen([sys.executable, __file__, str(depth + 1), f"{word}{name}"]) for name in ("ab" if depth == 1 else "c")]
    sys.exit(max(process.wait() for process in started))

"""A program that starts programs, in steps of theirs, that call tools outside every agent run: DEPTH WORD."""

import subprocess
import sys

from spanreplay.instrumentation import tool


@tool(effect="write")
def put(word: str) -> str:
    return f"put {word}"


depth, word = int(sys.argv[1]), sys.argv[2]
if depth:
    print(put(word))
if depth < 3:
    started = [subprocess.Popen([sys.executable, __file__, str(depth + 1), f"{word}{name}"]) for name in ("ab" if depth == 1 else "c")]
    sys.exit(max(process.wait() for process in started))

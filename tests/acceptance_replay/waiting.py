"""A parent that waits on a queue for what its worker gives it: ``waiting.py START WORD``, where START is how workers are started.

The worker asks the tool for WORD. Where there is a file ``act`` or ``act-in-c``, it writes one before.
"""

import ctypes
import multiprocessing
import sys
from pathlib import Path
from typing import Any

from spanreplay.instrumentation import tool


@tool
def spell(word: str) -> str:
    """What is asked for."""
    return " ".join(word)


def work(answers: Any, word: str) -> None:
    """The worker."""
    if Path("act").exists():
        Path("written").write_text(word)
    if Path("act-in-c").exists() and ctypes.CDLL(None).mkdir(b"written", 0o700) != 0:
        raise OSError("no folder")
    answers.put(spell(word))


if __name__ == "__main__":
    start, word = sys.argv[1:]
    processes: Any = multiprocessing.get_context(start)
    answers = processes.Queue()
    worker = processes.Process(target=work, args=(answers, word))
    worker.start()
    print(answers.get())
    worker.join()

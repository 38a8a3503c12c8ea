"""``make fuzz``: atheris, which follows the code, on every target in turn or on those that are named; no network.

An input that fails is kept, and its path printed; the exit code is 1 then.
"""

import argparse
import contextlib
import json
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

from fuzz.mutator import changed_bytes, changed_value

LARGEST = 200_000
MEMORY_MB = 1_500
"""Of the whole process, seeds and what is known of the code included."""
_SHOWN = 6_000
PATIENCE = 25
"""Seconds for one input."""


def main() -> int:
    """Tries the targets that the arguments name, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once (1)")
    parser.add_argument("--found", type=Path, default=Path.cwd() / "fuzz-found", help="where inputs that fail are kept")
    given = parser.parse_args()
    if len(given.targets) == 1:
        _follow(given.targets[0], given.seconds, given.found)
    from fuzz.targets import targets

    names = given.targets or list(targets())
    with ThreadPoolExecutor(given.jobs) as pool:
        passed = list(pool.map(lambda name: _passes(name, given.seconds, given.found), names))
    failed = [name for name, fine in zip(names, passed, strict=True) if not fine]
    print(f"failed: {', '.join(failed)}" if failed else "nothing failed")
    return 1 if failed else 0


def _passes(name: str, seconds: int, found: Path) -> bool:
    """Tries one target in a process of its own; what it printed is shown where it failed, else how many inputs there were."""
    command = [sys.executable, "-m", "fuzz", name, "--seconds", str(seconds), "--found", str(found)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    tried = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stdout)
    print(f"{name}: {'fine' if done.returncode == 0 else 'failed'}, {tried[1] if tried else '?'} inputs", flush=True)
    if done.returncode:
        print(done.stdout[-_SHOWN:], flush=True)
    return done.returncode == 0


def _follow(name: str, seconds: int, found: Path) -> NoReturn:
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["spanreplay"]):
        from fuzz.targets import targets
    target = targets()[name]
    is_bytes = isinstance(target.seeds[0], bytes)
    others = tuple(seed for seed in target.seeds if isinstance(seed, bytes))

    def value(data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None

    def take(data: bytes) -> None:
        target.take(data if is_bytes else value(data))

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            with contextlib.suppress(RecursionError):
                made = changed_bytes(data, chance, others) if is_bytes else json.dumps(changed_value(value(data), chance)).encode()
                return made[:largest]
        return bytes(atheris.Mutate(data, largest))

    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds):
            Path(corpus, str(number)).write_bytes(seed if is_bytes else json.dumps(seed).encode())
        flags = {"max_total_time": seconds, "max_len": LARGEST, "rss_limit_mb": MEMORY_MB, "timeout": PATIENCE, "print_final_stats": 1}
        settings = [f"-{flag}={setting}" for flag, setting in flags.items()]
        atheris.Setup(["fuzz", *settings, f"-artifact_prefix={found}/{name}-", corpus], take, custom_mutator=mutate)
        atheris.Fuzz()
    raise SystemExit(0)


if __name__ == "__main__":
    raise SystemExit(main())

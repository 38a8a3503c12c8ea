"""Nothing that was recorded elsewhere, however damaged or odd, makes the reader fail, hang or take memory without bound."""

import importlib.util
import json
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fuzz.mutator import changed_bytes, changed_value
from fuzz.targets import Target, targets
from spanreplay.replay.inputs.format import registry
from support.size import FULL

INPUTS = 10_000 if FULL else 150
LOOKED_AT = 10
"""Of so many inputs one is looked at for the memory that it takes: looking makes it slow."""
SECONDS = 60
"""For each target, under the fuzzer that follows the code; `make fuzz` takes as many as it is told."""


def changed(target: Target, seed: Any, chance: random.Random) -> Any:
    others = tuple(one for one in target.seeds[:20] if isinstance(one, bytes))
    return changed_bytes(seed, chance, others) if isinstance(seed, bytes) else changed_value(seed, chance)


def take(target: Target, made: Any, folder: Path, *, looked_at: bool) -> None:
    """Tries one input; what fails is kept."""
    if looked_at:
        tracemalloc.start()
    try:
        target.take(made)
        if looked_at:
            size = len(made) if isinstance(made, bytes) else len(json.dumps(made))
            assert tracemalloc.get_traced_memory()[1] < 32_000_000 + 100 * size
    except Exception as error:
        data = made if isinstance(made, bytes) else json.dumps(made).encode()
        path = folder / f"{target.name}.input"
        path.write_bytes(data)
        error.add_note(f"the input is kept in {path}")
        raise
    finally:
        if looked_at:
            tracemalloc.stop()


@pytest.mark.timeout(3600 if FULL else 120)
@pytest.mark.parametrize("name", sorted(targets()))
def test_whatever_comes_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target, chance = targets()[name], random.Random(name)
    assert target.seeds, "a source without a file among the fixtures is not tried"
    for number in range(INPUTS):
        take(target, changed(target, chance.choice(target.seeds), chance), tmp_path, looked_at=number % LOOKED_AT == 0)


@pytest.mark.parametrize("name", sorted(targets()))
def test_what_is_whole_is_read(name: str, tmp_path: Path) -> None:
    target = targets()[name]
    for seed in target.seeds[:: 1 if FULL else 8]:
        take(target, seed, tmp_path, looked_at=False)


@pytest.mark.parametrize("data", [b"", b"\n", b"null", b"[]", b"{}", b"[" * 100_000, b'{"a":' * 100_000, b"\x1f\x8b", b"PAR1", bytes(99)])
def test_every_source_stands_what_is_none_of_its(data: bytes, tmp_path: Path) -> None:
    for source in registry():
        take(targets()[source.NAME], data, tmp_path, looked_at=False)


@pytest.mark.skipif(not FULL, reason=f"takes {SECONDS} s for each target (SPANREPLAY_TEST_SIZE=full)")
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs atheris: pip install --group fuzz")
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("name", sorted(targets()))
def test_nor_what_the_code_itself_leads_to(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", name, "--seconds", str(SECONDS), "--found", str(tmp_path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]

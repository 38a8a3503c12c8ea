"""A pruning that is killed at any moment leaves a store that opens, in which every run is whole, or gone."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

from exporter.test_retention import filled, left, run_of
from spanreplay.store.retention import Limits, Retention
from spanreplay.store.store import Store
from support.size import FULL

KILLS = 40 if FULL else 2
PRUNE = """
import sys
from pathlib import Path
from spanreplay.store.retention import Limits, Retention
sys.stdout.write("x")
sys.stdout.flush()
Retention(Path(sys.argv[1])).prune(Limits(keep=4))
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    filled(tmp_path / "made", *(run_of(days, days=days, session=("even", "odd")[days % 2]) for days in range(1, 11)))
    moments = random.Random(FULL)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "made", folder)
        process = subprocess.Popen([sys.executable, "-c", PRUNE, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            process.wait(moments.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        assert left(Store.open(folder)) in ([*range(1, 11)], [1, 2, 3, 4])
        Retention(folder).prune(Limits(keep=4))
        assert left(Store.open(folder)) == [1, 2, 3, 4]
        assert not list(folder.glob("*.fresh*"))
        shutil.rmtree(folder)

"""``python -m conformance [DRIVER…]``: the scenarios with each driver, a table, and a file of results."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from conformance import results
from conformance.running import DriverFailed, Results, run
from conformance.scenario import Scenario, scenarios

HERE: Final = Path(__file__).parent
DRIVERS: Final = HERE / "drivers"
_LAST: Final = Path("conformance-results.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every scenario passed or was skipped. 1: one failed. 2: wrong use, or a driver cannot be loaded."""
    asked = _arguments().parse_args(arguments)
    known = scenarios()
    unknown = [name for name in asked.only or () if name not in known and name not in {s.group for s in known.values()}]
    if unknown:
        print(f"no scenario or group is called {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    paths = [_path(name) for name in asked.drivers or sorted(path.stem for path in DRIVERS.glob("*.py") if path.stem != "nothing")]
    lacking = [str(path) for path in paths if not path.is_file()]
    if lacking:
        there = ", ".join(sorted(path.stem for path in DRIVERS.glob("*.py")))
        print(f"there is no driver file {', '.join(lacking)}; name a file that ends in .py, or one of: {there}", file=sys.stderr)
        return 2
    if not asked.output.absolute().parent.is_dir():
        print(f"--output {asked.output}: there is no folder {asked.output.absolute().parent}", file=sys.stderr)
        return 2
    wanted = {name: s for name, s in known.items() if not asked.only or name in asked.only or s.group in asked.only}
    found: list[Results] = []
    for path in paths:
        print(path.stem, flush=True)
        try:
            found.append(run(path, wanted.values(), python=asked.python or _python(path), on_verdict=_tell))
            if len(wanted) == len(known):
                results.write(asked.output, found)
        except (DriverFailed, OSError, subprocess.CalledProcessError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
    print("\n" + results.table(wanted, found))
    if len(wanted) == len(known):
        print(f"written to {asked.output}")
    return 1 if any(verdict.status == "fail" for one in found for verdict in one.verdicts.values()) else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description="Test recorders of agent runs; see docs/conformance.md.")
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help="a driver file, or the name of one that is here; all by default")
    parser.add_argument("--only", nargs="+", metavar="SCENARIO", help="these scenarios or groups only; no results are written")
    parser.add_argument("--python", help="interpreter that has the recorder, openai and anthropic; default: one made for DRIVER's .txt")
    parser.add_argument("-o", "--output", type=Path, default=_LAST, help=f"file of results; default: {_LAST}")
    return parser


def _path(name: str) -> Path:
    return Path(name) if name.endswith(".py") else DRIVERS / f"{name}.py"


def _python(driver: Path) -> str:
    """The interpreter of an environment with a driver's requirements; this one where it has none."""
    requirements = driver.with_suffix(".txt")
    if not requirements.exists():
        return sys.executable
    from support.environments import environment

    return str(environment(f"conformance-{driver.stem}", requirements, checkout=False) / "bin" / "python")


def _tell(scenario: Scenario, status: str, detail: str) -> None:
    print(results.line(scenario, status, detail), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())

"""What was measured: the table for a terminal, and the results file that the page of the documentation is made from."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.running import Results
from conformance.scenario import GROUPS, Scenario

FILE: Final = Path(__file__).parent / "results.json"
_SCHEMA: Final = 1
_SHOWN: Final = 60


def table(scenarios: Mapping[str, Scenario], found: Sequence[Results]) -> str:
    """Scenario by recorder, and how many passed."""
    lines: list[str] = []
    wide = max(len(name) for name in scenarios)
    columns = [max(len(one.name), 7) for one in found]
    for group in GROUPS:
        names = [name for name, scenario in scenarios.items() if scenario.group == group]
        if not names:
            continue
        lines.append(f"{group:<{wide}}  " + "  ".join(f"{one.name:<{width}}" for one, width in zip(found, columns, strict=True)))
        for name in names:
            cells = [f"{one.verdicts[name].status:<{width}}" for one, width in zip(found, columns, strict=True)]
            lines.append(f"{name:<{wide}}  " + "  ".join(cells).rstrip())
        lines.append("")
    return "\n".join([*lines, *(summary(one) for one in found)])


def summary(one: Results) -> str:
    """A recorder in a line."""
    count = Counter(verdict.status for verdict in one.verdicts.values())
    return f"{one.name} {one.version}: {count['pass']} passed, {count['fail']} failed, {count['skipped']} skipped"


def line(scenario: Scenario, status: str, detail: str) -> str:
    """A verdict as it is found."""
    told = detail if len(detail) <= _SHOWN * 3 else detail[: _SHOWN * 3 - 1] + "…"
    return f"  {scenario.group:<12} {scenario.name:<30} {status:<8} {told}".rstrip()


def write(path: Path, found: Sequence[Results]) -> None:
    """Write the results; of recorders that were not tested now, those that the file has are kept."""
    kept: dict[str, Any] = {}
    if path.exists():
        kept = {one["name"]: one for one in json.loads(path.read_text(encoding="utf-8"))["recorders"]}
    kept |= {one.name: one.to_json() for one in found}
    text = json.dumps({"schema": _SCHEMA, "recorders": [kept[name] for name in sorted(kept)]}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path = FILE) -> list[dict[str, Any]]:
    """The recorders of a results file."""
    recorders: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["recorders"]
    return recorders

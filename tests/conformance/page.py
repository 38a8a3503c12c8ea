"""Writes docs/conformance.md from the last results and the programs themselves: ``PYTHONPATH=tests python -m conformance.page``."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from conformance.results import FILE, read
from conformance.scenario import GROUPS, scenarios

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "conformance.md"
EXAMPLE: Final = Path(__file__).parent / "drivers" / "vcrpy.py"
_FIRST: Final = ("spanreplay", "spanreplay (in process)")
_SHOWN: Final = {"pass": "pass", "fail": "**fail**", "skipped": "skipped"}
_ABOUT_GROUPS: Final = {
    "loops": "Ordinary agents",
    "streams": "Streamed answers",
    "values": "What tools return",
    "errors": "What fails",
    "concurrency": "Several calls at once",
    "effects": "Actions on the outside",
    "changes": "A changed program",
    "determinism": "What is new each time",
}
_HEAD: Final = """# Does a recorder of agent runs give them back?

A suite of {count} small agent programs for any tool that records agent runs and replays them. Each is run for real, recorded, and run
again. The programs use the real SDKs of OpenAI and Anthropic against a model server on loopback that counts requests and never gives an
id or an answer twice; their tools leave a mark when their body runs. The suite knows no recorder: what one needs is in one file, its
driver.

Written by `PYTHONPATH=tests python -m conformance.page` from `tests/conformance/results.json`, which `make conformance` measures. Nothing
in the tables is typed by hand.

## What must hold

- The unchanged program gives **the same final output**, to the character and the type; **no request** reaches the model; **no tool body**
  runs; **nothing is done outside**; and **no difference** is told, since there is none.
- A program that is changed in one place: **the change is noticed**, told or by stopping, and nothing runs live. Where a recorder says at
  which call, or which part of it, that has to be the place. Replayed unchanged before, it must have had the same output and no difference.
- Something acts outside that nobody declared as a tool: it is **not done again**. Whether the program is stopped for it is the
  recorder's choice.

Each recording and each replay is done in a process of its own, with another hash seed. The world's pace is another one in a replay: what
takes how long is drawn anew. A recorder that cannot express something by its own documentation is *skipped* there, and the reason is named.
`secrets` and `os.urandom` are in no program: that a secret can be made again from a recording would be no gain.

The suite comes from the makers of spanreplay. Every other recorder is used as its own documentation shows, in the mode that suits a
scenario best, and the driver says which; one that does better otherwise, or a program that is missing, is a driver or a function more.

## Run it

```sh
make conformance                          # all drivers, each recorder in an environment of its own
make conformance DRIVERS=spanreplay_command
PYTHONPATH=tests .venv/bin/python -m conformance agent_rewind --only concurrency polls
```

## With your own recorder

A driver is a file with a `DRIVER`: how a function is declared as a tool, how a program is recorded, how it is replayed, and what the replay
told. `tests/conformance/driver.py` says what each method is given; a recorder that wraps a command subclasses `CommandDriver`. This is a
whole one, `{example}`:

```python
{source}```

Requirements for pip in a file beside it, `{requirements}`, have an environment made for it; or name an interpreter that has your recorder,
`openai` and `anthropic`:

```sh
PYTHONPATH=tests python -m conformance path/to/my_driver.py --python path/to/python
```

Exit code 0: nothing failed. The results are in `conformance-results.json`. `drivers/nothing.py` is a recorder that records nothing: no
scenario passes with it.

## Results

"""


def page() -> str:
    """The whole page."""
    recorders = sorted(read(), key=lambda one: (one["name"] not in _FIRST, one["name"]))
    known = scenarios()
    parts = [
        _HEAD.format(
            count=len(known),
            example=EXAMPLE.relative_to(PAGE.parent.parent).as_posix(),
            requirements=EXAMPLE.with_suffix(".txt").name,
            source=EXAMPLE.read_text(encoding="utf-8"),
        ),
        _row(["recorder", "version", "used so", "passed", "failed", "skipped", "measured"]),
        _row(["---"] * 7),
    ]
    for one in recorders:
        count = Counter(found["status"] for found in one["scenarios"].values())
        numbers = [str(count[status]) for status in ("pass", "fail", "skipped")]
        parts.append(_row([one["name"], one["version"], one["mode"], *numbers, f"{one['date']}, Python {one['python']}"]))
    parts.append(f"\n{_sdks(recorders)}\n")
    for group in GROUPS:
        parts.append(f"\n### {_ABOUT_GROUPS[group]}\n\n")
        parts += [_row(["scenario", *(one["name"] for one in recorders)]), _row(["---"] * (len(recorders) + 1))]
        for name, scenario in known.items():
            if scenario.group == group:
                cells = [_cell(one["scenarios"].get(name)) for one in recorders]
                parts.append(_row([f"**{name}** {scenario.about}", *cells]))
    parts.append("\n## What was seen\n")
    for one in recorders:
        parts.append(f"\n### {one['name']} {one['version']}\n\n{_seen(one, known)}")
    return "".join(parts)


def _sdks(recorders: Iterable[dict[str, Any]]) -> str:
    versions = sorted({", ".join(f"{name} {version}" for name, version in one["sdks"].items()) for one in recorders})
    return f"With {'; or '.join(versions)}."


def _cell(found: dict[str, str] | None) -> str:
    return "not run" if found is None else _SHOWN[found["status"]]


def _seen(one: dict[str, Any], known: Iterable[str]) -> str:
    found = [(name, one["scenarios"][name]) for name in known if name in one["scenarios"]]
    failed = [f"- {name}: {_code(verdict['detail'])}\n" for name, verdict in found if verdict["status"] == "fail"]
    skipped: dict[str, list[str]] = {}
    for name, verdict in found:
        if verdict["status"] == "skipped":
            skipped.setdefault(verdict["detail"], []).append(name)
    told = [f"- skipped, {reason}: {', '.join(names)}\n" for reason, names in skipped.items()]
    where = [f"{name} ({verdict['detail']})" for name, verdict in found if verdict["status"] == "pass" and verdict["detail"]]
    places = [f"- changes whose place it named: {_code(', '.join(where))}\n"] if where else []
    return "".join([*failed, *told, *places]) or "Every scenario passed.\n"


def _code(text: str) -> str:
    """As code, whatever is in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(PAGE.parent.parent)} from {FILE.name}")

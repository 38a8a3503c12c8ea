"""spanreplay around a command: ``spanreplay record -- …``, ``spanreplay replay last -- …``."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conformance.driver import CommandDriver, Difference
from spanreplay.instrumentation import tool


class Command(CommandDriver):
    """``@tool``, and nothing else; tools that act on the outside are declared so."""

    name = "spanreplay"
    package = "spanreplay"
    mode = "`spanreplay record -- CMD`, `spanreplay replay last -- CMD`, isolation level 2"

    def tool(self, function: Callable[..., Any], *, acts: bool) -> Callable[..., Any]:
        return tool(effect="irreversible" if acts else "read")(function)

    def record_command(self, command: Sequence[str], folder: Path) -> list[str]:
        return [sys.executable, "-m", "spanreplay", "record", "--store", str(folder / "store"), "--", *command]

    def replay_command(self, command: Sequence[str], folder: Path) -> list[str]:
        return [sys.executable, "-m", "spanreplay", "replay", "last", "--json", "--store", str(folder / "store"), "--", *command]

    def told(self, code: int, out: str, err: str, folder: Path) -> list[Difference]:
        if code in (2, 3, 125):
            return [Difference(text=f"exit code {code}: {err.strip()[-200:]}")]
        replay = json.loads(out)["replay"]
        found = replay["differences"]
        told = [Difference(text=f"{d['name']}: {d['detail'] or d['field']}", step=d["step"], field=d["field"]) for d in found]
        return told + [Difference(text=f"refused: {refusal}") for refusal in replay["refusals"]]


DRIVER = Command()

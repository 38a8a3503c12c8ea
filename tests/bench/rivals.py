"""Other tools that record and replay agents, on the same toy run beside ours: CPU time, bytes, and what each skips.

They live in an environment of their own under ``.venv/rivals``, made here, with the versions named here. Nothing is judged by these
numbers.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

RIVALS: Final = ("agent-rewind==0.8.0", "obzerve==0.1.0")
_ROOT: Final = Path(__file__).resolve().parents[2]
_HOME: Final = _ROOT / ".venv" / "rivals"
_READY: Final = _HOME / ".ready"
_NOTES: Final = (
    "CPU of all threads of one process, all tools interleaved, patches of the others taken out; the model answers in-process",
    "spanreplay answers at the SDK's method where its arguments are the recorded body, else under the SDK, at the HTTP transport",
    "the two others replace the SDK's method",
    "spanreplay: replay = Replayer on a loaded run, guard on; 'session prepared' = its session made beforehand, no guard, no verdict",
    "spanreplay's guard is a Python audit hook, which cannot be taken out: from its first replay on, all of the others run with it, idle",
    "agent-rewind: one file a run, opened by each replay; match=strict, and match=parallel for the concurrent calls, as its README asks",
    "obzerve: spans to memory, flushed; writing and fetching them is its server's work, which is not here and not timed",
)


class Unavailable(Exception):
    """The environment of the other tools cannot be made, or does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was found, or why nothing could be."""

    speed: dict[str, Any] = field(default_factory=dict)
    probes: list[dict[str, Any]] = field(default_factory=list)
    unavailable: str | None = None

    def line(self) -> str:
        """For people, many lines."""
        if self.unavailable is not None:
            return f"reported   other tools are left out: {self.unavailable}"
        lines = [f"reported   toy run, 3 model calls and 2 tools, beside {' and '.join(RIVALS)}: CPU ms a run, median [95 %]"]
        lines += [
            f"             {c['tool'] + ', ' + c['what']:<38} {c['median']:6.2f} [{c['low']:.2f}, {c['high']:.2f}]"
            + (
                ""
                if c["what"] == "run"
                else f"  {c['over_bare']:+.2f} [{c['over_bare_low']:+.2f}, {c['over_bare_high']:+.2f}] over the bare toy"
            )
            for c in self.speed["costs"]
        ]
        lines += [
            f"             bytes a run, {tool}: " + "; ".join(f"{n:.0f} {what}" for what, n in kept.items())
            for tool, kept in self.speed["bytes"].items()
        ]
        lines += [
            f"             once, {tool}: " + "; ".join(f"{n:.1f} ms {what}" for what, n in once.items())
            for tool, once in self.speed["once"].items()
            if once
        ]
        lines += [f"             {note}" for note in _NOTES]
        lines.append("           what each does when it is tried:")
        for row in self.probes:
            lines.append(f"             {row['what']}")
            lines += [f"               {tool:<13} {found}" for tool, found in row["found"].items()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "name": "other tools on the toy run",
            "verdict": "reported",
            "versions": list(RIVALS),
            "unavailable": self.unavailable,
            "notes": list(_NOTES),
            "speed": self.speed,
            "probes": self.probes,
        }


def rivals() -> Comparison:
    """Make the environment where it is missing, and measure in it."""
    try:
        _make()
        return Comparison(speed=_ask("speed"), probes=_ask("probes"))
    except Unavailable as reason:
        return Comparison(unavailable=str(reason))


def _make() -> None:
    """Idempotent: a finished environment says in ``.ready`` what it was made from."""
    wanted = hashlib.sha256(
        "\n".join([*RIVALS, sys.version, *(_text(n) for n in ("constraints.txt", "pyproject.toml"))]).encode()
    ).hexdigest()
    if _READY.exists() and _READY.read_text(encoding="utf-8") == wanted:
        return
    print(f"making {_HOME.relative_to(_ROOT)} for {' and '.join(RIVALS)}", flush=True)
    shutil.rmtree(_HOME, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(_HOME)], "python -m venv")
    install = [_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", "constraints.txt"]
    _run([*install, *RIVALS, "openai", "httpx2", "--editable", "."], "pip install")
    _READY.write_text(wanted, encoding="utf-8")


def _text(name: str) -> str:
    return (_ROOT / name).read_text(encoding="utf-8")


def _python() -> str:
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return str(_HOME / folder / name)


def _ask(what: str) -> Any:
    return json.loads(_run([_python(), "-m", "bench.rivals_toy", what], f"the {what} of the toy run"))


def _run(argv: list[str], what: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPANREPLAY_", "OTEL_", "PYTHON"))}
    environment["PYTHONPATH"] = str(_ROOT / "tests")
    if size := os.environ.get("SPANREPLAY_TEST_SIZE"):
        environment["SPANREPLAY_TEST_SIZE"] = size
    try:
        done = subprocess.run(argv, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{what}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unavailable(f"{what} ended with {done.returncode}: {last}")
    return done.stdout

"""``spanreplay doctor``."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from spanreplay.cli.fetching import fetching
from spanreplay.cli.main import user_command
from spanreplay.cli.options import WrongUse, common, print_json, print_text

if TYPE_CHECKING:
    from spanreplay.cli.probing import Examined
    from spanreplay.recording.examining import Interpreter

VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXAMINE: Final = "import json; from spanreplay.recording.examining import examine, to_json; print(json.dumps(to_json(examine())))"
_LONGEST_S: Final = 300


@click.command("doctor")
@click.option(
    "--endpoint",
    "endpoints",
    multiple=True,
    metavar="URL",
    help="Only check this Collector, Jaeger or Tempo. May be repeated. Without it also $OTEL_EXPORTER_OTLP_ENDPOINT, if set.",
)
@fetching
@common
@click.pass_context
def command(context: click.Context, endpoints: tuple[str, ...], store: Path | None, as_json: bool) -> None:
    """Check what would be recorded, or whether a back end keeps all of it, and which line changes that.

    Looks at the Python that runs a command (given after --; else at the one that runs this): which libraries are observed, which cannot be,
    what else instruments them. Every framework that is installed is imported for that.

    A Collector, Jaeger or Tempo is asked only: no span is left there. Exit code: 0 all is well, 1 something has to be changed.

    \b
    spanreplay doctor -- python agent.py
    spanreplay doctor --endpoint grpc://localhost:4317 --endpoint http://localhost:3200
    """  # noqa: D301
    del store
    from spanreplay.cli.fetching import access
    from spanreplay.cli.probing import examine
    from spanreplay.cli.sending import NoEndpoint

    given = access()
    argv = user_command(context)
    interpreter = None if endpoints and argv is None else _interpreter(argv)
    told = endpoints or tuple(os.environ[name] for name in VARIABLES if os.environ.get(name))[:1]
    try:
        examined = [examine(endpoint, given) for endpoint in told]
    except NoEndpoint as error:
        raise click.BadParameter(str(error), param_hint="--endpoint") from error
    ok = all(found.ok for found in examined) and (interpreter is None or interpreter.ok)
    if as_json:
        made = None if interpreter is None else _interpreter_json(interpreter)
        print_json({"schema": 1, "ok": ok, "interpreter": made, "endpoints": [_json(found) for found in examined]})
    else:
        _print(interpreter, examined)
    context.exit(0 if ok else 1)


def _interpreter(argv: list[str] | None) -> "Interpreter":
    from spanreplay.cli.interpreters import interpreter_of
    from spanreplay.recording.examining import from_json

    python = sys.executable if argv is None else interpreter_of(argv) if argv else None
    if python is None:
        raise WrongUse(
            f"{argv[0] if argv else 'nothing'} is no Python program; give the command as you run it, for example: -- python agent.py"
        )
    done = subprocess.run([python, "-c", _EXAMINE], capture_output=True, text=True, timeout=_LONGEST_S, check=False)  # noqa: S603 — the user's own Python
    try:
        return from_json(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise WrongUse(
            f"{python} cannot say what it would record: {said[0]}. Install it there: {python} -m pip install spanreplay"
        ) from error


def _interpreter_json(found: "Interpreter") -> dict[str, object]:
    from spanreplay.recording.examining import to_json

    made = to_json(found)
    return {
        **made,
        "libraries": [{**one, "ok": library.ok} for one, library in zip(made["libraries"], found.libraries, strict=True)],
        "ok": found.ok,
    }


def _json(found: "Examined") -> dict[str, object]:
    checks = [{"what": check.what, "ok": check.ok, "detail": check.detail, "advice": check.advice} for check in found.checks]
    return {"endpoint": found.endpoint, "kind": found.kind, "version": found.version, "ok": found.ok, "checks": checks}


def _print(interpreter: "Interpreter | None", examined: "list[Examined]") -> None:
    from spanreplay.replay.showing import safe_lines

    lines: list[str] = []
    if interpreter is not None:
        lines.append(interpreter.python)
        lines += [_line(one.ok, f"{one.name}: {one.installed}, {one.status}") for one in interpreter.libraries if one.installed is not None]
        absent = [one.name for one in interpreter.libraries if one.installed is None]
        lines += [f"      not installed: {', '.join(absent)}"] if absent else []
        for remark in interpreter.remarks:
            lines += [_line(remark.ok, remark.detail), *([f"      → {remark.advice}"] if remark.advice else [])]
    for found in examined:
        lines.append(found.endpoint)
        for check in found.checks:
            lines += [_line(check.ok, check.detail), *([f"      → {check.advice}"] if check.advice else [])]
    print_text("\n".join(safe_lines(line) for line in lines))


def _line(ok: bool, detail: str) -> str:
    return f"  {'ok ' if ok else 'NO '} {detail}"

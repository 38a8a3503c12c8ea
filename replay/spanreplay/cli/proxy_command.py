"""``spanreplay proxy``."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from spanreplay.cli.main import user_command
from spanreplay.cli.options import WrongUse, check_kept, common, complain, print_json, print_text, say, store_path

if TYPE_CHECKING:
    from spanreplay.cli.target import Loaded
    from spanreplay.replay.proxy.upstreams import Upstream

_LOOK_EVERY_S: Final = 0.02
_KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "CO_API_KEY", "GROQ_API_KEY")


@click.command("proxy")
@click.option("--mcp", is_flag=True, help="Stand before the MCP server after --, on standard input and output.")
@click.option("--replay", "target", metavar="TARGET", help="Answer from this recorded run; nothing is sent, no server is started.")
@click.option(
    "--upstream",
    "given",
    multiple=True,
    metavar="[NAME=]URL",
    help="Where a model API is: at /NAME, or at every other path. May be repeated. Known: openai, anthropic, gemini, mistral, cohere, "
    "groq, ollama.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 is any free one.")
@click.option("--name", help="Name of the agent; by default the command's.")
@common
@click.pass_context
def command(
    context: click.Context,
    mcp: bool,
    target: str | None,
    given: tuple[str, ...],
    port: int,
    name: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Record and replay agents of other languages, and closed ones: give them the proxy's address for their model's.

    The command after -- gets it in the variables that SDKs read (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, …); without one the proxy says it and
    works until Ctrl-C. Its tools are not seen, only what the models were told of them. Needs: pip install 'spanreplay[proxy]'

    With --mcp, put it where the MCP client has the server's command.

    \b
    spanreplay proxy -- node agent.js
    spanreplay proxy --replay last -- node agent.js
    spanreplay proxy --mcp -- npx some-mcp-server
    spanreplay proxy --mcp --replay last
    """  # noqa: D301
    argv = user_command(context) or []
    if mcp:
        context.exit(_mcp(argv, target, name, store))
    _needed()
    context.exit(_model(argv, target, given, port, name, store, as_json=as_json))


def _needed() -> None:
    try:
        import httpx  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise WrongUse(f"proxy needs {error.name}, which is not installed: pip install 'spanreplay[proxy]'") from error


# ---- models -------------------------------------------------------------------------------------------------------


def _model(
    argv: list[str], target: str | None, given: tuple[str, ...], port: int, name: str | None, store: Path | None, *, as_json: bool
) -> int:
    from spanreplay.replay.proxy.upstreams import UpstreamError, addresses, upstreams

    loaded = _load(target, store) if target is not None else None
    if loaded is not None:
        name = name or next((run.agent_name for run in loaded.runs if run.agent_name), None)
        given = given or _recorded_upstreams(loaded)
    try:
        found = upstreams(given)
    except UpstreamError as error:
        raise WrongUse(str(error)) from error
    if loaded is None:
        check_kept(store_path(store).absolute())
    with tempfile.TemporaryDirectory(prefix="spanreplay-proxy-") as folder:
        beside = Beside(argv, found, Path(folder) / "ready.json", replaying=loaded is not None)
        served = beside.server(port, name or (Path(argv[0]).name if argv else "proxy"))
        with beside, _unset(addresses("", found)):
            if loaded is None:
                _record(served, store_path(store).absolute(), beside, as_json=as_json)
                return beside.exit_code or 0
            code = _replay(served, loaded, beside, as_json=as_json)
    return code


@contextmanager
def _unset(variables: Iterable[str]) -> Iterator[None]:
    """The proxy's own process gets its upstreams by name: where they were found is nothing that a replay could miss."""
    before = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


@dataclass
class Beside:
    """What happens beside the proxy's own process: it is waited for, the command runs, and then it is told to stop."""

    argv: list[str]
    upstreams: "Sequence[Upstream]"
    ready: Path
    replaying: bool
    exit_code: int | None = None
    problem: str = ""
    _over: threading.Event = field(default_factory=threading.Event)

    def server(self, port: int, name: str) -> list[str]:
        """The command line of the proxy's process."""
        from spanreplay.recording.definition import PROXY

        options = [option for upstream in self.upstreams for option in ("--upstream", str(upstream))]
        options += ["--name", name, "--port", str(port), "--ready", str(self.ready)]
        return [sys.executable, "-m", PROXY, *options, "--", *self.argv]

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._run, name="spanreplay-proxy", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.problem:
            raise WrongUse(self.problem)

    def _run(self) -> None:
        from spanreplay.replay.proxy.serving import read_ready

        while (there := read_ready(self.ready)) is None:
            if self._over.wait(_LOOK_EVERY_S):
                return
        if not self.argv:
            known = ", ".join(f"{there.url}/{upstream.name}" for upstream in self.upstreams)
            say(f"{'answering from the record' if self.replaying else 'recording'} at {known}; Ctrl-C ends it")
            return
        try:
            self.exit_code = subprocess.call(self.argv, env=self._environment(there.url))  # noqa: S603 — the user's own command
        except OSError as error:
            self.problem = f"{self.argv[0]}: {error.strerror}; what stands after -- is run as it is, without a shell"
        finally:
            with suppress(OSError):
                from spanreplay.replay.proxy.http_app import STOP

                asked = urllib.request.Request(there.url + STOP, headers={"authorization": f"Bearer {there.token}"})  # noqa: S310 — loopback
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=10).close()

    def _environment(self, proxy: str) -> dict[str, str]:
        from spanreplay.replay.proxy.upstreams import addresses
        from spanreplay.replay.reexecution.credentials import PLACEHOLDER

        made = {**os.environ, **addresses(proxy, self.upstreams), "SPANREPLAY_PROXY": proxy}
        if self.replaying:
            for key in _KEYS:
                made.setdefault(key, PLACEHOLDER)
        return made


def _record(served: list[str], path: Path, beside: Beside, *, as_json: bool) -> None:
    from spanreplay.cli.recorded import summary
    from spanreplay.cli.stored import ready_store
    from spanreplay.exporter import environment_variables as env
    from spanreplay.recording.children import child_environment, finish_command
    from spanreplay.replay.reexecution.command import run_attached

    command_id = os.urandom(16).hex()
    environment = child_environment(command_id, os.urandom(16).hex(), path, "record", {env.SPANREPLAY_RUN_PER: "auto"})
    finish_command(environment, run_attached(served, environment, output=sys.stderr if as_json else None))
    with ready_store(path, create=True) as opened:
        kept = summary(opened, command_id)
    if as_json:
        print_json({"schema": 1, "command_id": command_id, "exit_code": beside.exit_code, **kept.to_json()})
    else:
        for line in kept.lines():
            say(line)
        say("  its tools are not seen: what they did outside is not recorded")


def _replay(served: list[str], loaded: "Loaded", beside: Beside, *, as_json: bool) -> int:
    from spanreplay.replay.reexecution.command import replay_command
    from spanreplay.replay.reexecution.options import Options
    from spanreplay.replay.reports.verdict import render_verdict

    focus = [run.run_id for run in loaded.runs if not run.is_command] if loaded.asked else []
    done = replay_command(
        loaded.siblings,
        loaded.records,
        served,
        focus=focus,
        options=Options(allow_write=(beside.ready,)),
        output=sys.stderr if as_json else None,
    )
    if as_json:
        print_json({"schema": 1, "replay": {**done.verdict.to_json(), "command": beside.argv, "command_exit_code": beside.exit_code}})
    else:
        print_text(render_verdict(done.verdict, done.runs))
        if beside.argv:
            say("isolation is the proxy's: the command itself ran freely, and what its tools did was done")
    return done.verdict.exit_code


def _load(target: str, store: Path | None) -> "Loaded":
    from spanreplay.cli.about import about
    from spanreplay.cli.target import load

    loaded = load(target, store)
    about(loaded)
    return loaded


def _recorded_upstreams(loaded: "Loaded") -> tuple[str, ...]:
    """Those that the proxy had when it recorded."""
    definition = next((run.definition for run in loaded.siblings if run.is_command and isinstance(run.definition, dict)), {})
    proxy = definition.get("proxy")
    upstreams = proxy.get("upstreams") if isinstance(proxy, dict) else None
    return tuple(text for text in upstreams if isinstance(text, str)) if isinstance(upstreams, list) else ()


# ---- MCP ----------------------------------------------------------------------------------------------------------


def _mcp(argv: list[str], target: str | None, name: str | None, store: Path | None) -> int:
    from spanreplay.replay.proxy.mcp import McpProxy

    if target is None and not argv:
        raise click.UsageError("give the MCP server's command after --, or --replay and a recorded run")
    proxy = McpProxy([] if target is not None else argv, sys.stdin.buffer, sys.stdout.buffer)
    before = signal.signal(signal.SIGTERM, lambda *_: proxy.leave())  # with which clients end a server that takes its time
    try:
        if target is None:
            return _recorded_mcp(proxy.run, argv, name, store)
        return _replayed_mcp(proxy.run, _load(target, store), name)
    finally:
        signal.signal(signal.SIGTERM, before)


def _recorded_mcp(run: Callable[[], int], argv: list[str], name: str | None, store: Path | None) -> int:
    from spanreplay import recording
    from spanreplay.instrumentation.manual import agent_run

    recording.start(store=store_path(store).absolute(), adapters="none")
    try:
        with agent_run(name or Path(argv[0]).name):
            return run()
    except OSError as error:
        raise WrongUse(f"{argv[0]}: {error.strerror}; what stands after -- is run as it is, without a shell") from error
    finally:
        recording.stop()


def _replayed_mcp(run: Callable[[], int], loaded: "Loaded", name: str | None) -> int:
    from spanreplay.instrumentation.manual import agent_run
    from spanreplay.replay.reexecution.engine import Replayer
    from spanreplay.replay.reports.verdict import render_verdict

    def serve() -> Any:
        with agent_run(name or next((made.agent_name for made in loaded.runs if made.agent_name), None) or "proxy"):
            return run()

    result = Replayer(list(loaded.runs)).replay(serve)
    for line in render_verdict(result.verdict, loaded.runs, colour=False).splitlines():
        say(line)
    if result.error is not None:
        complain(f"{type(result.error).__name__}: {result.error}")
    return result.verdict.exit_code

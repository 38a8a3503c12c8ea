"""Runs the console blocks of a page and compares what they print with what the page shows.

In a page, a block that begins with ```` ```console ```` holds commands (``$ …``) and their output; a block that begins with
```` ```python title=NAME ```` is written to the file NAME first. Blocks run in order, in one folder.
``PYTHONPATH=tests python -m pages.console README.md`` writes the real output into the page.
"""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.loopback import LoopbackServer

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"^```(console|python)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_CI = ("CI", "BUILD_NUMBER")
"""Where one of them is set, pytest's summary is longer."""

WITHOUT = " ".join(f"-p no:{plugin}" for plugin in ("logfire", "pytest_logfire", "hypothesispytest", "anyio"))
"""Plugins of pytest that are here by chance, and take longer to import than a suite on a page takes."""

_VARYING = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "<run>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( UTC)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? ?(us|ms|s|min)\b"), "<duration>"),
    (re.compile(r"(/[^\s:]+)+/(?=\w+\.(py|eml|json|log))"), "<folder>/"),
    (re.compile(r"\d+(\.\d+)? kB|\d+ bytes"), "<size>"),
    (re.compile(r":\d+ \(thread"), ":<line> (thread"),
    (re.compile(r"isolation: level [12]: .*"), "isolation: <what the machine offers>"),
    (re.compile(r"as recorded: .*"), "as recorded: <versions>"),
    (re.compile(r"^note: refused, as libraries' probes and no attempts: .*\n?", re.MULTILINE), ""),  # which packages are installed tells
    (re.compile(r" {2,}"), "  "),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a page."""

    line: str
    shown: str
    start: int
    """Where ``shown`` begins in the page."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that a page shows."""

    name: str
    text: str


def parts(page: str) -> Iterator[Command | File]:
    """What a page has to run, in order."""
    for block in _BLOCK.finditer(page):
        kind, title, text = block.groups()
        if kind == "python":
            if title:
                yield File(name=title, text=text)
            continue
        at = block.start(3)
        lines = text.splitlines(keepends=True)
        i = 0
        while i < len(lines):
            line = lines[i]
            assert line.startswith("$ "), f"a console block begins with a command, not with {line!r}"
            at += len(line)
            i += 1
            start = at
            while i < len(lines) and not lines[i].startswith("$ "):
                at += len(lines[i])
                i += 1
            yield Command(line=line[2:].strip(), shown=page[start:at], start=start, end=at)


def steady(output: str) -> str:
    """Output without what differs from run to run."""
    for pattern, word in _VARYING:
        output = pattern.sub(word, output)
    return "\n".join(line.rstrip() for line in output.strip().splitlines())


class _Model(http.server.BaseHTTPRequestHandler):
    """A scripted model, by how far the conversation is."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.endswith("/v1/traces"):
            self._answer("application/x-protobuf", b"")
            return
        done = [m for m in json.loads(body)["messages"] if m["role"] == "assistant"]
        calls = (
            ("call_a1", "order_status", {"order": "4711"}),
            ("call_b2", "send_email", {"to": "ana@example.com", "text": "Order 4711 was lost. We refund it."}),
        )
        message: dict[str, object] = {"role": "assistant", "content": None}
        if len(done) < len(calls):
            call_id, name, arguments = calls[len(done)]
            message["tool_calls"] = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]
        else:
            message["content"] = "I have written to Ana that her order was lost."
        reply = {
            "id": f"chatcmpl-{len(done)}",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-5-mini",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop" if message["content"] else "tool_calls"}],
            "usage": {"prompt_tokens": 80 + 40 * len(done), "completion_tokens": 15, "total_tokens": 95 + 40 * len(done)},
        }
        self._answer("application/json", json.dumps(reply).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def model_server() -> Iterator[int]:
    """The scripted model and an OTLP endpoint on one loopback port."""
    with LoopbackServer(_Model) as server:
        yield server.server_address[1]


def run(page: str, folder: Path, commands: Path | None = None) -> Iterator[tuple[Command, str]]:
    """Run a page in a folder; gives each command with what it printed (stdout and stderr as they came).

    Args:
        page: its text.
        folder: an empty one.
        commands: a folder whose programs come before those of the environment.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPANREPLAY_", "OTEL_")) and k not in _CI}
    bin_folder = Path(sys.executable).parent
    environment["PATH"] = os.pathsep.join(map(str, [commands or bin_folder, bin_folder, environment["PATH"]]))
    environment |= {"OPENAI_API_KEY": "sk-readme-0123456789abcdef", "NO_COLOR": "1", "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
    environment["PYTEST_ADDOPTS"] = WITHOUT
    (folder / "docs").mkdir()
    for file in (ROOT / "docs").glob("*.json"):
        (folder / "docs" / file.name).write_bytes(file.read_bytes())
    with model_server() as port:
        environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
        for part in parts(page):
            if isinstance(part, File):
                (folder / part.name).write_text(part.text, encoding="utf-8")
                continue
            line = part.line.replace("localhost:4318", f"127.0.0.1:{port}")
            done = subprocess.run(
                ["/bin/sh", "-c", line],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=False,
            )
            output = done.stdout.decode().replace(f"127.0.0.1:{port}", "localhost:4318")
            output = output.replace(str(folder.resolve()), "/home/you/agent").replace(str(ROOT), "/home/you/spanreplay")
            yield part, output


def main() -> None:
    """Write the real output into a page."""
    path = Path(sys.argv[1])
    page = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        made = list(run(page, Path(folder)))
    for command, output in reversed(made):
        if steady(output) != steady(command.shown):
            shown = "\n".join(line.rstrip() for line in output.strip().splitlines())
            page = page[: command.start] + (shown + "\n" if shown else "") + page[command.end :]
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Running ``spanreplay`` inside the test's process, with streams of its own."""

import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spanreplay.cli.main import main
from spanreplay.spans import otlp_json
from spanreplay.spans.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A command that has ended."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """What it wrote to standard output."""
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """The one JSON document on standard output; strict: no ``NaN``, no key twice, nothing before or after it."""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            assert len(dict(pairs)) == len(pairs)
            return dict(pairs)

        return json.loads(self.raw, parse_constant=refuse, object_pairs_hook=once)

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.raw.decode(errors='replace')}\n--- stderr\n{self.err}"


class _Stream(io.TextIOWrapper):
    def __init__(self, encoding: str, terminal: bool, errors: str) -> None:
        self.bytes = io.BytesIO()
        self.terminal = terminal
        super().__init__(self.bytes, encoding=encoding, errors=errors, write_through=True)

    def isatty(self) -> bool:
        return self.terminal


@dataclass(slots=True)
class CommandLine:
    """Calls the program; the store is that of the fixture unless ``--store`` is among the arguments."""

    monkeypatch: pytest.MonkeyPatch
    folder: Path
    terminal: bool = False
    encoding: str = "utf-8"
    seen: list[Printed] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """The store of commands that name none."""
        return self.folder / "store"

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Printed:
        """Run one command; no traceback may ever be among what it prints."""
        out, err = _Stream(self.encoding, self.terminal, "strict"), _Stream("utf-8", self.terminal, "backslashreplace")
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            with pytest.raises(SystemExit) as ended:
                main([str(a) for a in arguments])
        code = ended.value.code
        assert isinstance(code, int)
        done = Printed(code=code, raw=out.bytes.getvalue(), err=err.bytes.getvalue().decode())
        assert "Traceback" not in done.err, done
        self.seen.append(done)
        return done

    def file(self, name: str, *records: Record) -> Path:
        """A file of OTLP JSON."""
        path = self.folder / name
        path.write_text(json.dumps(otlp_json.encode(records)) + "\n")
        return path

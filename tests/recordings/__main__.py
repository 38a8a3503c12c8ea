"""``python -m recordings make|replace|expect FOLDER…``; see README.md."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recordings.reading import HEAD, as_read, spans_file
from recordings.replaced import Replaced
from recordings.scrub import Scrubber
from recordings.servers import Model, Receiver
from spanreplay.spans import otlp_json

HERE = Path(__file__).parent
SECONDS = 600


def main() -> int:
    """Runs one verb over the folders given."""
    verb, *folders = sys.argv[1:] or ["help"]
    done = {"make": make, "replace": replace, "expect": expect}.get(verb)
    if done is None or not folders:
        print(__doc__)
        return 2
    for name in folders:
        done(Path(name).resolve())
    return 0


def make(folder: Path) -> None:
    """Runs the recipe in an environment of its own and keeps what it exported."""
    given = folder / "script.json"
    script = json.loads((given if given.exists() else HERE / "script.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="recording-") as temporary, Model(script) as model, Receiver() as receiver:
        home = Path(temporary)
        environment = home / "env"
        command = _node(folder, environment) if (folder / "recipe.mjs").exists() else _python(folder, environment)
        written = home / "spans.json"
        done = subprocess.run(
            command,
            env={**_environment(home), **_addresses(model.url, receiver.url), "RECORDING_FILE": str(written)},
            cwd=home,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{folder}: the recipe ended with {done.returncode}")
        print(f"{folder.name}: {len(model.requests)} model requests, {len(receiver.batches)} exports; other requests: {model.others}")
        scrubber = Scrubber(
            {environment: "/env", folder: "/app", folder.parent: "/apps", home: "/home/app", Path(sys.base_prefix): "/python"},
            {model.url: "http://model.example", receiver.url: "http://collector.example"},
        )
        if written.exists():
            (folder / "spans.json").write_text(scrubber.text(written.read_text(encoding="utf-8")), encoding="utf-8")
        lines = [scrubber.value(otlp_json.encode(batch)) for batch in receiver.batches if batch]
        if lines:
            text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
            (folder / "spans.jsonl").write_text(text, encoding="utf-8")
    _replace(folder, ("spans.json", "spans.jsonl"))


def replace(folder: Path) -> None:
    """Replaces the words of others in what is kept already."""
    _replace(folder, ("spans.json", "spans.jsonl", "expected.json"))


def _replace(folder: Path, names: Sequence[str]) -> None:
    replaced = Replaced.of(folder)
    for path in (folder / name for name in names):
        if path.exists():
            path.write_text(replaced.text(path.read_text(encoding="utf-8")), encoding="utf-8")


def expect(folder: Path) -> None:
    """Writes how the recording is read now; what was said of it by hand stays."""
    path = folder / "expected.json"
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else dict.fromkeys(HEAD, "")
    made = {**{key: told.get(key, "") for key in HEAD}, **as_read(spans_file(folder))}
    path.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _python(folder: Path, environment: Path) -> list[str]:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    python = environment / "bin" / "python"
    if uv is not None:
        subprocess.run([uv, "venv", "--quiet", str(environment)], check=True)
        installer = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        venv.create(environment, with_pip=True)
        installer = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*installer, "--requirement", str(folder / "requirements.txt")], check=True)
    return [str(python), str(folder / "recipe.py")]


def _node(folder: Path, environment: Path) -> list[str]:
    # Node finds packages beside the file that imports them.
    environment.mkdir()
    for name in ("recipe.mjs", "package.json"):
        shutil.copy(folder / name, environment)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=environment, check=True)
    return ["node", str(environment / "recipe.mjs")]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_", "ANTHROPIC_", "PYTHONPATH"))}
    return {**kept, "HOME": str(home), "PYTHONHASHSEED": "0"}


def _addresses(model: str, receiver: str) -> dict[str, str]:
    return {
        "MODEL_SERVER": model,
        "OPENAI_BASE_URL": f"{model}/v1",
        "ANTHROPIC_BASE_URL": model,
        "GOOGLE_GEMINI_BASE_URL": model,
        "OPENAI_API_KEY": "a-key",
        "ANTHROPIC_API_KEY": "a-key",
        "GEMINI_API_KEY": "a-key",
        "GOOGLE_API_KEY": "a-key",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    }


if __name__ == "__main__":
    sys.exit(main())

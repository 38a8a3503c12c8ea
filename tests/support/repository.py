"""A small git repository of its own, made in a moment."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WHO: Final = {
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "n@example.com",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "n@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, files: Mapping[str, str]) -> "Repository":
        """Make one with these files in its first commit."""
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        made.git("init", "-q", "-b", "main")
        made.write(files)
        made.commit()
        return made

    def git(self, *arguments: str) -> str:
        """What git prints."""
        return subprocess.run(
            ["git", *arguments], cwd=self.folder, env={**os.environ, **_WHO}, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by their names below the top folder."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")

    def commit(self) -> str:
        """Commit all there is."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")
        return self.head

    @property
    def head(self) -> str:
        """The commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    def files(self) -> dict[str, bytes]:
        """Every file of the working tree, by name."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and ".git/" not in path.as_posix())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}

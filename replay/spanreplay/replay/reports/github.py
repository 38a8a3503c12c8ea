"""Annotations of GitHub Actions: one line each, which the runner shows at the line of the code.

Their form: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from spanreplay.replay.case import Case
from spanreplay.replay.showing import safe

_LONGEST: Final = 2_000


def annotations(cases: Sequence[Case]) -> Iterator[str]:
    """A line for each case that did not pass; nothing in it begins another command."""
    for case in cases:
        if case.ended == "passed":
            continue
        level = "error" if case.ended == "failed" else "warning"
        named = {**_place(case.where), "title": safe(f"{case.group} {case.name}: {case.word}")}
        settings = ",".join(f"{key}={_property(value)}" for key, value in named.items())
        text = "\n".join(map(safe, (case.text or case.message or case.word)[:_LONGEST].splitlines()))
        yield f"::{level} {settings}::{_data(text)}"


def _place(where: str | None) -> dict[str, str]:
    """File, from the root of the checkout, and line."""
    file, _, line = (where or "").rpartition(":")
    if not file or not line.isdecimal():
        return {}
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    path = Path(file)
    return {"file": safe(str(path.relative_to(root) if path.is_relative_to(root) else path)), "line": line}


def _data(text: str) -> str:
    """As ``escapeData`` of the runner's toolkit."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """As ``escapeProperty`` of the runner's toolkit."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")

"""Lines of a pipe whose reader can be woken."""

import io
import os
import threading
from collections.abc import Iterable

import pytest

from spanreplay.replay.proxy.lines import Lines


def read(parts: Iterable[bytes], longest: int = 100) -> list[bytes]:
    """What a reader gets of a pipe that is written to in these parts."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as source:
        lines = Lines(source, longest)
        with os.fdopen(writes, "wb", buffering=0) as out:
            for part in parts:
                out.write(part)
        found = list(lines)
        lines.close()
        assert list(Lines(io.BytesIO(b"".join(parts)), longest)) == found, "as of what is no pipe"
    return found


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([], []),
        ([b"a\nb", b"c\n\n"], [b"a\n", b"bc\n", b"\n"]),
        ([b"a\nno end"], [b"a\n", b"no end"]),
        ([b"x" * 150 + b"\n", b"y\n"], [b"x" * 100, b"x" * 50 + b"\n", b"y\n"]),
    ],
)
def test_lines_come_as_they_are(parts: list[bytes], lines: list[bytes]) -> None:
    assert read(parts) == lines


def test_a_long_line_after_a_short_one_is_cut_where_it_is_too_long() -> None:
    assert read([b"a\n" + b"x" * 120 + b"\nb\n"]) == [b"a\n", b"x" * 100, b"x" * 20 + b"\n", b"b\n"]


def test_a_reader_that_waits_is_woken() -> None:
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as source, os.fdopen(writes, "wb"):
        lines = Lines(source, 100)
        threading.Timer(0, lines.leave).start()
        assert list(lines) == []
        lines.close()

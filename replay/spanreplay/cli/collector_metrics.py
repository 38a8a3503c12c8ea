"""What a Collector says of itself on its metrics page (Prometheus text, port 8888 by default): its version, and spans that it has lost."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_VERSION: Final = re.compile(r'\bservice_version="([^"]{1,60})"')
_LOST: Final = re.compile(
    r'^otelcol_exporter_(send|enqueue)_failed_spans(?:_total)?\{(?:[^}]*,)?exporter="([^"]{1,200})"[^}]*\} ([0-9.e+]{1,30})$', re.MULTILINE
)
"""Counters of the exporter helper; with the suffix in releases before 0.119."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """What the page says."""

    version: str | None
    lost: Mapping[str, int]
    """Exporter to spans that it gave up since the Collector was started: refused for good, or with no room in the queue."""


def read(page: str) -> Metrics | None:
    """Reads a metrics page; ``None`` where it is none of a Collector."""
    if not re.search(r"^otelcol_", page, re.MULTILINE):
        return None
    version = _VERSION.search(page)
    lost: Counter[str] = Counter()
    for _, exporter, count in _LOST.findall(page):
        try:
            lost[exporter] += int(float(count))
        except (ValueError, OverflowError):
            continue
    return Metrics(version=version[1] if version else None, lost={name: count for name, count in lost.items() if count > 0})

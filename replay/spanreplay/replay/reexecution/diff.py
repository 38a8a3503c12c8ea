"""The first place where two JSON values part."""

import difflib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_SHOWN: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference:
    """One value that differs. ``recorded`` and ``actual`` are ``_ABSENT`` where there is none."""

    path: str
    recorded: Any
    actual: Any

    def texts(self) -> tuple[str, str, str | None]:
        """The two values as short texts, and a unified diff when either is long text."""
        diff = None
        if isinstance(self.recorded, str) and isinstance(self.actual, str) and max(len(self.recorded), len(self.actual)) > 40:
            diff = "\n".join(difflib.unified_diff(_lines(self.recorded), _lines(self.actual), "recorded", "actual", lineterm="", n=1))
        return shown(self.recorded, self.actual), shown(self.actual, self.recorded), diff


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


def _lines(text: str) -> list[str]:
    return text.splitlines() or [""]


def shown(value: Any, other: Any = None) -> str:
    """A value as a short text, around the first character that differs from ``other``."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHOWN:
        return text
    start = 0
    if isinstance(value, str) and isinstance(other, str):
        same = next((i for i, (a, b) in enumerate(zip(value, other, strict=False)) if a != b), min(len(value), len(other)))
        start = max(0, same - _SHOWN // 3)
    cut = text[start : start + _SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(text) else ''} ({len(text)} characters)"


def differences(recorded: Any, actual: Any, path: str = "") -> Iterator[ValueDifference]:
    """Every value that differs, in the order of the recorded document. ``1``, ``1.0`` and ``true`` are different values."""
    stack: list[tuple[Any, Any, str]] = [(recorded, actual, path)]
    while stack:
        left, right, at = stack.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = [*left, *(k for k in right if k not in left)]
            stack.extend((left.get(k, ABSENT), right.get(k, ABSENT), f"{at}.{k}" if at else str(k)) for k in reversed(keys))
        elif isinstance(left, list) and isinstance(right, list):
            longest = range(max(len(left), len(right)))
            stack.extend(
                (left[i] if i < len(left) else ABSENT, right[i] if i < len(right) else ABSENT, f"{at}[{i}]") for i in reversed(longest)
            )
        elif type(left) is not type(right) or (left != right and not _both_nan(left, right)):
            yield ValueDifference(path=at, recorded=left, actual=right)


def _both_nan(left: Any, right: Any) -> bool:
    return isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)


def first_difference(recorded: Any, actual: Any) -> ValueDifference | None:
    """The first value that differs, or ``None``."""
    return next(differences(recorded, actual), None)

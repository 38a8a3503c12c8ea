"""What many re-executions showed, by its cause: runs that part from their record at the same place, for the same reason, are one line."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spanreplay.replay.case import EXIT_CODES, worst
from spanreplay.replay.reexecution.causes import NONE
from spanreplay.replay.reexecution.fleet import Result

_NUMBER: Final = re.compile(r"\[\d+\]")
_WORDS: Final[Mapping[str, str]] = {
    "order": "called out of the recorded order",
    "never_recorded": "a call that was never recorded",
    "already_used": "called more often than recorded",
    "unreached": "recorded, and not called",
    "not_replayable": "the record cannot answer it",
    "beyond": "went on where the record ends",
}
_OF_ONE_RUN: Final = "the arguments"
"""What a cause begins with that is another one for each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One way in which runs part from their record: by the first difference of each."""

    what: str
    result: str
    """``different``, ``refused`` or ``cannot judge``."""
    runs: int
    """Re-executions it was met in."""
    example: Result
    """The first of them."""

    def to_json(self) -> dict[str, Any]:
        """As under ``causes`` in ``spanreplay replay --all --json``."""
        return {
            "what": self.what,
            "result": self.result,
            "count": self.runs,
            "example": {"runs": list(self.example.runs), "message": self.example.message()},
        }


def causes(results: Collection[Result]) -> list[Cause]:
    """The most frequent first."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(results, key=lambda r: r.number):
        if result.exit_code != 0:
            found.setdefault((result.word, _what(result)), []).append(result)
    made = [Cause(what=what, result=word, runs=len(all_), example=all_[0]) for (word, what), all_ in found.items()]
    return sorted(made, key=lambda cause: -cause.runs)


def counts(results: Collection[Result]) -> Mapping[str, int]:
    """How many were equal, different, refused, and could not be judged."""
    number = Counter(result.word for result in results)
    return {word: number[word] for _, word in EXIT_CODES.values()}


def document(results: Sequence[Result]) -> dict[str, Any]:
    """The document of ``spanreplay replay --all --json``."""
    ordered = sorted(results, key=lambda r: r.number)
    return {
        "schema": 1,
        "exit_code": worst([r.exit_code for r in ordered]),
        "counts": dict(counts(ordered)),
        "causes": [cause.to_json() for cause in causes(ordered)],
        "results": [result.to_json() for result in ordered],
    }


def _what(result: Result) -> str:
    refusals = result.verdict.get("refusals") or ()
    if result.failed is not None:
        return result.failed
    if refusals:
        return f"tried an action on the outside: {refusals[0].get('action')}"
    first = result.first
    if first is None:
        return result.message()
    text = f"{first['name']}: {_WORDS.get(first['kind']) or _NUMBER.sub('[*]', first['field'] or 'it') + ' differs'}"
    cause = first["cause"]
    if cause is None or cause == NONE or cause.startswith(_OF_ONE_RUN):
        return text
    return f"{text} ({cause})"

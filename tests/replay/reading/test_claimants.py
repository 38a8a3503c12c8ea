"""Which dialects claim a span is remembered only where the names alone say so."""

from dataclasses import replace

import pytest

from fixtures.runs.spans import span
from recordings.reading import recordings, spans_file
from spanreplay.replay.inputs.source import open_source
from spanreplay.replay.reading import claimants as module
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.spans.record import Scope, SpanRecord


def asked(record: SpanRecord) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in registry() if dialect.claims(record))


def test_recordings_are_claimed_by_those_who_claim_them() -> None:
    claimed = 0
    for folder in recordings():
        for record in open_source(str(spans_file(folder))).records:
            if isinstance(record, SpanRecord):
                for one in (record, replace(record, dropped_attributes=1), replace(record, scope=Scope()), replace(record, name="x")):
                    assert claimants(one) == asked(one) == claimants(one)
                    claimed += bool(asked(one))
    assert claimed


class _Claims:
    NAME = "test"
    PRIORITY = 1

    def __init__(self) -> None:
        self.asked = 0


class _ByName(_Claims):
    def claims(self, record: SpanRecord) -> bool:
        self.asked += 1
        return "key" in record.attributes and record.attributes.get("absent") is None and record.scope.name != "s"


class _ByValue(_Claims):
    def claims(self, record: SpanRecord) -> bool:
        self.asked += 1
        return record.attributes.get("key") == "1" and record.attributes.get("more") == "1"


class _ByNumber(_Claims):
    def claims(self, record: SpanRecord) -> bool:
        self.asked += 1
        return record.attributes.get("number") is True


class _ByStatus(_Claims):
    def claims(self, record: SpanRecord) -> bool:
        self.asked += 1
        return record.status == 2


@pytest.mark.parametrize(
    ("dialect", "asked"),
    # By value: each time that a value is new, or one more turns out to matter.
    [(_ByName(), 1), (_ByValue(), 5), (_ByNumber(), 12), (_ByStatus(), 13)],
    ids=["name", "value", "number", "status"],
)
def test_a_claim_is_asked_again_where_what_it_looks_at_differs(dialect: _Claims, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "registry", lambda: (dialect,))
    monkeypatch.setattr(module, "_known", {})
    alike = [
        span(n, attributes={"key": str(n % 2), "more": str(n // 6), "number": n % 2 if n < 6 else n % 2 == 1}, status=n % 3)
        for n in range(12)
    ]
    assert [bool(claimants(one)) for one in alike] == [dialect.claims(one) for one in alike]  # type: ignore[attr-defined]
    assert dialect.asked == asked + len(alike)
    assert not claimants(span(1, scope=Scope(name="s"), attributes={"other": 0}))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[object, object] = {}
    monkeypatch.setattr(module, "_known", known)
    monkeypatch.setattr(module, "_KINDS", 5)
    for number in range(20):
        claimants(span(number, name=f"work {number}"))
    assert len(known) <= 5
    dialect = _ByValue()
    monkeypatch.setattr(module, "registry", lambda: (dialect,))
    for number in range(200):
        claimants(span(number, attributes={"key": str(number)}))
    assert dialect.asked == 200
    assert None in known.values(), "a kind with too many values is not remembered"

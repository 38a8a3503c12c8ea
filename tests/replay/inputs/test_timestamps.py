"""Times of back ends to nanoseconds."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs.timestamps import iso_ns, nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-06-11T14:01:32.598Z", 1749650492598000000),
        ("2025-06-11 14:01:32.598123", 1749650492598123000),
        ("2025-06-11T16:01:32.598+02:00", 1749650492598000000),
        ("2025-06-11T12:01:32.598-0200", 1749650492598000000),
        ("2025-06-11T14:01:32,123456789Z", 1749650492123456789),
        ("2025-06-11T14:01:32.1234567899Z", 1749650492123456789),
        (" 2025-06-11T14:01Z ", 1749650460000000000),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_what_back_ends_write(text: str, expected: int) -> None:
    assert iso_ns(text) == expected


@pytest.mark.parametrize(
    "value", [None, 7, True, "", "yesterday", "2025-02-30T00:00:00Z", "2025-06-11", "1969-12-31T23:59:59Z", "9999-99-99 1:2"]
)
def test_anything_else_is_no_time(value: object) -> None:
    assert iso_ns(value) is None


@settings(max_examples=50, deadline=None)
@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_python_time_comes_back(moment: datetime) -> None:
    found = iso_ns(moment.isoformat())
    assert found is not None
    assert found == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def test_what_readers_of_tables_give() -> None:
    assert [nanoseconds(1749650492598123456 // unit) for unit in (1, 10**3, 10**6, 10**9)] == [
        1749650492598123456,
        1749650492598123000,
        1749650492598000000,
        1749650492000000000,
    ]
    assert nanoseconds(datetime(2025, 6, 11, 14, 1, 32, 598123, tzinfo=UTC)) == 1749650492598123000
    assert nanoseconds("2025-06-11T14:01:32Z") == 1749650492000000000
    assert [nanoseconds(value) for value in (None, True, -1, 1.5, "no")] == [None] * 5

"""Ids of back ends to ids of OpenTelemetry."""

import base64
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.replay.inputs.identifiers import SpanIds, span_id, trace_id

RUN = "1b64098b-4ab7-43f6-afee-992304f198d8"


def test_ids_of_opentelemetry_stay() -> None:
    assert trace_id("0x0AF7651916CD43DD8448EB211C80319C") == "0af7651916cd43dd8448eb211c80319c"
    assert span_id("b7ad6b7169203331") == "b7ad6b7169203331"
    assert trace_id("6b7169203331abcd") == "00000000000000006b7169203331abcd", "64-bit ids are padded"


def test_uuids_become_what_langsmith_makes_of_them() -> None:
    assert trace_id(RUN) == "1b64098b4ab743f6afee992304f198d8"
    assert span_id(RUN) == "1b64098b4ab743f6"


def test_other_texts_become_what_langfuse_makes_of_them() -> None:
    digest = hashlib.sha256(b"checkout").hexdigest()
    assert trace_id("checkout") == digest[:32]
    assert span_id("checkout") == digest[:16]


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=16, max_size=16).filter(any), st.binary(min_size=8, max_size=8).filter(any))
def test_base64_is_read(trace: bytes, span: bytes) -> None:
    assert trace_id(base64.b64encode(trace).decode()) == trace.hex()
    assert span_id(base64.b64encode(span).decode()) == span.hex()


@settings(max_examples=50, deadline=None)
@given(st.integers(2**96, 2**128 - 1), st.integers(2**54, 2**64 - 1))
def test_numbers_are_what_the_sdk_calls_an_id(trace: int, span: int) -> None:
    assert trace_id(trace) == f"{trace:032x}"
    assert span_id(span) == f"{span:016x}"
    if len(str(trace)) > 32:
        assert trace_id(str(trace)) == f"{trace:032x}"
    if len(str(span)) > 16:
        assert span_id(str(span)) == f"{span:016x}"


@pytest.mark.parametrize("nothing", [None, "", 0, 0.5, [], {}, "0" * 16, "AAAAAAAAAAA="])
def test_nothing_is_no_id(nothing: object) -> None:
    assert span_id(nothing) is None


def test_two_runs_of_one_moment_are_kept_apart() -> None:
    one, other = RUN, RUN[:-1] + "9"
    ids = SpanIds()
    first, second = ids.of("t", one), ids.of("t", other)
    assert first == span_id(one)
    assert second not in (None, first)
    assert (ids.of("t", one), ids.of("t", other)) == (first, second)
    assert ids.of("another trace", other) == span_id(other)

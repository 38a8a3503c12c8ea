"""Bodies as attributes, and content codings."""

import gzip
import json
import sys
import types
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreplay.content.canonical import canonical_json
from spanreplay.instrumentation import http_body
from spanreplay.instrumentation.http_body import as_attribute, content_decoded, headers_json
from spanreplay.semconv import attributes as names
from support.http_exchanges import JSON, finished
from support.http_tape import from_attribute
from support.model_server import chat_chunks


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_bytes_survive_as_an_attribute(body: bytes) -> None:
    assert from_attribute(*as_attribute(body)) == body


@given(st.lists(st.tuples(st.text(st.characters(), max_size=8), st.text(st.characters(), max_size=8)), max_size=4))
def test_headers_are_kept_as_canonical_json(headers: list[tuple[str, str]]) -> None:
    assert headers_json(headers) == canonical_json([list(pair) for pair in headers])


def _coded() -> Iterator[tuple[str, Any]]:
    yield "gzip", gzip.compress
    yield "X-Gzip", gzip.compress
    yield "deflate", zlib.compress
    yield "deflate", lambda data: zlib.compress(data)[2:-4]
    yield "identity", lambda data: data
    yield "deflate, gzip", lambda data: gzip.compress(zlib.compress(data))
    yield "gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])


@pytest.mark.parametrize(("coding", "encode"), list(_coded()))
def test_content_codings_are_undone(coding: str, encode: Any) -> None:
    assert content_decoded(encode(b"some text, some text"), coding) == b"some text, some text"
    assert content_decoded(b"", coding) == b""


@given(st.binary(min_size=1, max_size=400), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_a_cut_compressed_body_gives_what_it_holds(body: bytes, cut: int) -> None:
    decoded = content_decoded(gzip.compress(body)[:cut], "gzip")
    assert decoded is not None
    assert body.startswith(decoded)


class _Backwards:
    """A decoder as the optional libraries have them."""

    def process(self, data: bytes) -> bytes:
        return data[::-1]

    decompress = process

    def decompressobj(self) -> "_Backwards":
        return self


@pytest.mark.parametrize(
    ("coding", "module", "decoder"),
    [
        ("br", "brotli", "Decompressor"),
        ("br", "brotlicffi", "Decompressor"),
        ("zstd", "backports.zstd", "ZstdDecompressor"),
        ("zstd", "zstandard", "ZstdDecompressor"),
    ],
)
def test_codings_of_libraries_that_may_be_there(monkeypatch: pytest.MonkeyPatch, coding: str, module: str, decoder: str) -> None:
    for name in ("brotli", "brotlicffi", "compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    assert content_decoded(b"txet", coding) is None
    made = types.ModuleType(module)
    setattr(made, decoder, _Backwards)
    monkeypatch.setitem(sys.modules, "backports", types.ModuleType("backports"))
    monkeypatch.setitem(sys.modules, module, made)
    assert content_decoded(b"txet", coding) == b"text"


@pytest.mark.parametrize("coding", ["unheard-of", "gzip"])
def test_what_cannot_be_decoded_is_none(coding: str) -> None:
    assert content_decoded(b"no such thing", coding) is None


def test_a_compressed_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_body, "MAX_DECODED", 1000)
    assert content_decoded(gzip.compress(bytes(100_000)), "gzip") is None


def test_an_undecodable_stream_is_kept_raw() -> None:
    step = finished(b"\xffnot gzip", headers=(JSON, ("content-encoding", "gzip")))
    assert step.body == b"\xffnot gzip"
    assert step.outcome == "malformed"


def test_events_are_read_whole_through_compression() -> None:
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in chat_chunks("Par", "is")) + b"data: [DONE]\n\n"
    step = finished(gzip.compress(events), headers=(("content-type", "text/event-stream"), ("content-encoding", "gzip")))
    assert "Paris" in step[names.GEN_AI_OUTPUT_MESSAGES]
    assert step.outcome == "ok"

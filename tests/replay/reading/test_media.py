"""Images, sounds and files are the same parts in a trace as in a live request, else a replay with images would find no answer."""

import json
from typing import Any

import pytest

from spanreplay.replay.reading.bodies import request_view
from spanreplay.replay.reading.parts import part

PIXELS = "aGVsbG8="


def blob(mime_type: str, modality: str) -> dict[str, Any]:
    return {"type": "blob", "mime_type": mime_type, "modality": modality, "content": PIXELS}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}},
        {"type": "input_audio", "input_audio": {"data": PIXELS, "format": "wav"}},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PIXELS}", "filename": "bill.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ],
)
def test_what_openai_chat_holds_reads_as_a_live_request(block: dict[str, Any]) -> None:
    view = request_view("openai.chat", {"messages": [{"role": "user", "content": [block]}]})
    assert part(block) == view["messages"][0]["parts"][0]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "input_image", "image_url": f"data:image/jpeg;base64,{PIXELS}", "detail": "auto"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_url": "https://pictures.example/bill.pdf"},
    ],
)
def test_what_the_responses_api_holds_reads_as_a_live_request(block: dict[str, Any]) -> None:
    view = request_view("openai.responses", {"input": [{"role": "user", "content": [block]}]})
    assert part(block) == view["messages"][0]["parts"][0]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}},
        {"type": "document", "source": {"type": "url", "url": "https://pictures.example/bill.pdf"}, "title": "bill"},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ],
)
def test_what_anthropic_holds_reads_as_a_live_request(block: dict[str, Any]) -> None:
    view = request_view("anthropic.messages", {"messages": [{"role": "user", "content": [block]}]})
    assert part(block) == view["messages"][0]["parts"][0]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image", "base64": PIXELS, "mime_type": "image/png", "id": "lc_1"}, blob("image/png", "image")),
        ({"type": "image", "source_type": "base64", "data": PIXELS, "mime_type": "image/png"}, blob("image/png", "image")),
        ({"type": "file", "base64": PIXELS, "mime_type": "application/pdf"}, blob("application/pdf", "document")),
        (
            {"type": "image", "url": "https://pictures.example/cat.png"},
            {"type": "uri", "mime_type": None, "modality": "image", "uri": "https://pictures.example/cat.png"},
        ),
        (
            {"type": "image", "source_type": "id", "id": "file-1"},
            {"type": "file", "mime_type": None, "modality": "image", "file_id": "file-1"},
        ),
    ],
)
def test_data_blocks_of_langchain(block: dict[str, Any], expected: dict[str, Any]) -> None:
    assert part(block) == expected


def test_a_data_url_is_data() -> None:
    assert part({"type": "uri", "modality": "image", "uri": f"data:image/png;base64,{PIXELS}"}) == blob("image/png", "image")


@pytest.mark.parametrize(
    "held",
    [
        {"type": "uri", "modality": "image", "uri": "https://pictures.example/cat.png"},
        {"type": "file", "mime_type": None, "modality": "image", "file_id": "file-1"},
        {"type": "image"},
        {"type": "image_url", "image_url": 3},
        {"type": "input_audio", "input_audio": {"format": "wav"}},
        {"type": "document", "source": "a text"},
        {"type": "file", "file": []},
    ],
)
def test_what_is_a_part_already_or_holds_nothing_stays_as_it_is(held: dict[str, Any]) -> None:
    assert part(held) == held


def test_a_summary_of_thoughts_as_json_is_its_texts() -> None:
    summary = [{"text": "First.", "type": "summary_text"}, {"text": "Then.", "type": "summary_text"}]
    assert part({"type": "reasoning", "content": json.dumps(summary)}) == {"type": "reasoning", "content": "First.\n\nThen."}
    other = {"type": "reasoning", "content": json.dumps([{"text": "I write JSON.", "type": "answer"}])}
    assert part(other) == other

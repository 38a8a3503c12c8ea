"""What an export of chat messages makes of parts that are no text."""

import json
from typing import Any

import pytest

from fixtures.runs.spans import agent, chat
from spanreplay.replay.rebuilding.runs import build_runs
from spanreplay.replay.writers import messages
from spanreplay.semconv import attributes as a


def exported(part: dict[str, Any]) -> Any:
    said = [{"role": "user", "parts": [part]}]
    records = [agent(1), chat(2, 1, attributes={a.GEN_AI_INPUT_MESSAGES: json.dumps(said)})]
    return json.loads(messages.write(records, build_runs(records)))["messages"][0]["content"]


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "aGVsbG8=", "detail": "low"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8=", "detail": "low"}},
        ),
        (
            {"type": "uri", "mime_type": None, "modality": "image", "uri": "https://pictures.example/cat.png"},
            {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}},
        ),
        (
            {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "aGVsbG8="},
            {"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "wav"}},
        ),
        ({"type": "file", "modality": "document", "file_id": "file-1"}, {"type": "file", "modality": "document", "file_id": "file-1"}),
    ],
)
def test_images_and_sounds_are_those_of_chat_messages(part: dict[str, Any], content: dict[str, Any]) -> None:
    assert exported(part) == [content]

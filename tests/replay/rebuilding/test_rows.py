"""What the database is given of a view is its JSON, however much of it was written before."""

import json
import math
from typing import Any

import pytest

from spanreplay.replay.rebuilding.rows import _json

MESSAGES: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": f"naïve {number}"}]} for number in range(12)]


@pytest.mark.parametrize("size", [0, 1, 4, 12])
def test_a_growing_conversation(size: int) -> None:
    for count in range(size + 1):
        view = {"messages": MESSAGES[:count], "system": [], "tools": MESSAGES[:5], "params": {"a": 1.0, "b": None}}
        assert _json(view) == json.dumps(view, ensure_ascii=False, separators=(",", ":"))


def test_numbers_that_json_lacks_are_named() -> None:
    view = {"messages": [*MESSAGES[:5], {"role": "tool", "parts": [math.nan, math.inf]}]}
    written = _json(view)
    assert written is not None
    assert json.loads(written)["messages"][-1]["parts"] == ["NaN", "Infinity"]


def test_what_is_no_view() -> None:
    assert _json(None) is None
    assert _json({"messages": "text"}) == '{"messages":"text"}'
    assert _json([1, "é"]) == '[1,"é"]'

"""What a span says of its failure."""

import pytest

from fixtures.runs.spans import span
from spanreplay.replay.reading.fields import Fields
from spanreplay.replay.reading.outcomes import failure
from spanreplay.spans.record import STATUS_ERROR

STACK = "    at tool.name (file:///app/agent.mjs:20:65)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"


@pytest.mark.parametrize(
    ("message", "kind", "said"),
    [
        (f"no such city\n\nError: no such city\n{STACK}", "Error", "no such city"),
        (f"TypeError: two\nlines\n{STACK}", "TypeError", "two\nlines"),
        (f"another\n\nError: no such city\n{STACK}", None, f"another\n\nError: no such city\n{STACK}"),
        ("Error: no such city", None, "Error: no such city"),
        ("it went wrong:\n    at home", None, "it went wrong:\n    at home"),
    ],
)
def test_an_error_of_javascript_is_told_from_its_stack(message: str, kind: str | None, said: str) -> None:
    failed = span(1, status=STATUS_ERROR, status_message=message)
    assert failure(failed, Fields(failed.attributes)) == {"type": kind, "message": said}

"""What Logfire makes of the spans of the OpenAI Agents SDK; whole runs are among the recordings."""

import pytest

from spanreplay.replay.dialects.logfire_agents import DIALECT, TEMPLATE
from spanreplay.spans.record import SpanRecord, Value


@pytest.mark.parametrize("template", [None, 7, True, ("Agent run: {name!r}",), {"a": "b"}, ""])
def test_a_template_that_is_no_text_is_not_for_this_dialect(template: Value) -> None:
    span = SpanRecord(trace_id=f"{1:032x}", span_id=f"{1:016x}", name="span", start_ns=0, attributes={TEMPLATE: template})
    assert not DIALECT.claims(span)

"""What every dialect has to keep to."""

import pkgutil
from typing import get_args

import pytest

from fixtures.runs.spans import agent, chat, own, own_root, span, tool, wired
from spanreplay.boundary.call import Kind, OutcomeName
from spanreplay.replay import dialects
from spanreplay.replay.model import GRADE_ORDER
from spanreplay.replay.reading.claimants import claimants
from spanreplay.replay.reading.dialect import Dialect, registry
from spanreplay.semconv import attributes as a
from spanreplay.spans.record import SpanRecord

SPANS = [
    span(1),
    chat(1),
    chat(1, content=False, end=None),
    tool(1),
    agent(1),
    own(1),
    own_root(1),
    own(1, kind="model_call", attributes=wired()),
    own(1, kind="io", end=None),
    span(1, attributes={a.GEN_AI_OPERATION_NAME: None, a.STEP_KIND: 7, a.RUN_ROOT: "yes", "mcp.method.name": False}),
]


def test_every_file_is_a_dialect_with_a_name_and_a_place_of_its_own() -> None:
    found = registry()
    assert len(found) == len(list(pkgutil.iter_modules(dialects.__path__)))
    assert len({dialect.NAME for dialect in found}) == len(found)
    assert [dialect.PRIORITY for dialect in found] == sorted(dialect.PRIORITY for dialect in found)
    assert found[0].NAME == "spanreplay"
    assert found[-1].NAME == "gen_ai"


@pytest.mark.parametrize("dialect", registry(), ids=lambda dialect: dialect.NAME)
@pytest.mark.parametrize("record", SPANS, ids=lambda record: record.name)
def test_a_reading_is_well_formed(dialect: Dialect, record: SpanRecord) -> None:
    if not dialect.claims(record):
        return
    draft = dialect.read(record, ())
    if draft is None:
        return
    assert draft.kind in get_args(Kind)
    assert draft.outcome in get_args(OutcomeName)
    assert draft.grade in GRADE_ORDER
    assert draft.name
    assert all(reason.code and reason.detail and reason.step is None for reason in draft.reasons)
    assert draft.grade in ("exact", "semantic") or draft.reasons, "a low grade says why"


def test_own_spans_are_read_as_ours_although_they_have_standard_attributes() -> None:
    both = own(1, kind="model_call", attributes={a.GEN_AI_OPERATION_NAME: "chat"})
    found = claimants(both)[0]
    assert found is not None
    assert found.NAME == "spanreplay"
    assert claimants(span(1)) == ()
